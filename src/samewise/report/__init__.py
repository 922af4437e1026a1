"""One HTML file that shows what was learned and what it gains."""

from __future__ import annotations

from samewise.report.html_report import Report, write_report
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
from samewise.report.report_options import ReportOptions

__all__ = [
    "Html",
    "Report",
    "ReportOptions",
    "Section",
    "bullets",
    "code",
    "paragraph",
    "picture",
    "side_by_side",
    "table",
    "write_report",
]
