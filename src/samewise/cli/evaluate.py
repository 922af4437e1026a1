"""samewise evaluate: what a model is good for on data it has not seen."""

from __future__ import annotations

from typing import Any

from samewise import protocols
from samewise.cli.console import Answer, number, percent, say, show_table, working
from samewise.cli.judged_rows import Test, read_judged_rows
from samewise.cli.options import Columns, Data, ModelFile, Neighbors, Seed, command, open_model


@command()
def evaluate(
    model_file: ModelFile,
    data: Data,
    columns: Columns,
    test: Test = None,
    neighbors: Neighbors = 3,
    seed: Seed = 0,
) -> Answer:
    """Compare a model with the Euclidean distance and the cosine, on rows it was not trained on.

    These rows are, in this order: those of --test, the test part of a data set's standard
    split, the rows of DATA that the model was not trained on, or 30 % of DATA.

    Example: samewise evaluate wine.sw wine.csv
    """
    model = open_model(model_file)
    with working("reading") as show:
        judged = read_judged_rows(model, data, test, columns, neighbors, seed)
        found = protocols.evaluate(
            model.form,
            *judged.parts,
            name=f"{model.learner or type(model.form).__name__} (model)",
            n_neighbors=neighbors,
            random_state=seed,
            watch=show,
        )
    content = {
        "items": found.n_items,
        "queries": found.n_queries,
        "judged_by": judged.note,
        "standardized": model.mean is not None,
        "measured": [m.as_dict() for m in found.measured],
        "gains": [vars(g) for g in found.gains],
    }
    return Answer(content, lambda: _show(content, found, neighbors))


def _show(content: dict[str, Any], found: protocols.ModelEvaluation, neighbors: int) -> None:
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
    say(f"{found.n_queries:,} rows against {found.n_items:,}: {content['judged_by']}.")
    show_table([*headers, "mAP", "verification error"], rows)
    for g in found.gains:
        say(
            f"Against {g.before}: {percent(g.errors[0])} → {percent(g.errors[1])}: {g.verdict} "
            f"(rows better: {g.n_better}, worse: {g.n_worse})."
        )
    if content["standardized"]:
        say("All three compare standardized rows, so scaling alone is no gain.")
