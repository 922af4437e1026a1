"""samewise filter: a stream of documents against topics."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from samewise.cli.errors import one_sentence
from samewise.cli.exports import check_output
from samewise.cli.options import read_saved
from samewise.exceptions import InvalidInputError
from samewise.filtering import (
    BatchTopicFilter,
    Decision,
    Document,
    Documents,
    Judgments,
    FilterRun,
    TextVectors,
    TopicFilter,
    read_topics,
)
from samewise.filtering.filter_run import decision_entry, repeated
from samewise.model import Model
from samewise.scores import FilteringScores, FilteringTally

__all__ = ["filter_documents"]

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


def filter_documents(
    topics: Annotated[Path, typer.Option(help="Topics: .xml with <top>, .json or .jsonl.")],
    documents: Annotated[
        str, typer.Option(help="JSON lines with id and text, a folder, or - for standard input.")
    ] = "-",
    mode: Annotated[
        Mode, typer.Option(help="online asks for feedback; simple does not; batch reads all first.")
    ] = Mode.online,
    state: Annotated[
        Path | None, typer.Option(help="Directory that keeps the run, so that it can go on.")
    ] = None,
    feedback: Annotated[
        Path | None, typer.Option(help="Judgments as JSON lines: they answer, and give scores.")
    ] = None,
    alpha: Annotated[float, typer.Option(help="Weight of the topic against its documents.")] = 0.7,
    theta1: Annotated[float, typer.Option(help="Threshold on the similarity to the topic.")] = 0.42,
    theta2: Annotated[float, typer.Option(help="With theta1, the threshold of simple.")] = 0.7,
    initial: Annotated[int, typer.Option(help="Documents to build a topic from.")] = 10,
    budget: Annotated[int, typer.Option(help="Questions for the whole stream.")] = 50,
    max_documents: Annotated[
        int | None, typer.Option(help="Most documents a topic holds; the oldest goes first.")
    ] = None,
    metric: Annotated[
        Path | None, typer.Option(help="A saved form or learner in place of the cosine.")
    ] = None,
    features: Annotated[int, typer.Option(help="Columns that terms are hashed to.")] = 2**18,
    stem: Annotated[bool, typer.Option(help="Stem words by Porter's rules.")] = False,
    strict: Annotated[
        bool, typer.Option(help="Stop at the first malformed line, instead of skipping it.")
    ] = False,
    every: Annotated[int, typer.Option(min=1, help="Documents between two scores.")] = 1000,
    plot: Annotated[
        Path | None, typer.Option(help="Picture of the scores over the stream (.png, .svg, .pdf).")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Summary and errors as JSON lines too.")
    ] = False,
    debug: Annotated[bool, typer.Option(help="Show the traceback of an error.")] = False,
) -> None:
    """Route documents to the topics they are relevant to, one JSON line for each decision.

    Topics are [{"id": "wine", "title": "wine and grapes"}, ...], documents lines of {"id": "d1",
    "text": "..."}, judgments lines of {"document": "d1", "topic": "wine", "relevant": true}.

    Example: samewise filter --topics topics.json --documents documents.jsonl
    """
    with one_sentence(debug, as_json):
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
        pyplot = None if plot is None else _pyplot()
        chosen: dict[str, Any] = {
            "alpha": alpha,
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
            chosen |= {"theta1": theta1, "theta2": theta2, "feedback_budget": budget}
            filter = TopicFilter(mode.value, **chosen).fit(described)
        report = _Report([topic.id for topic in described], judge, every)
        if isinstance(filter, BatchTopicFilter):
            decided = _batch(filter, source)
        else:
            decided = _stream(FilterRun(filter, state, judge=judge), source)
        with _counting() as count:
            for document, decisions, new in decided:
                if new:
                    count(bool(decisions))
                    _write(document, decisions)
                report.add(document, decisions)
        summary = report.summary(source.n_skipped)
        if as_json:
            typer.echo(json.dumps({"summary": summary}, ensure_ascii=False))
        else:
            _show(summary, report.evolution)
        if pyplot is not None:
            _draw(pyplot, report.evolution, plot)


Decided = Iterator[tuple[str, list[Decision], bool]]


def _stream(run: FilterRun, source: Documents) -> Decided:
    """Each document's id and decisions, and whether they are new; what was decided before first."""
    with run:
        for id, decisions in run.history():
            yield id, decisions, False
        for document, decisions in run.process(source):
            yield document.id, decisions, True


def _batch(filter: BatchTopicFilter, source: Documents) -> Decided:
    kept: dict[str, Document] = {}
    for document in source:
        if document.id in kept:
            source.skip(repeated(document))
        else:
            kept[document.id] = document
    collection = list(kept.values())
    for document, decisions in zip(collection, filter.decide(collection), strict=True):
        yield document.id, decisions, True


