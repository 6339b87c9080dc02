"""What nobody should send a collector: strange addresses and headers, studies that cannot be, broken HTTP."""

import json
from typing import Any

from sottovoce_papers.simulation.families import Generator

MARK = "secret4711"  # stands in what is sent, and must stand in no answer
Dice = Generator


def pick(dice: Dice, *words: Any) -> Any:
    """Draw one of some things."""
    return words[int(dice.integers(len(words)))]


def odd_target(dice: Dice, study: str) -> str:
    """Return an address that is there, or nearly."""
    path = pick(
        dice,
        "/health",
        "/metrics",
        "/v1/openapi.json",
        "/v1/studies",
        "/v1/plan",
        "/",
        "/new",
        "/device.js",
        "/nothing",
        "//",
        "/v1/studies/",
        "/v1/studies/" + "00" * 16,
        "/v1/studies/" + MARK,
        f"/v1/studies/{'0' * 5000}",
        "/studies/x",
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/%00",
        "/%ff%fe",
        "/v1/reports",
        "/v1/reports/",
        study,
        *(f"{study}/{word}" for word in ("card", "query", "estimate", "trajectory", "state", "scrub", MARK)),
        study.removeprefix("/v1"),
        study.removeprefix("/v1") + "/survey",
        f"{study}/query/",
        study.upper(),
    )
    query = pick(
        dice,
        "",
        "",
        "?group=a",
        "?group=b",
        f"?group={MARK}",
        "?group=",
        "?group=%00",
        "?group=%ff",
        "?" + "&" * 3000,
        "?group=a&group=" + MARK,
        "?" + "x=1&" * 1500,
        "?group=" + "a" * 9000,
        "?group[]=a",
        "?=&=",
        "?group=%F0%9F%98%80",
    )
    return str(path + query)


def odd_headers(dice: Dice) -> dict[str, str]:
    """Return headers that say nothing, too much, or what is not so."""
    return dict(
        [
            pick(
                dice,
                ("x-forwarded-for", MARK),
                ("authorization", "Bearer " + MARK),
                ("authorization", "Basic ====="),
                ("authorization", "Bearer \xe9\xff"),
                ("accept-encoding", "gzip, " * 500),
                ("cookie", "a=b;" * 1500),
                ("content-type", "multipart/form-data; boundary="),
                ("content-type", "\xff/\xff"),
                ("expect", "nothing"),
                ("range", "bytes=9-1"),
                ("if-modified-since", MARK),
                ("te", "trailers"),
                ("origin", "http://elsewhere"),
                ("upgrade-insecure-requests", MARK),
                ("accept", "text/" + MARK),
                ("host", MARK),
                ("x" * 3000, "y"),
                ("x-a", "\t \t"),
                ("authorization", "Basic " + "QUFB" * 1000),
                ("last-event-id", "-1"),
            )
            for _ in range(int(dice.integers(3)))
        ]
    )


def odd_value(dice: Dice) -> Any:
    """Return a value that hardly fits anywhere."""
    return pick(
        dice,
        None,
        True,
        -1,
        0,
        1,
        0.5,
        2**63,
        2**64,
        10**30,
        -(10**400),
        1e308,
        1e-320,
        "",
        MARK,
        "x" * 400,
        "\x00",
        "\u202e",
        "\U0001f600",
        [],
        {},
        [[]],
        [None],
        [MARK],
        ["a"] * 1001,
        {MARK: 1},
        [0.5, 0.9],
        [0.9, 0.5],
        [0, 0],
        [1e308, -1e308],
        "sequence",
        "staged",
        [str(k) for k in range(300)],
        {"grace": 1},
        {"tokens": True},
        [k / 100 for k in range(1, 100)],
    )


def odd_study(dice: Dice) -> bytes:
    """Return the JSON of a study of which something is wrong, or nothing."""
    study: dict[str, Any] = {
        "name": pick(dice, "small", "odd", "odd too", "odder"),
        "people": pick(dice, 500, 5000, 10**6, 10**9),
        "groups": pick(dice, ["a"], ["a", "b"]),
        "rounds": {"grace": pick(dice, 0, 1), "deadline": pick(dice, 1, 100)},
    }
    if dice.random() < 0.7:
        study["quantile"] = {
            "tau": pick(dice, 0.5, 0.99, [0.25, 0.5]),
            "epsilon": pick(dice, 0.5, 1, 3, 1e-9, 1e9),
            "bounds": pick(dice, [0, 100], [5, 5], [1, 0], [-1e308, 1e308], None),
            "method": pick(dice, "sequence", "staged", "certified"),
        }
        inner = "quantile"
    else:
        study["regression"] = {
            "response": "y",
            "tau": pick(dice, 0.5, [0.5, 0.9]),
            "epsilon": pick(dice, 1, 4, 1e-9),
            "features": {"x": pick(dice, [0, 1], [1, 0], [0, 0]), pick(dice, "z", MARK): [18, 90]},
        }
        inner = "regression"
    for _ in range(int(dice.integers(3))):
        where: Any = pick(dice, study, study.get(inner), study.get("rounds", study))
        if isinstance(where, dict):  # it may have been replaced
            where[pick(dice, *where, "extra", "until", "scale", "resolution", "level", "kind")] = odd_value(dice)
    text = json.dumps(study)
    if dice.random() < 0.1:
        at = int(dice.integers(len(text)))
        text = text[:at] + pick(dice, "", "NaN", "]", '"', "\\u0000", "1e999") + text[at + 1 :]
    return text.encode()


def broken(dice: Dice, study: bytes) -> bytes:
    """Return bytes that are not HTTP, or HTTP that lies about itself."""
    post = b"POST /v1/reports HTTP/1.1\r\nhost: x\r\n"
    body = study + dice.bytes(25)
    return bytes(
        pick(
            dice,
            b"",
            b"\r\n\r\n",
            dice.bytes(200),
            dice.bytes(70_000),
            b"GET\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"\x16\x03\x01\x02\x00",
            post + b"content-length: 41\r\n\r\n" + body[:20],
            post + b"content-length: -1\r\n\r\n" + body,
            post + b"content-length: 99999999999999999999\r\n\r\n" + body,
            post + b"content-length: 10000000\r\n\r\n" + bytes(900_000),
            post + b"content-length: 41\r\ncontent-length: 5\r\n\r\n" + body,
            post + b"content-length: 41\r\ntransfer-encoding: chunked\r\n\r\n" + body,
            post + b"transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n" + body,
            post + b"transfer-encoding: chunked\r\n\r\nzz\r\n" + body,
            post + b"transfer-encoding: chunked\r\n\r\n29\r\n" + body,
            post + b"upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-key: x\r\n\r\n",
            b"GET /v1/studies/" + study.hex().encode() + b"/events HTTP/1.1\r\nhost: x\r\n\r\n",
            b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n" * 30,
            post + b"x: " + MARK.encode() * 20_000,
            b"GET /" + b"a" * 300_000 + b" HTTP/1.1\r\n\r\n",
            post + b"a: b\r\n" * 20_000 + b"\r\n",
            b"OPTIONS * HTTP/1.1\r\n\r\n",
            b"CONNECT " + MARK.encode() + b":443 HTTP/1.1\r\n\r\n",
            b"GET http://[::1 HTTP/1.1\r\n\r\n",
            b"GET /caf\xc3\xa9 HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\r\nhost: x\r\n y: folded\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"POST /v1/studies HTTP/1.1\r\nhost: x\r\ncontent-length: 500\r\n\r\n{",
        )
    )
