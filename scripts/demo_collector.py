"""A collector and 20,000 simulated devices on one machine: each answers once, with one letter, while a page looks on.

The waits of two clinics are drawn from a seed: whole minutes, zeros among them, many rounded to five. The letters are
drawn by the device's own code from the system's entropy, and sent to the public addresses of the service. `make
demo-collector`; with --stay the page stays open at the end.
"""

import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

import sottovoce as sv
from sottovoce.client.device import make_report
from sottovoce.protocol.device import IDENTITY, check_cap, identity, read_card

GROUPS, PEOPLE, TAU, EPSILON = {"north": 18.0, "south": 27.0}, 10_000, 0.5, 1.0
BATCH, PAUSE = 100, 0.08  # devices that come together, and seconds between them
PICTURE = Path("demo") / "collector.png"
DEADLINE = 5  # seconds: the last round lacks some answers, because devices draw their point by lot
DRAWN = 4.0  # seconds that a page may take to draw
FLAGS = ["--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--hide-scrollbars"]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
STUDY = f"""name = "Waiting time"
question = "How many minutes did you wait today?"
groups = [{", ".join(f'"{name}"' for name in GROUPS)}]
people = {PEOPLE}

[quantile]
tau = {TAU}
epsilon = {EPSILON}
bounds = [0, 240]
resolution = 1

[rounds]
grace = 0.05
deadline = {DEADLINE}
"""


class Service:
    """The collector as a program of its own."""

    def __init__(self, folder: Path) -> None:
        (folder / "study.toml").write_text(STUDY)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        line = [
            sys.executable,
            "-m",
            "sottovoce",
            "collect",
            str(folder / "study.toml"),
            "--port",
            str(port),
            "--rate",
            "0",
        ]
        self.process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.study = f"{self.url}/v1/studies/{self._begun()}"

    def _begun(self) -> str:
        """Return the study's name once the service answers."""
        for _ in range(200):
            try:
                found: str = json.loads(fetched(f"{self.url}/v1/studies"))[0]["study"]
                return found
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.1)
        raise SystemExit("the collector did not start: is sottovoce[collector] installed?")

    def about(self, what: str, **query: str) -> Any:
        """Return what the service says of the study."""
        return json.loads(fetched(f"{self.study}/{what}?{urllib.parse.urlencode(query)}"))

    def stop(self) -> None:
        """End the service."""
        self.process.terminate()
        self.process.wait(20)


def fetched(url: str, body: bytes | None = None) -> bytes:
    """Return what the service answers."""
    with urllib.request.urlopen(url, data=body, timeout=20) as answer:
        found: bytes = answer.read()
        return found


def waits() -> dict[str, list[float]]:
    """Return the waits of every person: whole minutes, some of them zero, a third rounded to five."""
    dice = sv.sim.dice(17).generator()
    found = {}
    for name, mean in GROUPS.items():
        minutes = np.rint(dice.gamma(1.6, mean / 1.6, PEOPLE)) * (dice.random(PEOPLE) > 0.08)
        rounded = dice.random(PEOPLE) < 1 / 3
        found[name] = np.where(rounded, 5 * np.rint(minutes / 5), minutes).tolist()
    return found


def answer(service: Service, waiting: dict[str, list[float]], say: Any) -> tuple[int, int]:
    """Let devices come in small crowds until all have answered or nobody is asked; return how many counted."""
    text = fetched(f"{service.study}/card").decode()
    card, study = read_card(text), identity(text)
    check_cap(card, EPSILON)
    kept = refused = told = 0
    over: set[str] = set()
    while open_ := [name for name, values in waiting.items() if values and name not in over]:
        for name in open_:
            query = service.about("query", group=name)
            if query.get("over"):
                over.add(name)
            if "needs" not in query:
                continue
            come = min(BATCH, len(waiting[name]), sum(query["needs"]))
            reports = [make_report(card, study, query, waiting[name].pop())[IDENTITY:] for _ in range(come)]
            said = json.loads(fetched(f"{service.url}/v1/reports", study + b"".join(reports)))
            kept, refused = kept + said["accepted"], refused + len(said["refused"])
        if kept >= told + 4000:
            told = kept
            now = [(name, service.about("estimate", group=name)) for name in waiting]
            say(f"{kept:,} reports; " + "; ".join(f"{name} {shown(each['interval'])}" for name, each in now))
        time.sleep(PAUSE)
    for _ in range(10 * DEADLINE):
        if all(service.about("query", group=name).get("over") for name in waiting):
            break
        time.sleep(0.2)
    return kept, refused


