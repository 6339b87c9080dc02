"""The page over HTTP without a browser: who gets in, what is refused, and that no answer shows a record."""

import io
import json
import socket
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr
from typing import Any

import pytest
from tests.explore.conftest import MARKS, Served, question
from tests.explore.test_session import BAD

import sottovoce as sv
from sottovoce.api.explored import ExploredFile
from sottovoce.core.errors import BadInput
from sottovoce.explore.entrance import Entrance
from sottovoce.explore.server import LARGEST, PAGE, ExploreServer
from sottovoce.explore.session import ExploreSession

ID = "0" * 32
READ = ("/v1/file", "/v1/runs", f"/v1/runs/{ID}", f"/v1/runs/{ID}/result", f"/v1/runs/{ID}/report")
SENT = ("/v1/plan", "/v1/sites", "/v1/runs", "/v1/end")


def sentence(answer: Any, status: int) -> str:
    assert answer.status == status, answer.body
    assert set(answer.json) == {"error"}
    said = str(answer.json["error"])
    assert said.endswith(".")
    assert "\n" not in said
    return said


def until_done(served: Served, id: str = ID) -> Any:
    for _ in range(2000):
        found = served.send("GET", f"/v1/runs/{id}").json
        if found["state"] != "asking":
            return found
    raise AssertionError("the question is never answered")


def test_it_listens_on_loopback_alone(served: Served) -> None:
    assert served.server._server.server_address[0] == "127.0.0.1"
    assert served.server.url.startswith(f"http://127.0.0.1:{served.server.port}/#")
    with pytest.raises(BadInput, match="cannot use port"):
        ExploreServer(served.server._session, served.server.port, print)
    with pytest.raises(BadInput, match="cannot use port"):
        ExploreServer(served.server._session, 1 << 20, print)


def test_files_of_the_page_need_no_key_and_hold_no_secret(served: Served) -> None:
    for path in PAGE:
        answer = served.send("GET", path)
        assert answer.status == 200
        for secret in ("marked.csv", "clinic", served.token):
            assert secret not in answer.body.decode()
    assert sum(len(each) for each in served.bodies) < 70_000


def test_every_answer_keeps_to_itself(served: Served) -> None:
    for path in ("/", "/nowhere", "/v1/file", "/v1/plan"):
        headers = served.send("GET", path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers


def test_without_the_key_nothing_is_told_or_done(served: Served, file: ExploredFile) -> None:
    token = served.token
    for key in ("", "Bearer", "Bearer x", f"Bearer {token}", "Basic eDp4", "Bearer é"):
        for path in READ:
            assert "key is missing" in sentence(served.send("GET", path, authorization=key or None), 401)
        for path in SENT:
            given = {"id": ID, "question": question()}
            assert "key is missing" in sentence(served.send("POST", path, given, authorization=key or None), 401)
    assert file.spent == 0.0


def test_a_token_is_good_once_and_then_the_terminal_has_a_fresh_one(served: Served) -> None:
    token = served.token
    for wrong in (None, 5, "", "0" * 64, "é", token[:-1], [token]):
        assert "another session" in sentence(served.send("POST", "/v1/enter", {"token": wrong}), 401)
    assert served.token == token
    with ThreadPoolExecutor(8) as many:
        came = list(many.map(lambda _: served.send("POST", "/v1/enter", {"token": token}), range(8)))
    assert sorted(each.status for each in came) == [200] + [401] * 7
    assert "used already" in sentence(next(each for each in came if each.status == 401), 401)
    assert served.said[-1] == served.server.url
    assert served.token != token
    served.enter()
    assert served.send("GET", "/v1/file").status == 200


@pytest.mark.parametrize(
    "host", [None, "", "evil.example", "127.0.0.1", "127.0.0.1:1", "localhost", "127.0.0.1.evil.example", "[::1]", "é"]
)
def test_another_name_for_this_machine_is_refused(served: Served, host: str | None) -> None:
    served.enter()
    for path in ("/", *READ):
        assert served.send(
            "GET", path, host=None if host is None else host.encode("latin-1").decode("latin-1")
        ).status in (400, 403)
    assert served.send("GET", "/v1/file", host=f"localhost:{served.server.port}").status == 200


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", "https://127.0.0.1", "http://127.0.0.1", "http://localhost:1"]
)
def test_another_site_can_give_no_orders(served: Served, file: ExploredFile, origin: str | None) -> None:
    served.enter()
    for path in SENT:
        said = sentence(served.send("POST", path, {"id": ID, "question": question()}, origin=origin), 403)
        assert "no orders from other sites" in said
    if origin is not None:
        assert served.send("GET", "/v1/file", origin=origin).status == 403
    assert file.spent == 0.0


