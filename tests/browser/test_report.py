"""The report in a real browser: light, dark and on a phone.

With SAMEWISE_SCREENSHOTS naming a folder, pictures of all three are kept there.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
from sklearn.datasets import load_digits

from samewise import LMNN
from samewise.report import ReportOptions, write_report
from tests.browser import chromium

pytestmark = pytest.mark.skipif(chromium.find() is None, reason="no Chromium on this machine")

VIEWS = {
    "light": {"width": 1200},
    "dark": {"width": 1200, "dark": True},
    "phone": {"width": 390, "height": 844, "phone": True},
    "phone_dark": {"width": 390, "height": 844, "phone": True, "dark": True},
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = chromium.Chromium(chromium.find(), tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report, or the one that SAMEWISE_REPORT names."""
    if "SAMEWISE_REPORT" in os.environ:
        return Path(os.environ["SAMEWISE_REPORT"]).resolve()
    X, y = load_digits(return_X_y=True)
    path = tmp_path_factory.mktemp("report") / "report.html"
    learner = LMNN().fit(X[:300], y[:300])
    write_report(
        path, learner, X[:300], y[:300], X[300:500], y[300:500], ReportOptions(image_shape=(8, 8))
    )
    return path


@pytest.fixture(params=VIEWS, scope="module")
def view(request, browser, report):
    """The report opened in one of the views."""
    browser.open(report.as_uri(), **VIEWS[request.param])
    if "SAMEWISE_SCREENSHOTS" in os.environ:
        folder = Path(os.environ["SAMEWISE_SCREENSHOTS"])
        folder.mkdir(parents=True, exist_ok=True)
        browser.screenshot(folder / f"{request.param}.png")
    return request.param


def test_nothing_is_complained_about_and_nothing_is_fetched(browser, view, report):
    assert browser.complaints() == []
    assert browser.requests() == [report.as_uri()]


def test_images_are_decoded_and_pictures_have_a_size(browser, view):
    sizes = browser.evaluate("[...document.images].map(i => i.complete ? i.naturalWidth : 0)")
    assert sizes and min(sizes) > 0
    heights = browser.evaluate(
        "[...document.querySelectorAll('figure svg')].map(s => s.getBoundingClientRect().height)"
    )
    assert heights and min(heights) > 100


def test_the_page_is_as_wide_as_the_window(browser, view):
    wide, window = browser.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= window == VIEWS[view]["width"]
    # What sticks out of the window must be inside something that scrolls by itself.
    outside = browser.evaluate(
        "[...document.querySelectorAll('main *, header *')].filter(e => !e.closest('svg')"
        " && !e.closest('.scroll') && !e.closest('pre')"
        " && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))"
    )
    assert outside == []


def test_tables_are_not_cut_where_there_is_room(browser, view):
    cut = browser.evaluate(
        "[...document.querySelectorAll('main .scroll')].filter("
        "e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent.slice(0, 80))"
    )
    assert VIEWS[view].get("phone") or cut == []


def test_text_and_pictures_stand_out_from_the_page(browser, view):
    dark = VIEWS[view].get("dark", False)
    assert browser.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") == dark
    page = _luminance(browser.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert (page < 0.05) if dark else (page > 0.9)
    colors = browser.evaluate(
        "['body', 'h1', 'figcaption', 'a', 'td', '.tile .what', '.case .by', 'summary'].map("
        "s => getComputedStyle(document.querySelector(s)).color)"
    )
    # Letters and axes of pictures have the color of the text.
    axes = browser.evaluate(
        "[...document.querySelectorAll('figure svg *')].filter("
        "e => (e.getAttribute('style') || '').includes('currentColor')).slice(0, 50).map("
        "e => { const s = getComputedStyle(e); return s.stroke == 'none' ? s.fill : s.stroke; })"
    )
    assert axes
    for color in colors + axes:
        assert _contrast(page, _luminance(color)) >= 4.5, color


def test_links_lead_to_sections(browser, view):
    missing = browser.evaluate(
        "[...document.querySelectorAll('nav a')].filter("
        "a => !document.querySelector(a.getAttribute('href'))).length"
    )
    assert missing == 0


def _luminance(color):
    """Relative luminance of "rgb(r, g, b)", as WCAG 2 defines it."""
    parts = [float(part) / 255 for part in color[color.index("(") + 1 : -1].split(",")[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one, other):
    low, high = sorted((one, other))
    return (high + 0.05) / (low + 0.05)
