"""One HTML file that shows what was learned and what it gains."""

from __future__ import annotations

from samewise.report.page import (
    Html,
    Section,
    bullets,
    code,
    paragraph,
    picture,
    side_by_side,
    table,
)
from samewise.report.writing import Report, write_report

__all__ = [
    "Html",
    "Report",
    "Section",
    "bullets",
    "code",
    "paragraph",
    "picture",
    "side_by_side",
    "table",
    "write_report",
]
