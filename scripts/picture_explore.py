"""Draw docs/explore.png: the page of `sottovoce explore` on the flights, after one question, in a Chromium.

Run ``make flights.csv`` and then ``python scripts/picture_explore.py``. The noise is the operating system's, so every
picture differs.
"""

import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "explore.png"
WIDTH, COLOURS = 1000, 128


def ask(page: Page) -> None:
    """Ask for the 0.9 quantile of arrival delays by carrier."""
    page.select_option("#value", "arr_delay")
    page.select_option("#site", "carrier")
    page.locator(".tau [type=range]").fill("0.9")
    page.check("[value=sd]")
    page.fill("#sd", "40")
    page.locator("#paid:not([hidden])").wait_for()
    page.locator("#ask:enabled").click()
    page.locator("#answer:not([hidden])").wait_for()
    page.locator("#warnings li").wait_for()  # that the question was asked before: the plan is up to date again


def picture(url: str, chromium: str | None) -> bytes:
    """Return the page from its head to the privacy statement of the answer."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 900}, reduced_motion="reduce")
        page.goto(url)
        page.locator("#form:not([hidden])").wait_for()
        ask(page)
        page.evaluate("() => { document.activeElement.blur(); scrollTo(0, 0); }")
        end = page.locator("#promise").bounding_box()
        assert end is not None
        clip = {"x": 0.0, "y": 0.0, "width": float(WIDTH), "height": end["y"] + end["height"] + 4}
        found = page.screenshot(full_page=True, clip=clip)  # type: ignore[arg-type]
        browser.close()
        return found


def main() -> None:
    """Draw the picture, in as few colours as it needs."""
    line = [sys.executable, "-m", "sottovoce", "explore", "flights.csv", "--no-browser", "--limit", "4"]
    with subprocess.Popen(line, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        found = re.search(r"http\S+", process.stderr.readline())
        assert found is not None
        drawn = picture(found[0], shutil.which("chromium"))
        process.terminate()
    Image.open(io.BytesIO(drawn)).convert("RGB").quantize(COLOURS).save(TARGET, optimize=True)
    sys.stdout.write(f"{TARGET}: {TARGET.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