def _write(document: str, decisions: Iterable[Decision]) -> None:
    # At once: whoever reads the output of an endless stream must not wait for a buffer to fill.
    for decision in decisions:
        entry = {"document": document, **decision_entry(decision)}
        print(json.dumps(entry, ensure_ascii=False), flush=True)


def _warn(sentence: str) -> None:
    typer.echo(f"skipped: {sentence}", err=True)


class _Report:
    """Counts, and where there are judgments, scores on the way."""

    def __init__(self, topics: list[str], judge: Judgments | None, every: int) -> None:
        self._topics, self._judge, self._every = topics, judge, every
        self._number = {topic: i for i, topic in enumerate(topics)}
        self._tally = FilteringTally(len(topics))
        self._waiting: list[tuple[str, list[str]]] = []
        self._assigned = np.zeros(len(topics), dtype=int)
        self.n_documents = self.n_asked = 0
        self.evolution: list[FilteringScores] = []
        if judge is not None and not judge.topics & set(topics):
            raise InvalidInputError(
                "None of the judgments is about any of the topics; check that they have the same "
                f"names, as {topics[0]!r}."
            )

    def add(self, document: str, decisions: list[Decision]) -> None:
        self.n_documents += 1
        retrieved = [d.topic for d in decisions if d.retrieved]
        self.n_asked += sum(d.action == "ask" for d in decisions)
        for topic in retrieved:
            self._assigned[self._number[topic]] += 1
        if self._judge is not None:
            if document in self._judge:
                self._waiting.append((document, retrieved))
            if self.n_documents % self._every == 0:
                self._score()

    def _score(self) -> None:
        assert self._judge is not None
        shape = len(self._waiting), len(self._topics)
        got, wanted = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        for k, (document, retrieved) in enumerate(self._waiting):
            got[k, [self._number[topic] for topic in retrieved]] = True
            wanted[k] = [self._judge(document, topic) is True for topic in self._topics]
        self._tally.add(got, wanted)
        self._waiting = []
        if self._tally.n_documents:
            self.evolution.append(self._tally.scores())

    def summary(self, n_skipped: int) -> dict[str, Any]:
        """What the run did, as plain values."""
        found: dict[str, Any] = {
            "documents": self.n_documents,
            "skipped": n_skipped,
            "asked": self.n_asked,
            "assigned": dict(zip(self._topics, self._assigned.tolist(), strict=True)),
        }
        if self._judge is None:
            return found
        if self._waiting:
            self._score()
        if self.evolution:
            last = self.evolution[-1]
            found["judged"] = last.n_documents
            found["micro"], found["macro"] = _plain(last.micro), _plain(last.macro)
        return found


def _plain(scores: dict[str, float]) -> dict[str, float | None]:
    return {name: value if np.isfinite(value) else None for name, value in scores.items()}


def _show(summary: dict[str, Any], evolution: list[FilteringScores]) -> None:
    console = Console(stderr=True)
    console.print(
        f"{summary['documents']} documents, {summary['skipped']} skipped, "
        f"{summary['asked']} questions"
    )
    table = Table("topic", "documents")
    for topic, n in sorted(summary["assigned"].items(), key=lambda item: -item[1]):
        table.add_row(topic, str(n))
    console.print(table)
    if "macro" in summary:
        title = f"{summary['judged']} judged documents"
        scores = Table("", *_SHOWN.values(), title=title, box=SIMPLE, padding=(0, 1, 0, 0))
        for kind in ("micro", "macro"):
            cells = [summary[kind].get(name) for name in _SHOWN]
            scores.add_row(kind, *["" if cell is None else f"{cell:.3f}" for cell in cells])
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


@contextmanager
def _counting() -> Iterator[Any]:
    """A line that counts documents, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda found: None
        return
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)
        seen = [0, 0]

        def count(found: bool) -> None:
            seen[0] += 1
            seen[1] += found
            if seen[0] % 100 == 0:
                progress.update(task, description=f"{seen[0]:,} documents, {seen[1]:,} for a topic")

        yield count


def _metric(path: Path) -> Any:
    """A form or learner for vectors of text."""
    found = read_saved(path, "a saved form or learner")
    if isinstance(found, Model):
        raise InvalidInputError(
            f"{path} is a model of a table's columns, which texts do not have; give a form or "
            "learner of text vectors, as its save writes it."
        )
    return found


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("--plot needs matplotlib: pip install 'samewise[plots]'.") from error
    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot

    return pyplot


def _draw(pyplot: Any, evolution: list[FilteringScores], path: Path | None) -> None:
    figure, axes = pyplot.subplots(figsize=(7, 4))
    n = [scores.n_documents for scores in evolution]
    for name, label in _SHOWN.items():
        if name != "balanced_error":
            axes.plot(n, [scores.macro[name] for scores in evolution], label=label)
    axes.set(xlabel="judged documents", ylabel="macro average", ylim=(0, 1))
    axes.legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
