"""The table of the demo, for the terminal and for the report."""

from __future__ import annotations

import math

from demo.people import NOISE
from demo.session import Course
from samewise.report.sentences import percent

MEASURES = {
    "asked precision": "among ten",
    "asked first": "first",
    "unasked precision": "among ten, not asked before",
    "unasked first": "first, not asked before",
}
COLUMNS = ("right answers", *MEASURES.values())
MOMENTS = {
    "start": "the start",
    "served, taught": "served after teaching",
    "live, taught": "being learned then",
    "served, sabotaged": "served after sabotage",
    "live, sabotaged": "being learned then ",
    "live, forgotten": "saboteurs forgotten",
}


def rows(course: Course) -> list[tuple[str, ...]]:
    """A line for each moment and form."""
    return [
        (name, *(percent(course.measured[moment][measure]) for measure in MEASURES))
        for moment, name in MOMENTS.items()
    ]


def facts(course: Course) -> list[str]:
    """What happened, in sentences."""
    honest, sabotage = course.honest, course.sabotage
    up = [change for change in honest.history if change["why"] == "promote"]
    share = honest.wrong / max(honest.answers, 1)
    found = [
        f"{honest.lists} lists were judged in {honest.seconds:.0f} s by 20 users; {percent(share)} "
        f"of their {honest.answers:,} answers were wrong ({percent(NOISE)} intended)."
    ]
    if up:
        found.append(
            f"The guard promoted what was learned {len(up)} times, after "
            f"{', '.join(str(change['event']) for change in up)} lists."
        )
    else:
        found.append(f"Nothing was promoted. {_missing(course)}")
    after = sabotage.history[len(honest.history) :]
    whys = [change["why"] for change in after]
    found.append(
        f"Saboteurs judged {sabotage.lists} lists the wrong way round: {whys.count('promote')} "
        f"promotions, {whys.count('fall back')} falls back to the start; served afterwards "
        f"{percent(course.measured['served, sabotaged']['asked precision'])} among ten, before "
        f"{percent(course.measured['served, taught']['asked precision'])}."
    )
    return found


def _missing(course: Course) -> str:
    guard = course.guard
    waits = [value for value in guard["expected_events"].values() if value is not None]
    if not waits or not math.isfinite(min(waits)):
        return "What is being learned was not better so far."
    return f"About {math.ceil(min(waits))} more lists like those so far are missing."


def plain_table(course: Course) -> str:
    """The table for a terminal."""
    lines = [COLUMNS, *rows(course)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = [
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
        for line in lines
    ]
    return "\n".join([padded[0], "-" * len(padded[0]), *padded[1:]])
