"""Whether links in the documentation lead anywhere: `python -m tools.links`.

Relative links of Markdown files are followed to the file and, after a #, to its heading. Addresses
on the web are not asked: the check works without a network.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = ["anchors", "broken", "main", "pages"]

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
_CODE = re.compile(r"^(`{3,}|~{3,}).*?^\1\s*$|`[^`\n]+`", re.M | re.S)
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.M)


def pages(root: Path = ROOT) -> list[Path]:
    """The Markdown files of the checkout, without those of environments and builds."""
    found = [*root.glob("*.md")]
    for folder in ("docs", "experiments", "examples", "deploy", "benchmarks", "demo"):
        found += (root / folder).rglob("*.md")
    return sorted(found)


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of the headings of a page, and those that it names itself.

    A heading's anchor is its text in lower case, without marks, with hyphens for spaces; the
    second of one name ends with -1.
    """
    text = page.read_text(encoding="utf-8")
    found = set(re.findall(r"^\(([\w-]+)\)=$", text, re.M))
    found |= set(re.findall(r"(?:id|name)=\"([\w-]+)\"", text))
    count: dict[str, int] = {}
    for heading in _HEADING.findall(re.sub(r"^(`{3,}).*?^\1\s*$", "", text, flags=re.M | re.S)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")
        seen = count.get(slug, 0)
        count[slug] = seen + 1
        found.add(f"{slug}-{seen}" if seen else slug)
    return frozenset(found)


def broken(page: Path) -> Iterator[tuple[int, str, str]]:
    """Line, target and what is wrong, for each link of a page that leads nowhere."""
    # Code keeps its lines, so that those of links stay theirs.
    text = _CODE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), page.read_text(encoding="utf-8"))
    for match in _LINK.finditer(text):
        target = match[1]
        if re.match(r"[a-z]+:", target):
            continue
        line = text.count("\n", 0, match.start()) + 1
        path, _, anchor = target.partition("#")
        file = page if not path else (page.parent / path).resolve()
        # The gallery's pages are made from programs when the pages are built.
        if file.parent == ROOT / "docs" / "examples":
            file = ROOT / "docs" / "gallery" / file.with_suffix(".py").name
            file = file.with_name("README.txt") if file.stem == "index" else file
        if not file.exists():
            yield line, target, "there is no such file"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            yield line, target, "there is no such heading"


def main() -> int:
    """Print what is broken; 1 if anything is."""
    wrong = [
        f"{page.relative_to(ROOT)}:{line}: {target}: {what}"
        for page in pages()
        for line, target, what in broken(page)
    ]
    for message in wrong:
        print(message)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
