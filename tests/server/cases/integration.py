"""The methods of data integration, answered by sites without a record."""

from collections.abc import Sequence
from typing import Any

from tests.server.integration.answers import Answers, planned

from sottovoce.protocol.messages import Message
from sottovoce.server.integration.chains import ChainMethod, ChainStudy
from sottovoce.server.integration.method import IntegrationMethod, OpenSummary
from sottovoce.server.method import Queries, Replies

from .subject import Case, Subject


def remembered(sites: Sequence[Answers | None]) -> Any:
    """Return replies to queries, each of which is answered once and may be asked again."""
    said: dict[tuple[int, Message], Message] = {}

    def reply(state: Any, queries: Queries) -> Replies:
        for k, message in enumerate(queries.messages):
            site = sites[k]
            if message is not None and site is not None and (k, message) not in said:
                said[k, message] = site.reply(message)
        return [None if message is None else said[k, message] for k, message in enumerate(queries.messages)]

    return reply


def whole(method: str) -> Case:
    def made(order: Sequence[int]) -> Subject:
        plan = planned(method)
        return Subject(
            lambda: IntegrationMethod(plan),
            remembered([None if site.study is None else Answers(site) for site in plan.asked]),
            lambda result: result.estimate,
            stride=29,
        )

    return made


def chains(order: Sequence[int]) -> Subject:
    site = planned("ivw").asked[1]
    assert site.study is not None
    study = ChainStudy(0.5, site.study.channels[0], 4)
    one = Answers(site)
    return Subject(
        lambda: ChainMethod(study, 900),
        remembered([one]),
        lambda found: found.measured.estimate,
        stride=29,
    )


def open_site(order: Sequence[int]) -> Subject:
    site = planned().asked[2]
    one = Answers(site)
    return Subject(
        lambda: OpenSummary(0.5, 0.95, 400, "site 'open'"),
        remembered([one]),
        lambda report: report.estimate,
        stride=1,
    )


CASES: dict[str, Case] = {
    "IntegrationMethod-valid": whole("valid"),
    "ChainMethod": chains,
    "OpenSummary": open_site,
}
