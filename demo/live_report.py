"""report.html of the demo: the table, the course of learning, and how it was obtained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from demo import tables
from demo.session import Course
from samewise import __version__
from samewise.report.page import Section, bullets, page, paragraph, picture, table

FORMS = ("start", "served", "live")


def write(courses: Sequence[Course], seconds: float, path: Path) -> None:
    """Write the report."""
    lead = [
        paragraph(
            "A service was started, two collections were put into it, and simulated users "
            "searched them over HTTP and judged what they saw. What was learned was served only "
            "when bets on their judgments had shown it to be better. Then saboteurs judged "
            "everything the wrong way round, and were forgotten again."
        )
    ]
    text = page(
        "A search that learns from its users",
        lead,
        [*map(_section, courses), _conditions(seconds)],
        f"samewise {__version__}",
    )
    path.write_text(text, encoding="utf-8")


def _section(course: Course) -> Section:
    said = f"{course.shelf.about[0].upper()}{course.shelf.about[1:]}"
    return Section(
        said,
        [
            table(
                tables.COLUMNS,
                tables.rows(course),
                caption="Right answers among the first ten and in the first place, of questions "
                "that users asked while they taught, and of others.",
            ),
            bullets(tables.facts(course)),
            _course(course),
        ],
    )


def _course(course: Course) -> Any:
    columns = course.curve["columns"]
    events, lists = np.array(columns["events"]), np.array(columns["orders"])
    width = max(30.0, lists.sum() / 12)

    def draw(ax: Any) -> None:
        for form in FORMS:
            values = np.array(columns[f"auc_{form}"], dtype=float)
            ax.plot(events, _trailing(values, lists, width), label=form)
        for mark in course.curve["marks"]:
            if mark["why"] in ("promote", "fall back"):
                style = "--" if mark["why"] == "promote" else ":"
                ax.axvline(mark["events"], ls=style, lw=1, color="gray")
        ax.set(xlabel="judged lists", ylabel="AUC")
        ax.legend()

    return picture(
        draw,
        alt="The quality of start, served and live over the judged lists.",
        caption="The order of judged items under each form, measured before each list was learned "
        f"from, as a mean of the last {width:.0f} lists; dashed where something was promoted, "
        "dotted where the start was served again. Saboteurs' lists are forgotten and not in it.",
    )


def _trailing(values: np.ndarray, weights: np.ndarray, width: float) -> np.ndarray:
    """Means of the newest so many lists, at each portion."""
    heavy = np.cumsum(weights)
    sums = np.cumsum(np.nan_to_num(values) * weights)
    first = np.searchsorted(heavy, heavy - width, side="right")
    before = np.where(first > 0, first - 1, 0)
    gone, light = (np.where(first > 0, total[before], 0.0) for total in (sums, heavy))
    return (sums - gone) / np.maximum(heavy - light, 1)


def _conditions(seconds: float) -> Section:
    return Section(
        "How these numbers were obtained",
        [
            bullets(
                [
                    f"python -m demo, {seconds:.0f} s in all.",
                    "Letters are three sentences out of ten on one of 47 concerns; questions are "
                    "single sentences that are in no letter. Vectors are made by the built-in "
                    "encoder of words: without learning it cannot know that “money back” is a "
                    "“refund”, and for a question nobody asked it learns little. Vectors of a "
                    "language model are another matter: python -m experiments live.",
                    "Digits are scikit-learn's, 1 500 in the collection and 297 as questions, of "
                    "which 200 are asked by users.",
                    "A list has ten items, one chosen by what is being learned and three sampled; "
                    "one answer in ten is wrong. Measured on at most 60 questions of each kind.",
                ]
            )
        ],
    )
