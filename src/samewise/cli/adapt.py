"""samewise adapt: a log of feedback through a live adapter."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from samewise.adapt import LiveAdapter
from samewise.adapt.event_lines import EventReader
from samewise.adapt.replay import FORMS, MOST_PROBLEMS, LogReplay
from samewise.cli.console import Answer, number, percent, printable, say, show_table, working
from samewise.cli.exports import check_output
from samewise.cli.options import Seed, command, read_saved
from samewise.cli.vector_files import digest, read_vectors
from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.files.json_lines import lines_of

_PLACES = {"rest": "order", "first": "first place"}
_MEASURES = {"auc": "rest", "first_liked": "first"}

Events = Annotated[
    str,
    typer.Argument(
        help="JSON lines, gzipped if the name ends in .gz, or - for standard input.",
        metavar="EVENTS",
    ),
]
Items = Annotated[
    str, typer.Option(help="Vectors of the items: .npy, Parquet, or rows as other commands read.")
]
Queries = Annotated[
    str | None, typer.Option(help="Vectors of queries that events name by ids, as for --items.")
]
Out = Annotated[
    Path | None,
    typer.Option(help="File to write the adapter to; with it, a killed run can go on."),
]
IdColumn = Annotated[
    str | None,
    typer.Option("--id", help="Column of the ids; by default id if there is one, or row numbers."),
]
Guard = Annotated[
    float, typer.Option(help="Probability of ever promoting in vain; 0 serves the live form.")
]
HalfLife = Annotated[
    float | None, typer.Option(help="Events after which what was learned counts half.")
]
Log = Annotated[bool, typer.Option(help="Keep events in the adapter, so that it can forget.")]
Strict = Annotated[
    bool, typer.Option("--strict", help="Stop at the first line that cannot be used.")
]
Every = Annotated[int, typer.Option(min=1, help="Lines between two checkpoints, with --out.")]


@dataclass(frozen=True)
class Run:
    """What is replayed, and where it is kept."""

    events: str
    reader: EventReader
    out: Path | None
    strict: bool
    every: int

    @property
    def checkpoint(self) -> Path | None:
        """Beside the adapter, until that is written."""
        return None if self.out is None else self.out.with_name(f"{self.out.name}.checkpoint")


@command("interrupted; with --out, the same command goes on from the last checkpoint")
def adapt(
    events: Events,
    items: Items,
    queries: Queries = None,
    out: Out = None,
    id_column: IdColumn = None,
    vector_field: Annotated[str, typer.Option(help="Column or field of the vectors.")] = "vector",
    guard: Guard = 0.05,
    margin: Annotated[float, typer.Option(help="In units of the items' gap.")] = 0.3,
    memory: Annotated[int, typer.Option(help="Lists that are remembered.")] = 20_000,
    half_life: HalfLife = None,
    expand: Annotated[bool, typer.Option("--expand", help="Rank with the five best.")] = False,
    log: Log = True,
    seed: Seed = 0,
    strict: Strict = False,
    every: Every = 10_000,
) -> Answer:
    """Replay a log of feedback through a live adapter, and report what it would have gained.

    A line of EVENTS is {"query": [0.1, ...], "shown": ["a", "b"], "y": [1, -1]}, or has clicked,
    ranking, thumb or same in the place of y.

    Example: samewise adapt events.jsonl --items items.npy --out adapter.sw
    """
    if out is not None:
        check_output(out)
    parameters: dict[str, Any] = {
        "guard": guard or None,
        "margin": margin,
        "memory": memory,
        "half_life": half_life,
        "expand": expand,
        "log": log,
    }
    with working("reading") as show:
        vectors = read_vectors(items, id_column, vector_field)
        named = None if queries is None else read_vectors(queries, id_column, vector_field)
        if named is not None and named.X.shape[1] != vectors.X.shape[1]:
            raise InvalidInputError(
                f"{queries} has vectors of {named.X.shape[1]} numbers, and {items} of "
                f"{vectors.X.shape[1]}; they must be as long."
            )
        given = {name.replace("_", "-"): repr(value) for name, value in parameters.items()}
        given |= {"seed": str(seed), "items": digest(vectors), "queries": digest(named)}
        run = Run(events, EventReader(vectors, named), out, strict, every)
        replay = _resumed(run, given)
        if replay is None:
            adapter = LiveAdapter(**parameters, items=vectors.X, random_state=seed)
            replay = LogReplay(adapter.fit(vectors.X), given)
        _replay(run, replay, show)
    content = _summary(run, replay)
    return Answer(content, lambda: _show(content))


def _resumed(run: Run, given: dict[str, str]) -> LogReplay | None:
    """The replay that a killed run has kept."""
    path = run.checkpoint
    if path is None or not path.exists():
        return None
    try:
        kept = read_saved(path)
    except FileFormatError as error:
        raise FileFormatError(
            f"{path}, the checkpoint of a run that was stopped, cannot be used. Delete it to begin "
            "anew."
        ) from error
    if not isinstance(kept, LogReplay):
        raise InvalidInputError(f"{path} is no checkpoint of a replay; move it away.")
    differing = [f"--{name}" for name in given if given[name] != kept.given.get(name)]
    if differing:
        raise InvalidInputError(
            f"{path} is of a run with another {' and another '.join(differing)}. Go on with the "
            "same, or delete it to begin anew."
        )
    kept.adapter.items = run.reader.items.X
    return kept


def _replay(run: Run, replay: LogReplay, show: Any) -> None:
    name = "standard input" if run.events == "-" else run.events
    done, n_told = replay.n_lines, len(replay.problems)
    for sentence in replay.problems:
        _tell(sentence)

    def problem(sentence: str) -> None:
        nonlocal n_told
        if run.strict:
            raise FileFormatError(sentence)
        n_told += 1
        if n_told <= MOST_PROBLEMS:
            _tell(sentence)
        elif n_told == MOST_PROBLEMS + 1:
            _tell("further lines that cannot be used are only counted.")

    n = 0
    for line in lines_of(run.events):
        if line is None:
            continue
        n += 1
        if n <= done:
            replay.skip(line)
            if n == done:
                _check_prefix(run, replay)
            continue
        replay.take(line, name, run.reader, problem)
        if n % 1000 == 0:
            show(f"{n:,} lines")
        if run.checkpoint is not None and n % run.every == 0:
            replay.save(run.checkpoint)
    if n < done:
        raise InvalidInputError(
            f"{name} has {n:,} lines, fewer than the {done:,} that were replayed before. Give the "
            f"same log, or delete {run.checkpoint} to begin anew."
        )
    if not replay.adapter.n_events_:
        first = f" The first problem: {replay.problems[0]}" if replay.problems else ""
        raise InvalidInputError(f"{name} has no event that can be used.{first}")
    if run.out is not None and run.checkpoint is not None:
        replay.adapter.save(run.out)
        # Only now: a run that is killed before goes on from there, to the same adapter.
        with suppress(FileNotFoundError):
            run.checkpoint.unlink()


def _check_prefix(run: Run, replay: LogReplay) -> None:
    try:
        replay.check_prefix()
    except InvalidInputError as error:
        raise InvalidInputError(
            f"{error} Give the same log, or delete {run.checkpoint} to begin anew."
        ) from error


def _tell(sentence: str) -> None:
    typer.echo(printable(f"skipped: {sentence}"), err=True)


def _summary(run: Run, replay: LogReplay) -> dict[str, Any]:
    adapter = replay.adapter
    content: dict[str, Any] = {
        "events": adapter.n_events_,
        "counts": replay.counts,
        "problems": replay.problems,
        "portions": replay.portions,
        "against_start": {
            form: {name: asdict(replay.test(form, name)) for name in _MEASURES}
            for form in FORMS[1:]
        },
        "verdicts": {
            form: {name: replay.test(form, name).verdict for name in _MEASURES}
            for form in FORMS[1:]
        },
        "adapter": None if run.out is None else str(run.out),
    }
    if adapter.guard is not None:
        report = adapter.guard_
        content["changes"] = list(report.history)
        content["guard"] = {name: getattr(report, name) for name in (
            "wealth", "needed", "expected_events", "credible", "agreement", "served"
        )}  # fmt: skip
    return content


def _show(content: dict[str, Any]) -> None:
    counts = dict(content["counts"])
    skipped, again = counts.pop("skipped"), counts.pop("seen before")
    kinds = ", ".join(f"{n:,} {name}" for name, n in counts.items() if n)
    say(
        f"{content['events']:,} events ({kinds}), {again:,} seen before, {skipped:,} lines skipped."
    )
    if content["portions"]:
        _show_course(content)
    else:
        say("No list has items of both kinds, so the forms were not compared.")
    if "guard" in content:
        for sentence in _served(content):
            say(sentence)
    if content["adapter"]:
        say(f"Written to {content['adapter']}.")


def _show_course(content: dict[str, Any]) -> None:
    headers = ["lists", *(f"AUC {form}" for form in FORMS), *(f"first liked {f}" for f in FORMS)]
    rows = [
        [
            f"{p['first_list']:,}–{p['last_list']:,}",
            *(number(p["auc"][form]) for form in FORMS),
            *(percent(p["first_liked"][form]) for form in FORMS),
        ]
        for p in content["portions"]
    ]
    show_table(headers, rows, "Each list before it was learned from")
    for name, place in _MEASURES.items():
        parts = []
        for form in FORMS[1:]:
            test = content["against_start"][form][name]
            parts.append(
                f"{form} {content['verdicts'][form][name]} (lists better: {test['n_better']:,}, "
                f"worse: {test['n_worse']:,})"
            )
        say(f"Against the start, by the {_PLACES[place]}: {'; '.join(parts)}.")


def _served(content: dict[str, Any]) -> list[str]:
    """What would have been served, and what is missing for the next promotion."""
    words = {"promote": "promoted", "fall back": "fell back to the start"}
    changes = [
        f"{_PLACES[c['place']]} {words.get(c['why'], c['why'])} after {c['event']:,} events"
        for c in content["changes"]
    ]
    guard = content["guard"]
    found = [f"What is served: {', '.join(changes)}." if changes else "Nothing was promoted."]
    if not guard["credible"]:
        found.append(
            f"Answers of the last lists agree with the start by {guard['agreement']:.3f} (2 AUC − "
            "1), not yet enough for a promotion."
        )
    for place, name in _PLACES.items():
        more = guard["expected_events"][place]
        ahead = "the live form is not ahead" if more == float("inf") else (
            f"about {more:,.0f} more lists like these"
        )  # fmt: skip
        found.append(
            f"Next promotion of the {name}: wealth {number(guard['wealth'][place])} of "
            f"{number(guard['needed'][place])}, {ahead}."
        )
    return found
