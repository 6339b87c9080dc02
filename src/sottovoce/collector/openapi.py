"""What the collector says of itself in the words of OpenAPI; a test holds every route and answer against it."""

from typing import Any

from sottovoce.core.version import VERSION
from sottovoce.protocol.device import IDENTITY, MOST_REPORTS, SIZE

Schema = dict[str, Any]

_TEXT, _TRUTH, _WHOLE = {"type": "string"}, {"type": "boolean"}, {"type": "integer", "minimum": 0}
_NUMBER = {"type": "number"}
_MAYBE = {"type": ["number", "null"]}
_HEX = {"type": "string", "pattern": "^[0-9a-f]{32}$"}


def _object(needed: Schema, more: Schema | None = None, *, closed: bool = False) -> Schema:
    """Return the schema of an object that has these properties, and may have more."""
    whole: Schema = {"type": "object", "properties": {**needed, **(more or {})}, "required": sorted(needed)}
    return whole | ({"additionalProperties": False} if closed else {})


_ERROR = _object({"error": _TEXT}, closed=True)
_ENDS = {"type": ["array", "null"], "items": _MAYBE, "minItems": 2, "maxItems": 2}
_COEFFICIENT = _object(
    {"name": _TEXT, "estimate": _NUMBER, "interval": _ENDS, "why": {"type": ["string", "null"]}}, closed=True
)
_LEVEL = _object(
    {"tau": _NUMBER},
    {
        "estimate": _MAYBE,
        "interval": _ENDS,
        "coefficients": {"type": ["array", "null"], "items": _COEFFICIENT},
        "why": {"type": ["string", "null"]},
    },
    closed=True,
)
_TOLD = {
    "tau": _MAYBE,
    "estimate": _MAYBE,
    "interval": _ENDS,
    "late": _WHOLE,
    "levels": {"type": "array", "items": _LEVEL},
}
_KNOWN = _object({"group": _TEXT, "reports": _WHOLE, "rounds": _WHOLE, "over": _TRUTH}, _TOLD)
_NOTED = _object({"at": _NUMBER, "group": _TEXT, "reports": _WHOLE, "rounds": _WHOLE, "over": _TRUTH}, _TOLD)
_ABOUT = _object(
    {
        "study": _HEX,
        "name": _TEXT,
        "question": _TEXT,
        "groups": {"type": "array", "items": _TEXT, "minItems": 1},
        "method": _TEXT,
        "level": _NUMBER,
        "epsilon": _NUMBER,
        "people": _WHOLE,
        "state": {"enum": ["open", "paused", "closed"]},
        "over": _TRUTH,
        "reports": _WHOLE,
    },
    closed=True,
)
_ASKED = _object(
    {"study": _HEX, "group": _WHOLE},
    {
        "round": _WHOLE,
        "over": _TRUTH,
        "wait": _MAYBE,
        "needs": {"type": "array", "items": _WHOLE},
        "points": {"type": "array", "items": _NUMBER},
        "periods": {"type": "array", "items": _NUMBER},
        "channels": {"type": "array", "items": {"type": "object"}},
    },
)
_UPLOADED = _object(
    {
        "accepted": _WHOLE,
        "refused": {
            "type": "array",
            "items": {"type": "array", "prefixItems": [_WHOLE, _TEXT], "minItems": 2, "maxItems": 2},
        },
    },
    closed=True,
)
_WIDTH = _object(
    {"of": _TEXT, "low": _MAYBE, "high": _MAYBE, "text": _TEXT, "width": _MAYBE, "assuming": _TEXT}, closed=True
)
_PLANNED = {
    "anyOf": [
        _object({"refused": _TEXT}, closed=True),
        _object(
            {
                "epsilon": _NUMBER,
                "people": _WHOLE,
                "rounds": _TEXT,
                "grace": _NUMBER,
                "expected": {"type": "array", "items": _WIDTH},
                "warnings": {"type": "array", "items": _TEXT},
                "toml": _TEXT,
            },
            closed=True,
        ),
    ]
}
_STUDY = {"name": "study", "in": "path", "required": True, "schema": _HEX, "description": "16 bytes of SHA-256"}
_GROUP = {"name": "group", "in": "query", "schema": _TEXT, "description": "a group's name; the first by default"}
_REPORTS = {"type": "string", "format": "binary", "maxLength": IDENTITY + MOST_REPORTS * SIZE}


