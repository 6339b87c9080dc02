"""The envelope against its literal bytes, and the card that names a study."""

import pytest

from sottovoce.core.errors import BadInput
from sottovoce.protocol import card
from sottovoce.protocol.card import Card, identity
from sottovoce.protocol.messages import Query, Reports, Tally
from sottovoce.protocol.wire import kind_of, seal, unseal

STUDY = bytes(range(16))
GOLDEN = {
    "tally": (
        Tally(3, (10, 12)),
        "85a776657273696f6e01a57374756479c410000102030405060708090a0b0c0d0e0fa5726f756e6403a46b696e64a574616c6c79"
        "a4626f647982a5726f756e6403a46f6e6573920a0c",
    ),
    "reports": (
        Reports(3, b"\x00\x01"),
        "85a776657273696f6e01a57374756479c410000102030405060708090a0b0c0d0e0fa5726f756e6403a46b696e64a77265706f727473"
        "a4626f647982a5726f756e6403a76c657474657273c4020001",
    ),
}


@pytest.mark.parametrize(("message", "wire"), GOLDEN.values(), ids=GOLDEN)
def test_bytes_are_as_written_down(message: Tally | Reports, wire: str) -> None:
    assert seal(STUDY, 3, message).hex() == wire
    assert unseal(bytes.fromhex(wire), STUDY, [Tally, Reports]) == (3, message)


def test_a_reply_to_another_round_is_refused() -> None:
    with pytest.raises(BadInput, match="another round; round 4 is expected"):
        unseal(seal(STUDY, 3, Tally(3, (1,))), STUDY, [Tally], 4)


def test_kinds_have_names_of_their_own() -> None:
    assert kind_of(Query) == "query"
    assert kind_of(Tally) == "tally"


CARD = Card("quantile", {"tau": 0.5, "sites": ["north"], "epsilon": [1.0]}, "waiting times", b"nonce")


def test_a_card_is_named_by_all_of_it() -> None:
    same = card.from_bytes(card.to_bytes(CARD))
    assert same == CARD
    assert identity(same) == identity(CARD)
    others = [
        Card("quantile", {**CARD.terms, "tau": 0.6}, CARD.name, CARD.nonce),
        Card("quantile", CARD.terms, "other", CARD.nonce),
        Card("quantile", CARD.terms, CARD.name, b""),
        Card("regression", CARD.terms, CARD.name, CARD.nonce),
        Card("quantile", {**CARD.terms, "more": 1}, CARD.name, CARD.nonce),
    ]
    assert len({identity(CARD), *map(identity, others)}) == 6
    assert len(identity(CARD)) == 16
    turned = {name: CARD.terms[name] for name in reversed(CARD.terms)}
    assert identity(Card("quantile", turned, CARD.name, CARD.nonce)) == identity(CARD)


def test_what_is_no_card_is_refused() -> None:
    whole = card.to_bytes(CARD)
    for bad in (b"", whole[:-1], whole + b"\x00", b"text", card.to_bytes(Card("poll", {}))):
        with pytest.raises(BadInput, match="study card"):
            card.from_bytes(bad)
    with pytest.raises(BadInput, match="another protocol version"):
        card.from_bytes(card.to_bytes(Card("quantile", {}, version=0)))
