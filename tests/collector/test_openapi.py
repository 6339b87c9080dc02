"""The collector does what its description says, and says all that it does; requests are made up from it."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import booleans
from jsonschema_rs import Draft202012Validator
from schemathesis.specs.openapi.checks import ignored_auth, positive_data_acceptance
from starlette.routing import Route
from tests.collector.calling import call

from sottovoce.client.device import make_report
from sottovoce.collector.access import Access
from sottovoce.collector.keys import make_key
from sottovoce.collector.openapi import description
from sottovoce.collector.routes import Routes
from sottovoce.collector.service import CollectorService
from sottovoce.collector.store import CollectorStore
from sottovoce.collector.studies import CollectedStudies
from sottovoce.collector.study import collected_of
from sottovoce.collector.uploads import Uploads
from sottovoce.protocol.device import identity, read_card

GIVEN: dict[str, Any] = {"name": "age", "people": 3000, "quantile": {"tau": 0.5, "epsilon": 1.0, "bounds": [0, 120]}}


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, str, str]]:
    """A collector with one study, the key of its admin, and the study's name in hexadecimal digits."""
    store = CollectorStore(str(tmp_path_factory.mktemp("log") / "log"))
    key = make_key(store, "me", "admin")
    studies = CollectedStudies(store)
    study = studies.begin(collected_of(GIVEN), GIVEN).identity.hex()
    yield CollectorService(studies, Access(store, rate=0)), key, study
    store.close()


def paths_served(tmp_path: Path) -> set[tuple[str, str]]:
    store = CollectorStore(str(tmp_path / "log"))
    studies, access = CollectedStudies(store), Access(store)
    routes: list[Route] = Routes(studies, Uploads(studies, access), access).routes
    found = {
        (route.path, method.lower())
        for route in routes
        for method in (route.methods or set())
        if method not in ("HEAD", "OPTIONS")
    }
    store.close()
    return found | {("/v1/reports", "post")}


def test_every_route_is_described_and_none_else(tmp_path: Path) -> None:
    told = {(path, method) for path, methods in description()["paths"].items() for method in methods}
    assert told == paths_served(tmp_path)
    names = [each["operationId"] for methods in description()["paths"].values() for each in methods.values()]
    assert len(set(names)) == len(names)


def calls() -> list[tuple[str, str]]:
    """Return all operations but the stream of events, which has no end."""
    every = [(path, method) for path, methods in description()["paths"].items() for method in methods]
    return [each for each in every if not each[0].endswith("/events")]


@pytest.mark.parametrize(("path", "method"), calls())
def test_what_is_answered_is_what_is_described(collector: tuple[Any, str, str], path: str, method: str) -> None:
    app, key, study = collector
    operation = schemathesis.openapi.from_asgi("/v1/openapi.json", app)[path][method]
    here = {"headers": {"authorization": f"Bearer {key}"}, "excluded_checks": [positive_data_acceptance, ignored_auth]}

    @given(case=operation.as_strategy(), known=booleans())
    @settings(max_examples=30, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
    def run(case: Any, known: bool) -> None:
        if known and "study" in case.path_parameters:
            case.path_parameters["study"] = study
        case.call_and_validate(**here)

    run()


def fits(path: str, method: str, answer: httpx.Response) -> httpx.Response:
    """Hold an answer that was asked for, not made up, against its description: that of a success."""
    known = description()["paths"][path][method]["responses"]
    assert 200 <= answer.status_code < 300
    ((kind, content),) = known[str(answer.status_code)]["content"].items()
    assert answer.headers["content-type"].partition(";")[0] == kind
    Draft202012Validator(content["schema"]).validate(answer.json())
    return answer


QUANTILE = {"tau": 0.5, "epsilon": 2.0, "bounds": [0, 120]}
FITTED = {"response": "y", "tau": 0.5, "epsilon": 6.0, "features": {"x": [0, 1]}}


@pytest.mark.parametrize(
    "asked",
    [
        {"quantile": QUANTILE},
        {"quantile": QUANTILE | {"tau": [0.4, 0.6]}},
        {"quantile": QUANTILE | {"method": "staged"}},
        {"regression": FITTED},
    ],
    ids=["sequence", "levels", "staged", "regression"],
)
def test_what_a_study_tells_from_its_beginning_to_its_end_is_described(
    collector: tuple[Any, str, str], asked: dict[str, Any]
) -> None:
    app, key, _ = collector
    given = {"name": f"whole {asked}", "people": 1500, "rounds": {"grace": 0, "deadline": 0.01}, **asked}
    allowed = {"authorization": f"Bearer {key}"}
    fits("/v1/plan", "post", call(app, "POST", "/v1/plan", json=given, headers=allowed))
    begun = fits("/v1/studies", "post", call(app, "POST", "/v1/studies", json=given, headers=allowed)).json()
    one = f"/v1/studies/{begun['study']}"

    def get(what: str) -> Any:
        return fits(f"/v1/studies/{{study}}{what}", "get", call(app, "GET", one + what))

    text = get("/card").text
    card, study = read_card(text), identity(text)
    for _ in range(60):
        query = get("/query").json()
        if query.get("over"):
            break
        if query.get("wait") is None:
            value: Any = {"y": 40.0, "x": 0.5} if card.regression else 40.0
            reports = [make_report(card, study, query, value)[16:] for _ in range(min(sum(query["needs"]), 200))]
            sent = study + b"".join(reports) + bytes(25)
            told = fits("/v1/reports", "post", call(app, "POST", "/v1/reports", content=sent)).json()
            assert told["accepted"] == len(reports)
            assert len(told["refused"]) == 1
        app.uploads.commit()
    noted = get("/trajectory").json()
    assert noted
    assert get("").json()["reports"] == get("/estimate").json()["reports"] > 0
    if asked == {"quantile": QUANTILE}:
        assert any(each["interval"] for each in noted)
    for state in ("paused", "open", "closed"):
        where = "/v1/studies/{study}/state"
        told = fits(where, "post", call(app, "POST", f"{one}/state", json={"state": state}, headers=allowed))
        assert told.json()["state"] == get("").json()["state"] == state
    fits("/v1/studies/{study}/scrub", "post", call(app, "POST", f"{one}/scrub", headers=allowed))
    fits("/v1/studies", "get", call(app, "GET", "/v1/studies"))


def test_those_need_a_key_that_are_said_to(collector: tuple[Any, str, str]) -> None:
    app, _, study = collector
    for path, methods in description()["paths"].items():
        for method, whole in methods.items():
            if path.endswith("/events"):
                continue
            said = bool(whole.get("security"))
            assert said == (call(app, method, path.replace("{study}", study), json={}).status_code == 401)


@pytest.mark.parametrize("header", [None, "Bearer nobody", "Basic bWU6bm9ib2R5", "Basic %", "Bearer"])
def test_without_the_key_of_an_admin_nothing_is_changed(collector: tuple[Any, str, str], header: str | None) -> None:
    app, key, study = collector
    headers = {} if header is None else {"authorization": header}
    for path in ("", f"/{study}/state", f"/{study}/scrub"):
        told = call(app, "POST", f"/v1/studies{path}", json={"state": "closed"}, headers=headers)
        assert (told.status_code, told.headers["www-authenticate"]) == (401, "Bearer")
        assert told.json()["error"].startswith("this needs the key of an admin")
    basic = base64.b64encode(f"me:{key}".encode()).decode()  # a browser would send it for another site's page, too
    told = call(app, "POST", f"/v1/studies/{study}/scrub", headers={"authorization": f"Basic {basic}"})
    assert told.status_code == 401
