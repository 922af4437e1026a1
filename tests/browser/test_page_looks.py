"""How the views of the page look: light and dark, wide and on a phone.

They have a service and a browser of their own, so that they do not depend on a session before them.
"""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi")

import httpx

from tests.browser import chromium
from tests.browser.served import AXE, serious
from tests.browser.test_page_session import VIEWS, ask, browser, served, shelf, shot

__all__ = ["browser", "served", "shelf"]

pytestmark = pytest.mark.skipif(chromium.find() is None, reason="no Chromium on this machine")


def disagree(served, shelf):
    """Dislike what is served first, and wait until that was learned."""
    with httpx.Client(base_url=f"{served.url}/collections/{shelf.name}", trust_env=False) as http:
        shown = http.post("/search", json={"text": shelf.questions[1], "k": 6}).json()
        ids = [result["id"] for result in shown["results"]]
        event = {"type": "judged", "impression": shown["impression"]}
        event |= {"liked": ids[3:], "disliked": ids[:3]}
        done = http.post("/feedback", json={"events": [event]}).json()
        http.post("/search", json={"text": "x", "min_seq": done["seq"]}).raise_for_status()


@pytest.mark.parametrize("tabs", [False, True])
def test_pages_that_nobody_sees_leave_the_connections(browser, served, shelf, tabs):
    # A browser has six connections to a host, and keeps pages that one may go back to.
    disagree(served, shelf)
    for n in range(8):
        if tabs and n:
            browser.add_tab()
        browser.open(f"{served.url}/?{tabs}-{n}#hard")
        browser.wait_for("document.querySelector('.hard li')", 10)


def test_a_page_that_is_seen_again_listens(browser, served, shelf):
    browser.open(f"{served.url}/?left")
    browser.wait_for("document.querySelector('#n-events')")
    browser.open("about:blank")
    # Not at once: a page that is left amid an answer does not give it.
    browser.evaluate("void setTimeout(() => history.back(), 50)")
    browser.wait_for("location.search === '?left'")
    browser.wait_for("document.querySelector('#status').dataset.kind === 'good'")
    before = browser.evaluate("+document.querySelector('#n-events').textContent")
    disagree(served, shelf)
    browser.wait_for(f"+document.querySelector('#n-events').textContent === {before + 1}", 10)


def test_a_view_that_got_no_answer_is_asked_again(browser, served, shelf):
    disagree(served, shelf)
    browser.open(f"{served.url}/?again")
    browser.wait_for("document.querySelector('#n-events')")
    browser.evaluate("window.kept = fetch; window.fetch = () => Promise.reject(new TypeError());")
    browser.evaluate("location.hash = 'hard'")
    browser.wait_for("document.querySelector('#said').textContent.includes('gave no answer')")
    browser.evaluate("window.fetch = kept; location.hash = 'search'")
    browser.wait_for("document.querySelector('#view-hard').hidden")
    browser.evaluate("location.hash = 'hard'")
    browser.wait_for("document.querySelector('.hard li')", 10)


LOOKS = [("light", "map"), *(("dark", view) for view in VIEWS), ("phone", "search")]
LOOKS += [("phone", "learning"), ("phone_dark", "people")]


@pytest.mark.parametrize(("look", "view"), LOOKS)
def test_looks(browser, served, shelf, look, view):
    phone, dark = "phone" in look, "dark" in look
    size = {"width": 390, "height": 844} if phone else {"width": 1400, "height": 950}
    if view == "hard":
        disagree(served, shelf)
    browser.open(f"{served.url}/?{view}-{look}#{view}", **size, dark=dark, phone=phone)
    browser.wait_for("document.querySelector('#status').dataset.kind === 'good'")
    browser.wait_for("document.querySelector('#served')")
    if view == "search":
        ask(browser, shelf.questions[0])
    if view == "map":
        browser.wait_for("document.querySelector('canvas.map').getAttribute('aria-label')")
    if view == "hard":
        browser.wait_for("document.querySelector('.hard li')")
    shot(browser, f"{view}_{look}", whole=phone)
    assert browser.complaints() == []
    # As wide as the window: what is wider scrolls by itself.
    wide, window = browser.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= window
    if AXE.is_file():
        assert serious(browser) == []