def _answer(schema: Schema, says: str, kind: str = "application/json") -> Schema:
    """Return the description of an answer."""
    return {"description": says, "content": {kind: {"schema": schema}}}


def _operation(
    name: str,
    says: str,
    answer: Schema,
    *,
    parameters: tuple[Schema, ...] = (),
    errors: tuple[int, ...] = (),
    body: Schema | None = None,
    kind: str = "application/json",
    status: int = 200,
    answered: str = "application/json",
    admin: bool = False,
) -> Schema:
    """Return the description of an operation; too many requests, and a log that is away, may always be told so."""
    refusals = (*errors, 401) if admin else errors
    answers = {str(status): _answer(answer, "done", answered)}
    answers |= {str(each): _answer(_ERROR, "refused, in one sentence") for each in (*refusals, 429, 503)}
    whole: Schema = {"operationId": name, "summary": says, "responses": answers}
    if parameters:
        whole["parameters"] = list(parameters)
    if body is not None:
        whole["requestBody"] = {"required": True, "content": {kind: {"schema": body}}}
    if admin:
        whole["security"] = [{"key": []}]
    return whole


def description() -> Schema:
    """Return the whole description."""
    one, grouped = (_STUDY,), (_STUDY, _GROUP)
    read = (401, 404)
    paths: dict[str, Schema] = {
        "/health": {"get": _operation("health", "Is it there?", _object({"studies": _WHOLE, "open": _WHOLE}))},
        "/metrics": {"get": _operation("metrics", "Counts for Prometheus", _TEXT, answered="text/plain")},
        "/v1/openapi.json": {"get": _operation("openapi", "This description", {"type": "object"})},
        "/v1/studies": {
            "get": _operation("list_studies", "All studies", {"type": "array", "items": _ABOUT}),
            "post": _operation(
                "begin_study",
                "Begin a study",
                _ABOUT,
                errors=(400, 503),
                body={"type": "object"},
                status=201,
                admin=True,
            ),
        },
        "/v1/plan": {
            "post": _operation(
                "plan", "What a study would come to", _PLANNED, errors=(400,), body={"type": "object"}, admin=True
            )
        },
        "/v1/studies/{study}": {"get": _operation("about", "One study", _ABOUT, parameters=one, errors=read)},
        "/v1/studies/{study}/card": {
            "get": _operation("card", "Its public terms", {"type": "object"}, parameters=one, errors=(404,))
        },
        "/v1/studies/{study}/query": {
            "get": _operation("query", "What is asked now", _ASKED, parameters=grouped, errors=(404, 421, 503))
        },
        "/v1/studies/{study}/estimate": {
            "get": _operation("estimate", "Estimate and interval", _KNOWN, parameters=grouped, errors=read)
        },
        "/v1/studies/{study}/trajectory": {
            "get": _operation(
                "trajectory", "After each round", {"type": "array", "items": _NOTED}, parameters=one, errors=read
            )
        },
        "/v1/studies/{study}/events": {
            "get": _operation(
                "events",
                "Each round as it closes",
                _TEXT,
                parameters=one,
                errors=(*read, 503),
                answered="text/event-stream",
            )
        },
        "/v1/studies/{study}/state": {
            "post": _operation(
                "set_state",
                "Pause, open or close",
                _ABOUT,
                parameters=one,
                errors=(400, 404, 503),
                body=_object({"state": {"enum": ["open", "paused", "closed"]}}, closed=True),
                admin=True,
            )
        },
        "/v1/studies/{study}/scrub": {
            "post": _operation(
                "scrub",
                "Remove letters of closed rounds",
                _object({"scrubbed": _WHOLE}, closed=True),
                parameters=one,
                errors=(404,),
                admin=True,
            )
        },
        "/v1/reports": {
            "post": _operation(
                "upload",
                "16 bytes of study, then 25 bytes a report; answered once they are kept",
                _UPLOADED,
                parameters=(_GROUP | {"description": "lets a proxy find the group's host; not looked at here"},),
                errors=(400, 408, 503),
                body=_REPORTS,
                kind="application/octet-stream",
            )
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Sottovoce collector",
            "version": VERSION,
            "summary": "One private report from each device; estimates with confidence intervals.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }
