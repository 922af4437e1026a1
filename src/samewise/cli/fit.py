"""samewise fit: learn a metric from labeled rows, and write it to a file."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import typer
from numpy.typing import NDArray

from samewise._typing import Array, Matrix
from samewise.cli.errors import one_sentence
from samewise.cli.exports import check_output
from samewise.cli.options import (
    Data,
    Debug,
    Drop,
    Features,
    Id,
    Json,
    Label,
    Seed,
    VectorField,
    listed,
    parsed_params,
)
from samewise.cli.shown import p_value, percent, print_json, say, show_table, verdict, working
from samewise.cli.tables import check_classes, read_table
from samewise.exceptions import InvalidInputError
from samewise.learners import Cosine
from samewise.model import Model, row_marks, standardized
from samewise.protocols import (
    Choice,
    calibrate_threshold,
    choose_learner,
    hold_out,
    knn_correct,
    make_learner,
    mean_and_scale,
    reduction_for,
    standardization,
    tune_learner,
)
from samewise.scores import s_test

__all__ = ["fit"]


class Scaling(StrEnum):
    """Whether columns are standardized before learning."""

    auto = "auto"
    standard = "standard"
    none = "none"


def fit(
    data: Data,
    label: Label = None,
    learner: Annotated[
        str, typer.Option(help="Name of a learner, or auto: chosen by validation, with the reason.")
    ] = "auto",
    out: Annotated[Path, typer.Option(help="File to write the model to.")] = Path("model.sw"),
    params: Annotated[
        str | None, typer.Option(help="Of the learner: key=value,key=value or a JSON object.")
    ] = None,
    tune: Annotated[
        bool, typer.Option("--tune", help="Choose parameters from a small grid by validation.")
    ] = False,
    scale: Annotated[
        Scaling,
        typer.Option(
            help="auto standardizes dense columns whose spreads differ more than tenfold, unless "
            "3-NN is clearly better without."
        ),
    ] = Scaling.auto,
    hold: Annotated[
        float,
        typer.Option(
            "--hold-out",
            min=0.0,
            max=0.9,
            help="Part of the rows that is not learned from, so that the gain can be measured; a "
            "data set with a standard split holds out its test part.",
        ),
    ] = 0.2,
    seed: Seed = 0,
    features: Features = None,
    drop: Drop = None,
    id_column: Id = None,
    vector_field: VectorField = "vector",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Learn a metric from labeled rows.

    Example: samewise fit wine.csv --label class --learner lmnn --out wine.sw
    """
    with one_sentence(debug, as_json, "interrupted; nothing was written"):
        given = parsed_params(params)
        if learner == "auto" and given:
            raise InvalidInputError("--params belong to one learner: name it with --learner.")
        if learner != "auto":
            make_learner(learner, given)
        check_output(out)
        with working("reading") as show:
            table = read_table(
                data,
                label=label,
                features=listed(features),
                drop=listed(drop),
                id_column=id_column,
                vector_field=vector_field,
            )
            y = check_classes(table)
            held = np.zeros(len(y), dtype=bool)
            if hold > 0:
                held = hold_out(y, hold, seed) if table.train is None else ~table.train
            scaling = _scaling(table.X[~held], y[~held], scale)
            X = table.X if scaling is None else standardized(table.X, *scaling)
            job = _Job(X[~held], y[~held], X[held], y[held], seed, show)
            choice = job.choose(learner, given, tune)
            found = job.learn(choice)
            interrupted, measured = found.interrupted, {}
            threshold = calibrate_threshold(found.form, job.X, job.y, random_state=seed)
            try:
                if held.any():
                    measured = job.measure(choice.name, found.form)
            except KeyboardInterrupt:
                # What was learned is kept, measured or not.
                interrupted = True
        model = Model(
            found.form,
            table.names,
            table.label,
            mean=None if scaling is None else scaling[0],
            scale=None if scaling is None else scaling[1],
            learner=choice.name,
            params=choice.params,
            measured=measured,
            threshold=threshold,
            versions=_versions(),
            seen=np.unique(row_marks(table.X[~held])),
        )
        model.save(out)
        summary: dict[str, Any] = {
            "model": str(out),
            "learner": choice.name,
            "params": choice.params,
            "reason": choice.reason,
            "rows": len(job.y),
            "held_out": len(job.y_held),
            "features": X.shape[1],
            "classes": len(np.unique(y)),
            "standardized": scaling is not None,
            "principal_directions": found.n_directions,
            "seconds": found.seconds,
            "interrupted": interrupted,
            "form": repr(found.form),
            "measured": measured,
            "tried": [
                {"learner": t.name, "params": t.params, "error": t.error, "seconds": t.seconds}
                | ({"refused": t.refused} if t.refused else {})
                for t in choice.table
            ],
        }
        if as_json:
            print_json(summary)
        else:
            _show(summary)
        if interrupted:
            raise typer.Exit(130)


@dataclass(frozen=True)
class _Learned:
    form: Any
    n_directions: int | None
    seconds: float
    interrupted: bool


@dataclass(frozen=True)
class _Job:
    """Rows to learn from and rows held out, scaled."""

    X: Matrix
    y: NDArray[Any]
    X_held: Matrix
    y_held: NDArray[Any]
    seed: int
    show: Callable[[str], None]

    def choose(self, name: str, params: dict[str, Any], tune: bool) -> Choice:
        table: list[Any] = []
        reason = ""
        if name == "auto":

            def watch(trial: str, done: int, total: int) -> None:
                self.show(f"choosing a learner: {trial}, {done} of {total} tried")

            choice = choose_learner(self.X, self.y, random_state=self.seed, watch=watch)
            name, reason, table = choice.name, choice.reason, choice.table
        if tune:

            def watch_tuning(trial: str, done: int, total: int) -> None:
                self.show(f"tuning {trial}: {done} of {total} settings tried")

            tuned = tune_learner(
                name, self.X, self.y, params=params, random_state=self.seed, watch=watch_tuning
            )
            params, table = tuned.params, [*table, *tuned.table]
            reason = f"{reason} {tuned.reason}".strip()
        return Choice(name, params, make_learner(name, params, self.seed), reason, table)

    def learn(self, choice: Choice) -> _Learned:
        learner, name = choice.learner, choice.name
        self.show(f"learning: {name} from {len(self.y):,} rows")
        if "callback" in learner.get_params():

            def watch(info: dict[str, Any]) -> None:
                loss = info.get("loss")
                shown = "" if loss is None else f", loss {loss:.5g}"
                self.show(f"learning: {name}, iteration {info.get('iteration', '')}{shown}")

            learner.set_params(callback=watch)
        start = time.perf_counter()
        reduction = reduction_for(learner, self.X)
        try:
            learner.fit(reduction.rows(self.X), self.y)
            interrupted = False
        except KeyboardInterrupt:
            if not hasattr(learner, "metric_"):
                raise
            # What was learned up to there is sound, and is kept.
            interrupted = True
        seconds = time.perf_counter() - start
        form = reduction.lift(learner.metric_)
        return _Learned(form, reduction.n_directions, seconds, interrupted)

    def measure(self, name: str, form: Any) -> dict[str, Any]:
        """3-NN errors on the rows held out, and the s-test."""
        forms = {"euclidean": None, "cosine": Cosine().fit(self.X).metric_, name: form}
        correct = {}
        for which, metric in forms.items():
            self.show(f"measuring {which} on {len(self.y_held):,} rows")
            correct[which] = knn_correct(metric, self.X, self.y, self.X_held, self.y_held)
        found: dict[str, Any] = {
            "rows": len(self.y_held),
            "errors": {which: float(np.mean(~right)) for which, right in correct.items()},
        }
        tests = {b: s_test(correct[name], correct[b]) for b in ("euclidean", "cosine") if b != name}
        found["against"] = {b: {"mark": t.mark, "p_value": t.p_value} for b, t in tests.items()}
        return found


def _scaling(X: Matrix, y: NDArray[Any], scale: Scaling) -> tuple[Array, Array] | None:
    if scale == Scaling.none:
        return None
    if scale == Scaling.auto:
        return standardization(X, y)
    if sp.issparse(X):
        raise InvalidInputError("--scale standard would make sparse rows dense; use --scale none.")
    return mean_and_scale(X)


def _versions() -> dict[str, str]:
    names = ("samewise", "numpy", "scipy", "scikit-learn")
    return {"python": platform.python_version(), **{n: metadata.version(n) for n in names}}


def _show(summary: dict[str, Any]) -> None:
    if summary["reason"]:
        say(summary["reason"])
    standard = ", standardized" if summary["standardized"] else ""
    if summary["principal_directions"] is not None:
        standard += f" (in their {summary['principal_directions']} leading principal directions)"
    set_to = ", ".join(f"{k}={v}" for k, v in summary["params"].items())
    say(
        f"{'Interrupted: ' if summary['interrupted'] else ''}{summary['learner']}"
        f"{f' ({set_to})' if set_to else ''} learned from {summary['rows']:,} rows, "
        f"{summary['features']:,} features{standard}, {summary['classes']:,} classes, in "
        f"{summary['seconds']:.1f} s."
    )
    measured = summary["measured"]
    if measured:
        against = measured["against"]
        rows = [
            [which, percent(error), against[which]["mark"] if which in against else ""]
            for which, error in measured["errors"].items()
        ]
        title = f"3-NN error on {measured['rows']:,} rows that were not learned from"
        show_table(["", "error", f"{summary['learner']} against it"], rows, title)
        say(_advice(summary["learner"], measured, bool(summary["reason"])))
    elif summary["held_out"]:
        say("It was stopped before it was measured; samewise evaluate measures it.")
    else:
        say("No rows were held out, so nothing was measured.")
    say(f"Written to {summary['model']}.")


def _advice(name: str, measured: dict[str, Any], chosen: bool) -> str:
    if not measured["against"] or name in ("euclidean", "cosine"):
        return "Nothing was learned; this is what others are compared with."
    errors = measured["errors"]
    plain = min(measured["against"], key=lambda which: errors[which])
    test = measured["against"][plain]
    text = f"Against {plain}: {verdict(test['mark'])} ({p_value(test['p_value'])})."
    if errors[name] >= errors[plain]:
        other = "another --learner" if chosen else "--tune, another --learner, or auto"
        text += f" On these rows {name} does not help; try {other}."
    return text
