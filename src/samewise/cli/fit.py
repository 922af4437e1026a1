"""samewise fit: learn a metric from labeled rows, and write it to a file."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from samewise.cli.console import Answer, percent, say, show_table, working
from samewise.cli.exports import check_output
from samewise.cli.options import (
    Columns,
    Data,
    ScaleChoice,
    Scaled,
    Seed,
    command,
    parsed_params,
)
from samewise.cli.tables import check_classes, filled, read_table
from samewise.exceptions import InvalidInputError
from samewise.model import Model
from samewise.protocols import fit_model, make_learner
from samewise.protocols.row_splits import held_rows
from samewise.scores import verdict


class KeepChoice(StrEnum):
    """What is kept where nothing was gained."""

    better = "better"
    learned = "learned"


_PLAIN = ("euclidean", "cosine")
LearnerName = Annotated[
    str, typer.Option(help="Name of a learner, or auto: chosen by validation, with the reason.")
]
Params = Annotated[
    str | None,
    typer.Option(help="Parameters of the learner: key=value,key=value or a JSON object."),
]
Tune = Annotated[
    bool, typer.Option("--tune", help="Choose parameters from a small grid by validation.")
]
HoldOut = Annotated[
    float,
    typer.Option(
        "--hold-out",
        min=0.0,
        max=0.9,
        help="Fraction of the rows to hold out, to measure the gain on them; a data set with a "
        "standard split holds out its test part.",
    ),
]

Keep = Annotated[
    KeepChoice,
    typer.Option(
        help="better keeps the Euclidean distance or the cosine if it makes fewer errors than the "
        "learner on validation rows; learned always keeps what was learned."
    ),
]


@command("interrupted; nothing was written")
def fit(
    data: Data,
    columns: Columns,
    learner: LearnerName = "auto",
    out: Annotated[Path, typer.Option(help="File to write the model to.")] = Path("model.sw"),
    params: Params = None,
    tune: Tune = False,
    scale: Scaled = ScaleChoice.auto,
    hold: HoldOut = 0.2,
    keep: Keep = KeepChoice.better,
    seed: Seed = 0,
) -> Answer:
    """Learn a metric from labeled rows.

    Example: samewise fit wine.csv --label class --learner lmnn --out wine.sw
    """
    given = parsed_params(params)
    if learner == "auto" and given:
        raise InvalidInputError("--params belong to one learner: name it with --learner.")
    if learner != "auto":
        # Refused before anything is read.
        make_learner(learner, given)
    check_output(out)
    with working("reading") as show:
        table = read_table(data, columns, labeled=True)
        y = check_classes(table)
        held = held_rows(y, hold, seed) if hold == 0 or table.train is None else ~table.train
        table, fill = filled(table, ~held, columns.impute)
        model = fit_model(
            table.X,
            y,
            learner,
            params=given,
            tune=tune,
            scale=str(scale),
            held_out=held,
            keep=str(keep),
            random_state=seed,
            watch=show,
        )
    replace(model, label=table.label, feature_names=table.names, fill=fill).save(out)
    summary = _summary(model, out)
    then = typer.Exit(130) if summary["interrupted"] else None
    return Answer(summary, lambda: _show(summary), then)


def _summary(model: Model, out: Path) -> dict[str, Any]:
    return {
        "model": str(out),
        "learner": model.learner,
        "params": model.params,
        "kept": model.kept,
        "features": model.form.n_features_in,
        "standardized": model.mean is not None,
        "form": repr(model.form),
        "measured": model.measured,
        **model.training,
    }


def _show(summary: dict[str, Any]) -> None:
    if summary["reason"]:
        say(summary["reason"])
    standard = ", standardized" if summary["standardized"] else ""
    if summary["principal_directions"] is not None:
        standard += f" (in their {summary['principal_directions']} leading principal directions)"
    set_to = ", ".join(f"{k}={v}" for k, v in summary["params"].items())
    seen = (
        f"{summary['rows']:,} rows, {summary['features']:,} features{standard}, "
        f"{summary['classes']:,} classes"
    )
    if summary["asked"] in _PLAIN:
        say(f"{summary['asked']}, which learns nothing: {seen}.")
    else:
        say(
            f"{'Interrupted: ' if summary['interrupted'] else ''}{summary['asked']}"
            f"{f' ({set_to})' if set_to else ''} learned from {seen}, in "
            f"{summary['seconds']:.1f} s."
        )
    measured = summary["measured"]
    if measured:
        against = measured["against"]
        rows = [
            [which, percent(error), against[which]["mark"] if which in against else ""]
            for which, error in measured["errors"].items()
        ]
        title = f"3-NN error on {measured['rows']:,} held-out rows"
        show_table(["", "error", f"{summary['learner']} against it"], rows, title)
        say(_advice(summary, measured))
    elif summary["held_out"]:
        say("Interrupted before the error was measured; samewise evaluate measures it.")
    else:
        say("No rows were held out, so nothing was measured.")
    say(f"Written to {summary['model']}.")


def _advice(summary: dict[str, Any], measured: dict[str, Any]) -> str:
    name, asked, errors = summary["learner"], summary["asked"], measured["errors"]
    if name != asked:
        return f"{name} is written, since {asked} did not help; --keep learned writes {asked}."
    if name in _PLAIN:
        return "Nothing was learned: this is what learners are compared with."
    plain = min(measured["against"], key=lambda which: errors[which])
    text = f"Against {plain}: {verdict(**measured['against'][plain])}."
    if errors[name] >= errors[plain]:
        chosen = bool(summary["reason"])
        other = "another --learner" if chosen else "--tune, another --learner, or auto"
        text += f" On these rows {name} does not help; try {other}."
    return text
