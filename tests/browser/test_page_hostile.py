"""What users wrote is shown as text, whatever it is; nothing of it runs, loads or leads away."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi")

from samewise import Client
from tests.browser import chromium
from tests.browser.served import Served

pytestmark = pytest.mark.skipif(chromium.find() is None, reason="no Chromium on this machine")

SCRIPT = "<script>window.owned = 1</script><img src=x onerror='window.owned = 1'>"
RIGHT_TO_LEFT = "abc‮gnp.exe‭ ‏מסמך‎"
LONG = "long " + "x" * 50_000
PAYLOADS = [
    {"text": f"fox one {SCRIPT}", "url": "javascript:window.owned=1"},
    {"text": f"fox two {RIGHT_TO_LEFT}", "url": "data:text/html,<script>owned=1</script>"},
    {"text": f"fox three {LONG}", "url": " JaVaScRiPt:alert(1)"},
    {
        "text": "fox four",
        "url": "https://example.org/a?b=<c>",
        "image": "https://example.org/x.png",
    },
    {"text": "fox five", "image": "data:image/svg+xml;base64,PHN2Zz48L3N2Zz4="},
    {"text": "fox six", SCRIPT: SCRIPT, "title": SCRIPT, "about": SCRIPT},
    {"text": "fox seven", "title": "‮" * 200, "about": "b"},
    {"text": "sea eight", "about": {"deep": [SCRIPT]}},
]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    service = Served(tmp_path_factory.mktemp("hostile") / "data")
    try:
        with Client(service.url, "c", timeout=120) as client:
            client.make("text")
            client.put([f"{SCRIPT}{i}" for i in range(len(PAYLOADS))], payloads=PAYLOADS)
            found = client.search("fox", k=5, user=SCRIPT)
            ids = [one["id"] for one in found["results"]]
            event = {"type": "judged", "impression": found["impression"], "user": SCRIPT}
            client.feedback({**event, "liked": ids[-1:], "disliked": ids[:-1], "event": SCRIPT})
        yield service
    finally:
        service.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = chromium.Chromium(chromium.find(), tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


def test_everything_a_user_wrote_is_text(browser, served):
    browser.open(served.url, width=1200, height=900)
    browser.wait_for("document.querySelectorAll('.pick').length > 0")
    # A megabyte of query is cut to what may be asked, and asked.
    browser.evaluate(
        "const box = document.querySelector('#query'); box.value = 'fox ' + 'x'.repeat(2 ** 20);"
        "document.querySelector('[role=search]').requestSubmit(); true"
    )
    browser.wait_for("document.querySelector('#said').textContent.length > 0")
    browser.evaluate(
        "document.querySelector('#query').value = 'fox';"
        "document.querySelector('[role=search]').requestSubmit(); true"
    )
    browser.wait_for("document.querySelector('.lists').dataset.asked === 'fox'")
    browser.evaluate("document.querySelectorAll('[data-id] .title').forEach(e => e.click())")
    browser.wait_for("document.querySelectorAll('.details dl').length === 8")
    text = browser.evaluate("document.querySelector('.lists').textContent")
    assert "<script>window.owned = 1</script><img src=x onerror=" in text
    assert "javascript:window.owned=1" in text and "https://example.org/x.png" not in text
    links = browser.evaluate("[...document.querySelectorAll('main a')].map(a => a.href)")
    assert links == ["https://example.org/a?b=%3Cc%3E"]
    assert browser.evaluate("document.querySelectorAll('main img, main script').length") == 0
    # What turns the direction of a text stays within it.
    isolated = "[...document.querySelectorAll('bdi')].every(e => e.dir === 'auto')"
    assert browser.evaluate(isolated) and browser.evaluate("document.querySelector('bdi') !== null")
    longest = "Math.max(...[...document.querySelectorAll('bdi')].map(e => e.textContent.length))"
    assert browser.evaluate(longest) <= 2001
    wide, window = browser.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= window
    for view in ("learning", "map", "hard", "people", "settings"):
        browser.evaluate(f"location.hash = '{view}'")
        browser.wait_for(f"!document.querySelector('#view-{view}').hidden")
    browser.wait_for("document.querySelector('#view-people tbody').textContent.includes('script')")
    assert browser.evaluate("typeof window.owned") == "undefined"
    asked = [url for url in browser.requests() if not url.startswith(served.url)]
    assert asked == []


def test_the_policy_stops_what_the_page_would_never_do(browser, served):
    browser.open(served.url, width=1200, height=900)
    browser.wait_for("document.querySelector('#query')")
    tries = (
        "const s = document.createElement('script'); s.textContent = 'window.owned = 1';"
        " document.body.append(s)",
        "document.body.setAttribute('onclick', 'window.owned = 1'); document.body.click()",
        "document.body.innerHTML = '<p>x</p>'",
        "const i = new Image(); i.src = 'https://example.org/x.png'; document.body.append(i)",
    )
    for one in tries:
        browser.evaluate(f"(() => {{ try {{ {one} }} catch {{}} }})()")
    refused = "fetch('https://example.org/').then(() => false, () => true)"
    assert browser.evaluate(refused) is True
    assert browser.evaluate("typeof window.owned") == "undefined"
    assert browser.evaluate("document.querySelector('#query') !== null")
    complaints = " ".join(browser.complaints())
    assert "Content Security Policy" in complaints or "TrustedHTML" in complaints
