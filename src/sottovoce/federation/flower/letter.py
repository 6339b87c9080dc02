"""How an order or a reply lies in a message of Flower's: bytes in a record of one name."""

from flwr.app import ConfigRecord, Message, RecordDict

PART, BODY = "sottovoce", "body"


def packed(body: bytes) -> RecordDict:
    """Put bytes into the content of a message."""
    return RecordDict({PART: ConfigRecord({BODY: body})})


def body_of(message: Message) -> bytes | None:
    """Return the bytes of a message; None of a failure, or of what is no message of ours."""
    if message.has_error():
        return None
    records = message.content.config_records
    found = records[PART].get(BODY) if PART in records else None
    return found if isinstance(found, bytes) else None
