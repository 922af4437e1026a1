"""Links that lead nowhere are found, in every kind of place, and the others are left alone."""

from __future__ import annotations

from textwrap import dedent

import pytest

links = pytest.importorskip("tools.links", reason="the tools belong to a checkout")


@pytest.fixture
def page(tmp_path):
    def write(text, name="a.md"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
        return path

    links.anchors.cache_clear()
    return write


def targets(path):
    return [(line, target) for line, target, _ in links.broken(path)]


def test_files_and_headings_are_followed(page):
    page("# Two words, `code`\n\n## Again\n\n## Again\n\n(named)=\n", "docs/b.md")
    path = page(
        """
        [a](docs/b.md), [b](docs/b.md#two-words-code), [c](docs/b.md#again-1 "title"),
        [d](docs/b.md#named), [here](#top), ![picture](docs/c.png)
        [e](docs/d.md), [f](docs/b.md#again-2), [the web](https://example.org/x#y) and
        [a [nested] one](missing.md)

        # Top
        """
    )
    assert targets(path) == [
        (3, "docs/c.png"),
        (4, "docs/d.md"),
        (4, "docs/b.md#again-2"),
        (5, "missing.md"),
    ]


def test_code_is_no_link(page):
    path = page("`[a](b.md)`\n\n```python\nx = f[a](b.md)\n```\n\n[c](d.md)\n")
    assert targets(path) == [(7, "d.md")]


def test_the_pages_of_this_checkout_lead_somewhere(capsys, monkeypatch, page):
    assert links.main() == 0 and capsys.readouterr().out == ""
    assert {"README.md", "index.md"} <= {path.name for path in links.pages()}
    path = page("[a](b.md)\n")
    monkeypatch.setattr(links, "pages", lambda: [path])
    monkeypatch.setattr(links, "ROOT", path.parent)
    assert links.main() == 1 and capsys.readouterr().out == (
        "a.md:1: b.md: there is no such file\n"
    )
