"""How a study opens: who the sites are, whether all are ready to take part, and only then the invitation.

An invited site reserves epsilon, so nobody is invited before everybody has looked at the card and is willing.
"""

from collections.abc import Sequence

from sottovoce.core.errors import BadInput
from sottovoce.core.roster import Roster
from sottovoce.federation import words
from sottovoce.federation.coordinator.exchange import Exchange, Happened, SiteRefused, listed
from sottovoce.federation.study import StudyTerms
from sottovoce.protocol import wire


class StudyPaused(BadInput):
    """A study cannot go on now; nothing is lost, and it goes on from its log when it is started again."""


def roster_of(line: Exchange, terms: StudyTerms) -> Roster:
    """Ask who the sites are, until all have said so."""
    hellos: dict[str, words.Hello] = {}

    def fits(site: str, reply: words.Reply) -> bool:
        if not isinstance(reply, words.Hello):
            return False
        if reply.site != site or reply.version != wire.VERSION or reply.size < 0:
            raise BadInput("says hello under another name, version or without records")
        hellos[site] = reply
        line.watch(Happened("hello", site, records=reply.size))
        return True

    missing = line.ask(dict.fromkeys(terms.sites, words.encode(words.Who(terms.name))), fits, 0, terms.rounds.wait)
    if missing:
        raise StudyPaused(f"{listed(missing)} did not say hello; start the study again when they are there.")
    first = hellos[terms.sites[0]]
    for site in terms.sites:
        if hellos[site].unit.censored != first.unit.censored:
            limits = [str(hellos[each].unit.censored or "none") for each in (site, terms.sites[0])]
            raise BadInput(f"site {site!r} has limits {limits[0]}, others {limits[1]}; agree on the widest everywhere.")
        if hellos[site].unit != first.unit:
            raise BadInput(
                f"site {site!r} holds {hellos[site].unit.plural}, others {first.unit.plural}; ask for one unit."
            )
    sizes = tuple(hellos[site].size for site in terms.sites)
    people = all(hello.per_person for hello in hellos.values())
    seeded = any(hello.seeded for hello in hellos.values())
    return Roster(terms.sites, sizes, first.unit, per_person=people, seeded=seeded, column=first.column)


def look(line: Exchange, names: Sequence[str], card: bytes, study: bytes, seconds: float) -> None:
    """Ask whether all sites would take part, which reserves nothing; whoever would not ends it."""

    def fits(site: str, reply: words.Reply) -> bool:
        if isinstance(reply, words.Refused) and reply.study in (study, bytes(16)):
            raise SiteRefused(site, reply.why)
        if not isinstance(reply, words.Willing) or reply.study != study:
            return False
        line.watch(Happened("willing", site))
        return True

    missing = line.ask(dict.fromkeys(names, words.encode(words.Look(card))), fits, 0, seconds)
    if missing:
        raise StudyPaused(f"{listed(missing)} did not look at the study; start it again when they are there.")


def invite(line: Exchange, names: Sequence[str], card: bytes, study: bytes, seconds: float) -> None:
    """Invite sites, which reserve what the study costs; whoever refuses now ends it."""

    def fits(site: str, reply: words.Reply) -> bool:
        if isinstance(reply, words.Refused) and reply.study in (study, bytes(16)):
            raise SiteRefused(site, reply.why)
        if not isinstance(reply, words.Joined) or reply.study != study:
            return False
        line.check_head(site, reply.counter, reply.head)
        line.watch(Happened("opened", site))
        return True

    missing = line.ask(dict.fromkeys(names, words.encode(words.Invite(card))), fits, 0, seconds)
    if missing:
        raise StudyPaused(
            f"{listed(missing)} did not open the study; start it again when they are there, or end it with --give-up."
        )