def test_another_site_can_link_to_the_page_and_load_nothing_of_it(served: Served) -> None:
    served.enter()
    link = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    assert served.send("GET", "/", **link).status == 200
    assert served.send("GET", "/", **{**link, "sec_fetch_dest": "iframe"}).status == 403
    for path in ("/explore.js", "/v1/file"):
        assert served.send("GET", path, **link).status == 403
    assert served.send("GET", "/v1/file", sec_fetch_site="same-site").status == 403
    assert served.send("GET", "/v1/file", sec_fetch_site="same-origin").status == 200


BODIES: tuple[tuple[bytes, dict[str, str | None], int], ...] = (
    (b"", {}, 400), (b"{", {}, 400), (b"[]", {}, 400), (b"5", {}, 400), (b'"x"', {}, 400), (b"\xff\xfe", {}, 400),
    (b"[" * 10_000, {}, 400), (b'{"id": ' + b"9" * 9000 + b"}", {}, 400), (b"{}", {"content_type": "text/plain"}, 400),
    (b"{}", {"content_type": None}, 400), (b"{}", {"content_type": "application/x-www-form-urlencoded"}, 400),
    (b"{" + b" " * LARGEST, {}, 413), (b"{}", {"content_length": "-1"}, 413), (b"{}", {"content_length": "x"}, 413),
    (b"{}", {"content_length": "9" * 30}, 413), (b"{}", {"content_length": "9" * 5_000}, 413),
    (b"0\r\n\r\n", {"transfer_encoding": "chunked", "content_length": None}, 413),
)  # fmt: skip


@pytest.mark.parametrize(("body", "headers", "status"), BODIES, ids=range(len(BODIES)))
def test_what_is_no_order_is_refused_in_a_sentence(
    served: Served, body: bytes, headers: dict[str, str | None], status: int
) -> None:
    served.enter()
    for path in SENT[:3]:
        sentence(served.send("POST", path, body, **headers), status)


@pytest.mark.parametrize("asked", BAD, ids=range(len(BAD)))
def test_bad_questions_are_sentences_over_http_too(served: Served, asked: Any) -> None:
    served.enter()
    plan = served.send("POST", "/v1/plan", {"question": asked})
    assert (plan.status, set(plan.json)) == (200, {"refused"})
    sentence(served.send("POST", "/v1/runs", {"id": ID, "question": asked}), 400)
    assert served.send("POST", "/v1/sites", {"question": asked}).status in (200, 400)
    assert served.send("GET", "/v1/runs").json == {"runs": [], "spent": 0.0}


def test_other_methods_paths_and_no_http_at_all(served: Served) -> None:
    served.enter()
    own = {"origin": f"http://{served.host}"}
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "BREW"):
        sentence(served.send(method, "/v1/file", **own), 501)
    assert served.send("HEAD", "/").status == 501
    sentence(served.send("POST", "/", {}), 405)
    for path in (
        "/v1/",
        "/v1/file/x",
        "/v1/runs/x",
        "/v1/runs/../file",
        "/index.html",
        "/../explore.js",
        "/v1/" + "x" * 5000,
    ):
        assert served.send("GET", path).status == 404
    assert served.send("POST", "/v1/nothing", {}).status == 404
    for line in (
        b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
        b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"Zebulon\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", served.server.port), timeout=10) as raw:
            raw.sendall(line)
            answer = raw.makefile("rb").read()
        assert b'{"error": "' in answer
        assert b"Zebulon" not in answer
        assert b"<" not in answer.partition(b"\r\n\r\n")[2]


def test_a_question_that_is_sent_many_times_is_asked_once(served: Served, file: ExploredFile) -> None:
    served.enter()
    given = {"id": ID, "question": question()}
    with ThreadPoolExecutor(8) as many:
        came = list(many.map(lambda _: served.send("POST", "/v1/runs", given), range(16)))
    assert {each.status for each in came} == {200}
    found = until_done(served)
    assert found["state"] == "done"
    assert served.send("POST", "/v1/runs", given).json == found
    assert len(served.send("GET", "/v1/runs").json["runs"]) == 1
    assert file.spent == 2.0
    stored = served.send("GET", f"/v1/runs/{ID}/result").json
    assert stored["estimate"] == found["result"]["estimates"][0]["estimate"]
    assert b"Privacy statement" in served.send("GET", f"/v1/runs/{ID}/report").body