def shown(ends: Any) -> str:
    """Return an interval in words."""
    if ends is None:
        return "no interval yet"
    low, high = ("open" if end is None else f"{end:g}" for end in ends)
    return f"{low} to {high}"


def picture(url: str) -> str:
    """Save what the page shows, if there is a browser; return what came of it."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        return "no Chromium is installed, so there is no picture of the page"
    with tempfile.TemporaryDirectory(prefix="sottovoce-browser-", ignore_cleanup_errors=True) as profile:
        browser = Browser(found, profile)
        try:
            image = browser.shoot(url)
        except (OSError, ValueError, KeyError):
            return "the browser took no picture of the page"
        finally:
            browser.stop()
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_bytes(image)
    return f"the page as a picture: {PICTURE}"


class Browser:
    """A browser without a window, spoken to over its own pipe: a JSON object each, ended by a zero byte."""

    def __init__(self, program: str, profile: str) -> None:
        heard, self._out = os.pipe()
        self._in, told = os.pipe()
        words = [program, *FLAGS, f"--user-data-dir={profile}", "--remote-debugging-pipe"]
        words += ["--no-sandbox"] if os.geteuid() == 0 else []  # which a browser of root needs
        line = ["sh", "-c", f'exec "$@" 3<&{heard} 4>&{told}', "sh", *words]
        no = subprocess.DEVNULL
        self._process = subprocess.Popen(line, pass_fds=(heard, told), stdout=no, stderr=no)
        os.close(heard)
        os.close(told)
        self._asked, self._rest = 0, b""

    def ask(self, method: str, session: str | None = None, **params: Any) -> Any:
        """Return what the browser answers; what it tells of itself is passed over."""
        self._asked += 1
        words = {"id": self._asked, "method": method, "params": params, **({"sessionId": session} if session else {})}
        os.write(self._out, json.dumps(words).encode() + b"\0")
        while True:
            while b"\0" not in self._rest:
                part = os.read(self._in, 1 << 16)
                if not part:
                    raise OSError("the browser has gone")
                self._rest += part
            line, _, self._rest = self._rest.partition(b"\0")
            told = json.loads(line)
            if told.get("id") == self._asked:
                return told["result"]

    def shoot(self, url: str) -> bytes:
        """Return a picture of a page once it has drawn."""
        target = self.ask("Target.createTarget", url=url)["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        size = {"width": 1000, "height": 1150, "deviceScaleFactor": 1, "mobile": False}
        self.ask("Emulation.setDeviceMetricsOverride", session, **size)
        time.sleep(DRAWN)
        return base64.b64decode(self.ask("Page.captureScreenshot", session, format="png")["data"])

    def stop(self) -> None:
        """End the browser."""
        self._process.terminate()
        self._process.wait(20)
        os.close(self._out)
        os.close(self._in)


def main() -> int:
    """Run the demonstration; 0 if all went as it must."""
    began = time.monotonic()

    def say(text: str) -> None:
        sys.stdout.write(f"{time.monotonic() - began:5.1f} s  {text}\n")
        sys.stdout.flush()

    people = waits()
    truth = {name: sorted(values)[int(TAU * len(values))] for name, values in people.items()}
    with tempfile.TemporaryDirectory(prefix="sottovoce-") as folder:
        service = Service(Path(folder))
        page = service.study.replace("/v1/", "/")
        try:
            say(f"look on: {page}   answer yourself: {page}/survey   all studies: {service.url}/")
            kept, refused = answer(service, people, say)
            say(f"{kept:,} reports are kept, {refused:,} were turned away; each told one letter, epsilon {EPSILON:g}")
            found = {name: service.about("estimate", group=name) for name in GROUPS}
            say(picture(page))
            sys.stdout.write(f"\n{'median wait, minutes':<24}{'estimate':>10}{'95% interval':>16}{'in truth':>10}\n")
            for name, each in found.items():
                sys.stdout.write(f"{name:<24}{each['estimate']:>10g}{shown(each['interval']):>16}{truth[name]:>10g}\n")
            sys.stdout.write("\n")
            if "--stay" in sys.argv[1:]:
                say(f"the page stays open: {page} (stop with Ctrl-C)")
                service.process.wait()
        except KeyboardInterrupt:
            say("stopped")
        finally:
            service.stop()
    good = kept > 0.9 * PEOPLE * len(GROUPS) and all(each["interval"] for each in found.values())
    say("done" if good else "not all answers were kept")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
