"""What both sides agree on: the channel, the messages, the local walk."""
