"""What sites published of their quantiles, as a user writes it down: a JSON file from name to estimate and error."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sottovoce.core.errors import BadInput

if TYPE_CHECKING:
    from sottovoce.core.unit import Unit
    from sottovoce.server.integration.site_summary import SiteSummary

Told = dict[str, dict[str, Any]]
EXAMPLE = '{"north": {"estimate": 17.2, "se": 0.3}}'


def read_told(text: str) -> Told:
    """Read the file of --summaries: one object with an object for each site."""
    path = Path(text).expanduser()
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=_once)
    except OSError as error:
        raise BadInput(f"--summaries is {path}, which cannot be read ({error.strerror}); check it.") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not text in UTF-8; write it again.") from None
    except json.JSONDecodeError as error:
        raise BadInput(f"{path} is not JSON (line {error.lineno}); correct it.") from None
    except RecursionError:
        raise BadInput(f"{path} is nested too deeply; write it as in {EXAMPLE}.") from None
    except BadInput as error:
        raise BadInput(f"{path} {error}") from None
    if not isinstance(found, dict) or not found:
        raise BadInput(f"{path} does not say what each site published; write it as in {EXAMPLE}.")
    for name, value in found.items():
        if not isinstance(value, dict):
            raise BadInput(f"{path} does not say what {name!r} published in braces; write it as in {EXAMPLE}.")
    return found


def in_unit(told: Mapping[str, Mapping[str, Any]], unit: "Unit | None", path: str) -> "dict[str, SiteSummary]":
    """Turn what was read into summaries; where there are records of dates or durations, it may be written as such."""
    from sottovoce.server.integration.site_summary import summary_from

    found = {}
    for name, given in told.items():
        where = f"{name!r} in {path}"
        found[name] = summary_from(given if unit is None else _read(given, unit, where), where)
    return found


def _read(given: Mapping[str, Any], unit: "Unit", where: str) -> dict[str, Any]:
    """Read what stands there as text in the unit of the records."""
    from sottovoce.server.integration.settings import width_of

    values = dict(given)
    if isinstance(values.get("estimate"), str):
        values["estimate"] = unit.parse(values["estimate"], where=f"the estimate of {where}")
    if isinstance(values.get("se"), str):
        values["se"] = width_of(values["se"], f"se of {where}", unit)
    if isinstance(values.get("interval"), list):
        ends, place = values["interval"], f"the interval of {where}"
        values["interval"] = [unit.parse(end, where=place) if isinstance(end, str) else end for end in ends]
    return values


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that stands twice in one object, of which JSON would keep the last."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise BadInput(f"names {name!r} twice; keep one.")
        found[name] = value
    return found
