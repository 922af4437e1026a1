"""A whole session with the page of the service, in a real browser.

With SAMEWISE_SCREENSHOTS naming a folder, pictures are kept there.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastapi")

from demo.people import People
from demo.session import fill
from demo.shelves import help_desk
from samewise import Client
from tests.browser import chromium
from tests.browser.served import AXE, Served, serious

pytestmark = pytest.mark.skipif(chromium.find() is None, reason="no Chromium on this machine")

VIEWS = ("search", "learning", "map", "hard", "people", "settings")
TEACH = "document.querySelector('#teach')"


@pytest.fixture(scope="module")
def shelf():
    pytest.importorskip("matplotlib")
    return help_desk()


@pytest.fixture(scope="module")
def served(tmp_path_factory, shelf):
    service = Served(tmp_path_factory.mktemp("served") / "data")
    try:
        with Client(service.url, shelf.name, timeout=120) as client:
            fill(client, shelf)
        yield service
    finally:
        service.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = chromium.Chromium(chromium.find(), tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


def shot(browser, name, whole=False):
    if "SAMEWISE_SCREENSHOTS" in os.environ:
        folder = Path(os.environ["SAMEWISE_SCREENSHOTS"])
        folder.mkdir(parents=True, exist_ok=True)
        # Charts and maps are drawn with the next frames.
        time.sleep(0.9)
        browser.screenshot(folder / f"{name}.png", whole=whole)


def ask(browser, text):
    """Type a query, press Enter, and wait for the answer."""
    browser.evaluate(
        f"window.asked = document.querySelector('#query'); asked.focus(); asked.value = {text!r};"
    )
    browser.press("Enter")
    browser.wait_for(f"document.querySelector('.lists').dataset.asked === {text!r}")


def number(browser, name):
    text = browser.evaluate(f"document.querySelector('#n-{name}')?.textContent ?? ''")
    return int(text.replace(",", "") or -1)


def wait_for_number(browser, name, least, seconds=60):
    shown = f"(document.querySelector('#n-{name}')?.textContent ?? '0')"
    browser.wait_for(f"+{shown}.replaceAll(',', '') >= {least}", seconds)


def test_a_session(browser, served, shelf):
    about = dict(zip(shelf.ids, shelf.groups.tolist(), strict=True))
    browser.open(served.url, width=1400, height=950)
    browser.wait_for("document.querySelector('#status').dataset.kind === 'good'")
    browser.wait_for("document.querySelectorAll('.pick').length > 0")

    # Search, and teach ten lists by the buttons.
    for n in range(10):
        question = 4 * n
        ask(browser, shelf.questions[question])
        ids = browser.evaluate("[...document.querySelectorAll('[data-id]')].map(e => e.dataset.id)")
        assert len(ids) == 10
        right = [about[id] == shelf.wanted[question] for id in ids]
        for id, is_right in zip(ids, right, strict=True):
            mark = "up" if is_right else "down"
            browser.evaluate(f"document.querySelector('[data-key=\"{mark} {id}\"]').click()")
        assert browser.evaluate(f"{TEACH}.disabled") is False
        if n == 3:
            shot(browser, "teaching")
        browser.evaluate(f"{TEACH}.click()")
        wait_for_number(browser, "events", n + 1)
    wait_for_number(browser, "events", 10)
    events = number(browser, "events")

    # Charts move.
    browser.evaluate("location.hash = 'learning'")
    browser.wait_for("document.querySelectorAll('#view-learning canvas').length === 4")
    summary = "document.querySelector('#view-learning .summary').textContent"
    first = browser.evaluate(summary)
    with Client(served.url, shelf.name, timeout=120) as client:
        people = People(client, shelf, 0)
        for _ in range(20):
            people.teach(50, time.monotonic() + 120)
            if any(change["why"] == "promote" for change in client.guard()["history"]):
                break
        served_now = client.guard()["served"]
    wait_for_number(browser, "events", events + 50)
    assert browser.evaluate(summary) != first
    # Promotion.
    browser.wait_for("document.querySelector('.history').textContent.includes('promoted by')")
    browser.wait_for("document.querySelector('#served').textContent.includes('version')")
    assert max(served_now.values()) >= 1
    shot(browser, "learning", whole=True)

    # What it looks like, and whether everybody can use it.
    ask_hash(browser, "search")
    ask(browser, shelf.questions[0])
    browser.evaluate("document.querySelector('[data-key^=why]').click()")
    browser.wait_for("document.querySelector('.why')")
    shot(browser, "search")
    for view in VIEWS:
        ask_hash(browser, view)
        if AXE.is_file():
            assert serious(browser) == [], view
    assert browser.complaints() == []

    # Rollback, by one click and its confirmation.
    ask_hash(browser, "search")
    for _ in range(9):
        if browser.evaluate("document.querySelector('#rollback').disabled"):
            break
        browser.evaluate("document.querySelector('#rollback').click()")
        browser.wait_for("document.querySelector('#ask').open")
        said = browser.evaluate("document.querySelector('#served').textContent")
        browser.evaluate("document.querySelector('#ask .primary').click()")
        browser.wait_for(f"document.querySelector('#served').textContent !== {said!r}")
    browser.wait_for("document.querySelector('#served').textContent === 'Served: the start.'")

    # Reload: nothing is lost, and what was taught in this tab can still be undone.
    before = number(browser, "events")
    browser.open(served.url, width=1400, height=950)
    wait_for_number(browser, "events", before)
    assert number(browser, "events") == before
    assert browser.evaluate("document.querySelectorAll('.taught button').length") >= 10

    # Killed and started again under the page: what was taught meanwhile arrives.
    ask(browser, shelf.questions[8])
    served.kill()
    browser.wait_for("document.querySelector('#status').dataset.kind === 'bad'")
    marks = "[...document.querySelectorAll('.act[aria-pressed]')]"
    browser.evaluate(f"{marks}[0].click()")
    browser.evaluate(f"{marks}[3].click()")
    browser.evaluate(f"{TEACH}.click()")
    browser.wait_for("document.querySelector('#status').textContent.includes('1 not sent')")
    shot(browser, "away")
    served.start()
    browser.wait_for("document.querySelector('#status').textContent === 'connected'", 60)
    wait_for_number(browser, "events", before + 1)
    assert number(browser, "events") == before + 1
    browser.events.clear()

    # Sabotage: everything judged the wrong way round promotes nothing.
    with Client(served.url, shelf.name, timeout=120) as client:
        had = len(client.guard()["history"])
        people = People(client, shelf, 1)
        people.teach(60, time.monotonic() + 120, honest=False)
        assert client.guard()["served"] == {"rest": 0, "first": 0}
        assert len(client.guard()["history"]) == had
    wait_for_number(browser, "events", before + 61)
    assert browser.evaluate("document.querySelector('#served').textContent") == "Served: the start."
    ask_hash(browser, "people")
    browser.wait_for("document.querySelector('#view-people').textContent.includes('saboteur-1')")
    shot(browser, "people")
    # Forgotten by one click.
    browser.evaluate("document.querySelector('[aria-label=\"Forget saboteur-1\"]').click()")
    browser.wait_for("document.querySelector('#ask').open")
    browser.evaluate("document.querySelector('#ask .primary').click()")
    browser.wait_for("!document.querySelector('#view-people').textContent.includes('saboteur-1')")
    assert browser.complaints() == []


def ask_hash(browser, view):
    browser.evaluate(f"location.hash = '{view}'")
    browser.wait_for(f"!document.querySelector('#view-{view}').hidden")
    time.sleep(0.4)


def test_undo_brings_the_order_back(browser, served, shelf):
    browser.open(served.url, width=1400, height=950)
    browser.wait_for("document.querySelector('#status').dataset.kind === 'good'")
    browser.wait_for("document.querySelector('#n-events')")
    browser.evaluate("document.querySelector('#which').value = 'live'")
    ask(browser, shelf.questions[20])
    order = "[...document.querySelectorAll('[data-id]')].map(e => e.dataset.id).join()"
    before, events = browser.evaluate(order), number(browser, "events")
    # The last is moved to the first place, by the keyboard.
    browser.evaluate("[...document.querySelectorAll('[data-id] .title')].at(-1).focus()")
    for _ in range(9):
        browser.press("ArrowUp", alt=True)
    moved = browser.evaluate(order)
    assert moved.split(",")[0] == before.split(",")[-1]
    browser.evaluate("document.querySelector('#teach-order').click()")
    wait_for_number(browser, "events", events + 1)
    browser.wait_for(f"{order} !== {moved!r}")
    after = browser.evaluate(order)
    assert after != before
    browser.press("z", code="KeyZ", control=True)
    browser.wait_for(f"{order} === {before!r}", 60)
    assert browser.complaints() == []


def test_keys_judge_and_go_through_results(browser, served, shelf):
    browser.open(served.url, width=1400, height=950)
    browser.wait_for("document.querySelector('#n-events')")
    ask(browser, shelf.questions[24])
    browser.evaluate("document.querySelector('[data-id] .title').focus()")
    browser.press("+", code="Equal")
    browser.press("ArrowDown")
    browser.press("-", code="Minus")
    pressed = browser.evaluate(
        "[...document.querySelectorAll('[data-id]')].slice(0, 2).map(row => "
        "[...row.querySelectorAll('[aria-pressed]')].map(b => b.getAttribute('aria-pressed')))"
    )
    assert pressed == [["true", "false"], ["false", "true"]]
    assert "1 good, 1 not" in browser.evaluate(f"{TEACH}.textContent")


def test_dragging_a_result_reorders(browser, served, shelf):
    browser.open(served.url, width=1400, height=950)
    browser.wait_for("document.querySelector('#n-events')")
    ask(browser, shelf.questions[28])
    order = "[...document.querySelectorAll('[data-id]')].map(e => e.dataset.id)"
    before = browser.evaluate(order)
    browser.evaluate(
        "const rows = [...document.querySelectorAll('[data-id]')];"
        "const data = new DataTransfer();"
        "const fire = (row, type) => row.dispatchEvent("
        "new DragEvent(type, {dataTransfer: data, bubbles: true}));"
        "fire(rows[4], 'dragstart'); fire(rows[1], 'dragover'); fire(rows[1], 'drop'); true"
    )
    after = browser.evaluate(order)
    wanted = before.copy()
    wanted.insert(1, wanted.pop(4))
    assert after == wanted and np.any(np.array(after) != np.array(before))
    assert browser.evaluate("document.querySelector('#teach-order').disabled") is False
