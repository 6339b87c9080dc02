"""Sites and server in one process: the runner and the compiled twins of the message paths."""
