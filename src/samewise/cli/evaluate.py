"""samewise evaluate: what a model is good for on data it has not seen."""

from __future__ import annotations

from samewise.cli.console import number, percent, print_json, say, show_table, working
from samewise.cli.judged_rows import read_judged_rows
from samewise.cli.options import (
    Columns,
    Data,
    Json,
    ModelFile,
    Neighbors,
    Seed,
    Test,
    command,
    open_model,
)
from samewise.protocols import ModelEvaluation, evaluate


@command()
def evaluate_model(
    model_file: ModelFile,
    data: Data,
    columns: Columns,
    test: Test = None,
    neighbors: Neighbors = 3,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Measure a model against the Euclidean distance and the cosine, and say what it gains.

    Rows to judge by are, in this order: those of --test, the test part of a data set's standard
    split, the rows of DATA that the model was not learned from, or 30 % of DATA.

    Example: samewise evaluate wine.sw wine.csv
    """
    model = open_model(model_file)
    with working("reading") as show:
        judged = read_judged_rows(model, data, test, columns, neighbors, seed)
        found = evaluate(
            model.form,
            *judged.parts,
            name=f"{model.learner or type(model.form).__name__} (model)",
            n_neighbors=neighbors,
            random_state=seed,
            watch=show,
        )
    if not as_json:
        _show(found, judged.note, neighbors)
        if model.mean is not None:
            say("All three compare standardized rows, so scaling alone is no gain.")
        return
    print_json(
        {
            "items": found.n_items,
            "queries": found.n_queries,
            "judged_by": judged.note,
            "standardized": model.mean is not None,
            "measured": [m.as_dict() for m in found.measured],
            "gains": [vars(g) for g in found.gains],
        }
    )


def _show(found: ModelEvaluation, note: str, neighbors: int) -> None:
    ks = list(found.measured[0].precision)
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
        for m in found.measured
    ]
    say(f"{found.n_queries:,} rows against {found.n_items:,}: {note}.")
    show_table([*headers, "mAP", "verification error"], rows)
    for g in found.gains:
        say(
            f"Against {g.before}: {percent(g.errors[0])} → {percent(g.errors[1])}: {g.verdict} "
            f"(rows better: {g.n_better}, worse: {g.n_worse})."
        )
