"""samewise filter: a stream of documents against topics."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from samewise.cli.console import json_line, plain_text, print_json, printable, working
from samewise.cli.errors import one_sentence
from samewise.cli.exports import check_output
from samewise.cli.options import Debug, read_saved
from samewise.cli.printed import Printed
from samewise.exceptions import InvalidInputError
from samewise.filtering import (
    BatchTopicFilter,
    Decision,
    Documents,
    FilterReport,
    Judgments,
    TextVectors,
    TopicFilter,
    filter_stream,
    read_topics,
)
from samewise.filtering.filter_run import decision_entry
from samewise.model import Model
from samewise.scores import FilteringScores

_SHOWN = {
    "precision": "P",
    "recall": "R",
    "f": "F",
    "scaled_utility": "utility",
    "detection_cost": "detection cost",
    "balanced_error": "balanced error",
    "anticipation": "anticipation",
}


class Mode(StrEnum):
    """How a document is decided."""

    online = "online"
    simple = "simple"
    batch = "batch"


Source = Annotated[
    str, typer.Option(help="JSON lines with id and text, a folder, or - for standard input.")
]
How = Annotated[
    Mode, typer.Option(help="online asks for feedback; simple does not; batch reads all first.")
]
Thresholds = Annotated[
    str, typer.Option(help="auto; the thesis' as 0.42,0.7; or, for --mode batch, seeds.")
]
Utility = Annotated[
    str, typer.Option(help="What auto maximizes: the beta of F, linear, or detection.")
]
State = Annotated[
    Path | None, typer.Option(help="Directory that keeps the run, so that it can go on.")
]
Feedback = Annotated[
    Path | None, typer.Option(help="Judgments as JSON lines: they answer, and give scores.")
]
MaxDocuments = Annotated[
    int | None, typer.Option(help="Most documents a topic holds; the oldest goes first.")
]
Metric = Annotated[
    Path | None, typer.Option(help="A saved form or learner in place of the cosine.")
]
Strict = Annotated[
    bool, typer.Option(help="Stop at the first malformed line, instead of skipping it.")
]
Plot = Annotated[
    Path | None, typer.Option(help="Picture of the scores over the stream (.png, .svg, .pdf).")
]
JsonLines = Annotated[bool, typer.Option("--json", help="Summary and errors as JSON lines too.")]


def filter(
    topics: Annotated[Path, typer.Option(help="Topics: .xml with <top>, .json or .jsonl.")],
    documents: Source = "-",
    mode: How = Mode.online,
    state: State = None,
    feedback: Feedback = None,
    alpha: Annotated[float, typer.Option(help="Weight of the topic against its documents.")] = 0.7,
    thresholds: Thresholds = "auto",
    utility: Utility = "1",
    initial: Annotated[int, typer.Option(help="Documents to build a topic from.")] = 10,
    budget: Annotated[int, typer.Option(help="Questions for the whole stream.")] = 50,
    max_documents: MaxDocuments = None,
    metric: Metric = None,
    features: Annotated[int, typer.Option(help="Columns that terms are hashed to.")] = 2**18,
    stem: Annotated[bool, typer.Option(help="Stem words by Porter's rules.")] = False,
    strict: Strict = False,
    every: Annotated[int, typer.Option(min=1, help="Documents between two scores.")] = 1000,
    plot: Plot = None,
    as_json: JsonLines = False,
    debug: Debug = False,
) -> None:
    """Route documents to the topics they are relevant to, one JSON line for each decision.

    Topics are [{"id": "wine", "title": "wine and grapes"}, ...], documents lines of {"id": "d1",
    "text": "..."}, judgments lines of {"document": "d1", "topic": "wine", "relevant": true}.

    Example: samewise filter --topics topics.json --documents documents.jsonl
    """
    with one_sentence(debug, as_json):
        _check_paths(mode, state, feedback, plot)
        if plot is not None:
            from samewise.plots._axes import require_matplotlib

            require_matplotlib("--plot")
        chosen: dict[str, Any] = {
            "alpha": alpha,
            "thresholds": _thresholds(thresholds),
            "utility": _number_or_text(utility),
            "n_initial": initial,
            "max_documents": max_documents,
            "metric": None if metric is None else _metric(metric),
            "vectorizer": TextVectors(features, stem="porter" if stem else None),
        }
        described = read_topics(topics)
        judge = None if feedback is None else Judgments.read(feedback)
        source = Documents(documents, "raise" if strict else "skip", _warn)
        if mode == Mode.batch:
            filter: Any = BatchTopicFilter(**chosen).fit(described)
        else:
            filter = TopicFilter(mode.value, **chosen, feedback_budget=budget).fit(described)
        report = FilterReport(filter.topics_, judge, every)
        _decide(filter_stream(filter, source, state, judge), report, state)
        summary = report.summary(source.n_skipped)
        if as_json:
            print_json({"summary": summary})
        else:
            _show(summary, report.evolution)
        if plot is not None:
            _draw(report.evolution, plot)


def _thresholds(text: str) -> str | tuple[float | str, ...]:
    parts = tuple(map(_number_or_text, text.split(",")))
    return parts if len(parts) > 1 or isinstance(parts[0], float) else text


def _number_or_text(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _check_paths(mode: Mode, state: Path | None, feedback: Path | None, plot: Path | None) -> None:
    """Refuse files and folders that cannot be used, before anything is read."""
    if plot is not None and feedback is None:
        raise InvalidInputError("--plot shows scores, which need judgments: add --feedback.")
    if mode == Mode.batch and state is not None:
        raise InvalidInputError("--state is for streams; --mode batch reads all documents.")
    if plot is not None:
        check_output(plot)
    if state is not None and state.exists() and not state.is_dir():
        raise InvalidInputError(f"--state must name a directory, but {state} is a file.")
    if feedback is not None and not feedback.exists():
        raise FileNotFoundError(2, "No such file", str(feedback))


def _decide(
    stream: Iterable[tuple[str, list[Decision], bool]], report: FilterReport, state: Path | None
) -> None:
    """Print and report what is decided, and on a terminal count along."""
    n_new = n_found = 0
    with working("") as show, Printed(state) as printed:
        for n, (document, decisions, new) in enumerate(stream, 1):
            if decisions:
                printed.show(n, (_line(document, decision) for decision in decisions))
            if new:
                n_new, n_found = n_new + 1, n_found + bool(decisions)
                if n_new % 100 == 0:
                    show(f"{n_new:,} documents, {n_found:,} for a topic")
            report.add(document, decisions)


def _line(document: str, decision: Decision) -> str:
    entry = {"document": document, **decision_entry(decision)}
    return f"{json_line(entry)}\n"


def _warn(sentence: str) -> None:
    typer.echo(printable(f"skipped: {sentence}"), err=True)


def _show(summary: dict[str, Any], evolution: list[FilteringScores]) -> None:
    console = Console(stderr=True)
    console.print(
        f"{summary['documents']} documents, {summary['skipped']} skipped, "
        f"{summary['asked']} questions"
    )
    table = Table("topic", "documents")
    for topic, n in sorted(summary["assigned"].items(), key=lambda item: -item[1]):
        table.add_row(plain_text(topic), str(n))
    console.print(table)
    if "macro" in summary:
        title = f"{summary['judged']} judged documents"
        scores = Table("", *_SHOWN.values(), title=title, box=SIMPLE, padding=(0, 1, 0, 0))
        for kind in ("micro", "macro"):
            cells = [summary[kind].get(name, np.nan) for name in _SHOWN]
            scores.add_row(kind, *[f"{cell:.3f}" if np.isfinite(cell) else "" for cell in cells])
        console.print(scores)
        if len(evolution) > 1:
            course = [scores.macro["f"] for scores in evolution]
            console.print(
                f"F along the stream, macro: {course[0]:.3f} {_bars(course)} {course[-1]:.3f}"
            )


def _bars(course: list[float]) -> str:
    """A line of at most 50 bars, from 0 to the largest value."""
    picked = [course[i] for i in np.linspace(0, len(course) - 1, min(50, len(course))).astype(int)]
    picked = [value if np.isfinite(value) else 0.0 for value in picked]
    most = max(picked) or 1.0
    levels = [int(7 * value / most) for value in picked]
    return "".join("▁▂▃▄▅▆▇█"[level] for level in levels)


def _metric(path: Path) -> Any:
    """A form or learner for vectors of text."""
    found = read_saved(path, "a saved form or learner")
    if isinstance(found, Model):
        raise InvalidInputError(
            f"{path} is a model of a table's columns, which texts do not have; give a form or "
            "learner of text vectors, as its save writes it."
        )
    return found


def _draw(evolution: list[FilteringScores], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4))
    axes = figure.subplots()
    n = [scores.n_documents for scores in evolution]
    for name, label in _SHOWN.items():
        if name != "balanced_error":
            axes.plot(n, [scores.macro[name] for scores in evolution], label=label)
    axes.set(xlabel="judged documents", ylabel="macro average", ylim=(0, 1))
    axes.legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(path)
