"""samewise evaluate: what a model is good for on data it has not seen."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from samewise._typing import Matrix
from samewise.cli.errors import one_sentence
from samewise.cli.options import (
    Data,
    Debug,
    Drop,
    Features,
    Id,
    Json,
    Label,
    ModelFile,
    Seed,
    VectorField,
    check_neighbors,
    listed,
    open_model,
)
from samewise.cli.shown import (
    number,
    p_value,
    percent,
    print_json,
    say,
    show_table,
    verdict,
    working,
)
from samewise.cli.tables import Table, check_classes, read_table
from samewise.learners import Cosine
from samewise.model import Model
from samewise.protocols import Gain, Measured, evaluate, gain, hold_out

__all__ = ["evaluate_model", "query_and_items"]

_PART = 0.3


def evaluate_model(
    model_file: ModelFile,
    data: Data,
    label: Label = None,
    test: Annotated[
        str | None,
        typer.Option(help="Rows to judge by; DATA are then the rows they are compared with."),
    ] = None,
    neighbors: Annotated[int, typer.Option("-k", min=1, help="Neighbors that decide.")] = 3,
    seed: Seed = 0,
    features: Features = None,
    drop: Drop = None,
    id_column: Id = None,
    vector_field: VectorField = "vector",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Measure a model against the Euclidean distance and the cosine, and say if the gain is real.

    Rows to judge by are, in this order: those of --test, the test part of a data set's standard
    split, the rows of DATA that the model was not learned from, or 30 % of DATA.

    Example: samewise evaluate wine.sw wine.csv
    """
    with one_sentence(debug, as_json, "interrupted"):
        model = open_model(model_file)

        def read(source: str) -> Table:
            return read_table(
                source,
                label=label,
                known_label=model.label,
                features=listed(features),
                drop=listed(drop),
                id_column=id_column,
                vector_field=vector_field,
            )

        with working("reading") as show:
            table = read(data)
            y = check_classes(table)
            if test is None:
                queries, note = query_and_items(model, table, seed)
                X = model.prepare(table.X, table.names)
                parts = X[~queries], y[~queries], X[queries], y[queries]
            else:
                other = read(test)
                parts = (
                    model.prepare(table.X, table.names),
                    y,
                    model.prepare(other.X, other.names),
                    check_classes(other),
                )
                note = f"rows of {test}, compared with those of {data}"
                seen = int(model.has_seen(other.X, other.names).sum())
                if seen:
                    note += f"; the model was learned from {seen} of them, which flatters it"
            check_neighbors(neighbors, len(parts[1]))
            found = _measured(model, parts, neighbors, seed, show)
        *plain, learned = found
        gains = [gain(before, learned) for before in plain]
        if as_json:
            print_json(_content(model, parts, note, found, gains))
        else:
            _show(model, parts, note, found, gains, neighbors)


def query_and_items(model: Model, table: Table, seed: int) -> tuple[NDArray[np.bool_], str]:
    """Which rows to judge a model by, and how they were found."""
    assert table.y is not None
    if table.train is not None:
        return ~table.train, f"the test part of {table.source}"
    seen = model.has_seen(table.X, table.names)
    if seen.any() and not seen.all():
        return ~seen, "the rows that the model was not learned from"
    queries = hold_out(table.y, _PART, seed)
    if seen.all():
        return queries, (
            "30 % of the rows; the model was learned from all of them, which flatters it: give "
            "other rows with --test, or learn with --hold-out"
        )
    return queries, "30 % of the rows; none of them is known to the model"


Parts = tuple[Matrix, NDArray[Any], Matrix, NDArray[Any]]


def _measured(model: Model, parts: Parts, neighbors: int, seed: int, show: Any) -> list[Measured]:
    name = model.learner or type(model.form).__name__
    forms = {
        "euclidean": None,
        "cosine": Cosine().fit(parts[0]).metric_,
        f"{name} (model)": model.form,
    }
    found = []
    for which, form in forms.items():
        show(f"measuring {which} on {len(parts[3]):,} rows")
        found.append(evaluate(form, *parts, name=which, n_neighbors=neighbors, random_state=seed))
    return found


def _content(
    model: Model, parts: Parts, note: str, found: list[Measured], gains: list[Gain]
) -> dict[str, Any]:
    return {
        "items": len(parts[1]),
        "queries": len(parts[3]),
        "judged_by": note,
        "standardized": model.mean is not None,
        "measured": [
            {
                "name": m.name,
                "knn_error": m.knn_error,
                "sknn_error": m.sknn_error,
                "precision": m.precision,
                "mean_average_precision": m.mean_average_precision,
                "verification_error": m.verification_error,
            }
            for m in found
        ],
        "gains": [vars(g) for g in gains],
    }


def _show(
    model: Model,
    parts: Parts,
    note: str,
    found: list[Measured],
    gains: list[Gain],
    neighbors: int,
) -> None:
    ks = list(found[0].precision)
    headers = ["", f"{neighbors}-NN error", "SkNN error", *(f"P@{k}" for k in ks)]
    rows = [
        [
            m.name,
            percent(m.knn_error),
            percent(m.sknn_error),
            *(number(m.precision[k]) for k in ks),
            number(m.mean_average_precision),
            percent(m.verification_error),
        ]
        for m in found
    ]
    say(f"{len(parts[3]):,} rows against {len(parts[1]):,}: {note}.")
    show_table([*headers, "mAP", "verification error"], rows)
    for g in gains:
        say(
            f"Against {g.before}: {percent(g.errors[0])} → {percent(g.errors[1])}, {g.mark} "
            f"({p_value(g.p_value)}; rows better: {g.n_better}, worse: {g.n_worse}): "
            f"{verdict(g.mark)}."
        )
    if model.mean is not None:
        say("All three compare standardized rows, so scaling alone is no gain.")