def test_while_one_question_is_asked_another_waits_and_the_end_too(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.enter()
    go, run = threading.Event(), ExploredFile.run

    def slow(*args: Any) -> Any:
        assert go.wait(20)
        return run(*args)

    monkeypatch.setattr(ExploredFile, "run", slow)
    assert served.send("POST", "/v1/runs", {"id": ID, "question": question()}).json["state"] == "asking"
    assert "wait" in sentence(served.send("POST", "/v1/runs", {"id": "1" * 32, "question": question()}), 409)
    assert "end when it is answered" in sentence(served.send("POST", "/v1/end", {}), 409)
    assert served.send("POST", "/v1/plan", {"question": question()}).status == 200
    go.set()
    until_done(served)
    assert served.send("POST", "/v1/end", {}).json == {"ended": True}
    served._thread.join(20)
    assert not served._thread.is_alive()


def test_beyond_the_limit_is_a_sentence(served: Served, file: ExploredFile) -> None:
    served.enter()
    with sv.limit(epsilon=1.5):
        said = sentence(served.send("POST", "/v1/runs", {"id": ID, "question": question()}), 400)
    assert said.startswith("with this study these records would have cost epsilon 2 in all, and the limit is 1.5")
    assert file.spent == 0.0


def test_no_answer_no_hint_and_no_log_shows_a_record_or_a_key(
    served: Served, hints: list[str], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    served.enter()
    asks = [
        question(),
        question(site="clinic"),
        question(site="clinic", only="north", taus=[0.25, 0.9]),
        question(value="age", method="staged"),
        question(value="age", resolution="5"),
        question(value="score", method="sequence"),
        question(guess={"kind": "sd", "sd": "14"}),
        question(value="day", guess={"kind": "bounds", "low": "2000-01-01", "high": "2030-01-01"}),
        *BAD,
    ]
    for k, asked in enumerate(asks):
        id = f"{k:032x}"
        for path, given in (
            ("/v1/plan", {"question": asked}),
            ("/v1/sites", {"question": asked}),
            ("/v1/runs", {"id": id, "question": asked}),
        ):
            answer = served.send("POST", path, given)
            assert answer.status in (200, 400), answer.body
        if answer.status == 200:
            assert until_done(served, id)["state"] == "done"
            for more in ("", "/result", "/report"):
                assert served.send("GET", f"/v1/runs/{id}{more}").status == 200
    served.send("GET", "/v1/file")
    assert served.send("GET", "/v1/runs").json["spent"] > 10
    written = capfd.readouterr()
    told = [each.decode() for each in served.bodies] + [*hints, caplog.text, written.out, written.err]
    assert len(told) > 150
    for text in told:
        assert not [mark for mark in MARKS if mark in text], text[:300]
    assert served.key not in "".join([*hints, caplog.text, written.out, written.err])
    assert (written.out, written.err) == ("", "")


def test_an_error_that_nobody_expected_names_its_class_alone(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any) -> None:
        raise ValueError("Zebulon 987654")

    served.enter()
    monkeypatch.setattr(ExploredFile, "plan", failing)
    said = sentence(served.send("POST", "/v1/plan", {"question": question()}), 500)
    assert said.startswith("an unexpected ValueError at sottovoce.")
    assert "987654" not in said
    assert served.send("GET", "/v1/file").status == 200


def test_keys_and_tokens_are_long_and_different() -> None:
    one, two = Entrance(), Entrance()
    assert len({one.token, two.token, str(one.enter(one.token)), str(two.enter(two.token))}) == 4
    assert len(one.token) == 64


def test_connections_that_say_nothing_hold_up_nobody(served: Served) -> None:
    served.enter()
    quiet = [socket.create_connection(("127.0.0.1", served.server.port), timeout=10) for _ in range(50)]
    assert served.send("GET", "/v1/file").status == 200
    for each in quiet:
        each.close()


def test_connections_that_break_say_nothing_in_the_terminal(served: Served, capfd: pytest.CaptureFixture[str]) -> None:
    for line in (b"GET / HTTP/1.1\r\nhost: " + served.host.encode() + b"\r\n\r\n", b"POST /v1/enter HTTP/1.1\r\n"):
        raw = socket.create_connection(("127.0.0.1", served.server.port), timeout=10)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closed by a reset
        raw.sendall(line)
        raw.close()
    assert served.send("GET", "/").status == 200
    half = f"POST /v1/enter HTTP/1.1\r\nhost: {served.host}\r\norigin: http://{served.host}\r\n"
    whole = (half + "content-type: application/json\r\ncontent-length: 500\r\n\r\n{").encode()
    for line in (b"", b"GET", b"GET / HTTP/1.1\r\nhost", half.encode(), whole):  # and no more of it
        with socket.create_connection(("127.0.0.1", served.server.port), timeout=10) as raw:
            raw.sendall(line)
            raw.shutdown(socket.SHUT_WR)
            answer = raw.makefile("rb").read()
        assert answer == b"" if line == b"" else b'{"error": "' in answer
    assert served.send("GET", "/").status == 200
    served.server._server.handle_error(None, None)  # whatever else may go wrong with a connection
    assert capfd.readouterr() == ("", "")


def test_a_session_without_a_question_has_nothing_to_say(session: ExploreSession) -> None:
    said = io.StringIO()
    with redirect_stderr(said):
        assert session.headlines() == []
    assert said.getvalue() == ""
    assert json.dumps(session.runs()) == '{"runs": [], "spent": 0.0}'
