"""`python -m tests.browser.film`: the page of the service in pictures and as a film."""

from __future__ import annotations

import argparse
import io
import tempfile
import time
from pathlib import Path

from PIL import Image

from demo.people import People
from demo.session import fill
from demo.shelves import help_desk
from samewise import Client
from tests.browser import chromium
from tests.browser.served import Served

WIDTH, HEIGHT = 1200, 800
LISTS, SCENES = 350, 7
"""Judged lists that users teach, and pictures of the charts while they do."""


def main():
    parser = argparse.ArgumentParser("python -m tests.browser.film", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/pictures"), help="folder")
    out = parser.parse_args().out
    path = chromium.find()
    if path is None:
        raise SystemExit("A film needs Chromium: apt-get install chromium.")
    with tempfile.TemporaryDirectory() as folder:
        served = Served(Path(folder) / "data")
        browser = chromium.Chromium(path, Path(folder) / "profile")
        try:
            frames = record(browser, served, out)
        finally:
            browser.close()
            served.close()
    write(frames, out / "page.webp")


def record(browser, served, out):
    """The frames of the film, with seconds; some of them are pictures of their own."""
    shelf, frames = help_desk(), []

    def take(seconds, name=None):
        time.sleep(0.9)
        file = Path(out) / f"{name or 'frame'}.png"
        browser.screenshot(file, whole=False)
        with Image.open(io.BytesIO(file.read_bytes())) as image:
            few = image.convert("RGB").quantize(128)
        frames.append((few.convert("RGB"), seconds))
        if name is None:
            file.unlink()
        else:
            few.save(file, optimize=True)

    with Client(served.url, shelf.name, timeout=120) as client:
        fill(client, shelf)
        people = People(client, shelf, 0)
        browser.open(served.url, width=WIDTH, height=HEIGHT)
        browser.wait_for("document.querySelectorAll('.pick').length > 0")
        ask(browser, shelf.questions[0])
        take(2)
        about = dict(zip(shelf.ids, shelf.groups.tolist(), strict=True))
        for id in browser.evaluate(
            "[...document.querySelectorAll('[data-id]')].map(e => e.dataset.id)"
        ):
            mark = "up" if about[id] == shelf.wanted[0] else "down"
            browser.evaluate(f"document.querySelector('[data-key=\"{mark} {id}\"]').click()")
        take(2)
        browser.evaluate("document.querySelector('#teach').click()")
        take(1.5)
        browser.evaluate("location.hash = 'learning'")
        for _ in range(SCENES):
            people.teach(LISTS // SCENES, time.monotonic() + 120)
            take(0.8)
        take(2, "page_learning")
    browser.evaluate("location.hash = 'map'")
    browser.wait_for("document.querySelector('canvas.map').getAttribute('aria-label')")
    take(2)
    browser.evaluate("location.hash = 'search'")
    ask(browser, shelf.questions[4])
    ask(browser, shelf.questions[0])
    browser.evaluate("document.querySelector('[data-key^=why]').click()")
    browser.wait_for("document.querySelector('.why')")
    take(3, "page_search")
    return frames


def ask(browser, text):
    browser.evaluate(
        f"document.querySelector('#query').value = {text!r};"
        "document.querySelector('[role=search]').requestSubmit(); true"
    )
    browser.wait_for(f"document.querySelector('.lists').dataset.asked === {text!r}")


def write(frames, path):
    first, *others = [image for image, _ in frames]
    durations = [int(1000 * seconds) for _, seconds in frames]
    more = {"save_all": True, "append_images": others, "duration": durations, "loop": 0}
    first.save(path, **more, quality=60, method=4)
    print(f"{path}: {len(frames)} frames, {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
