"""The report of the demo: that of any learned metric, and what is special about a stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from demo import text
from demo.study import FROM_LABELS, FROM_PAIRS, N_NEIGHBORS, Study
from samewise import plots
from samewise.report import (
    Report,
    ReportOptions,
    Section,
    bullets,
    code,
    paragraph,
    picture,
    table,
    write_report,
)


def write(study: Study, path: Path) -> Report:
    """Write the report."""
    split = study.split
    return write_report(
        path,
        {FROM_PAIRS: study.learner, FROM_LABELS: study.lmnn},
        split.X_train,
        split.y_train,
        split.X_test,
        split.y_test,
        ReportOptions(
            title="Learning what “similar” means",
            about=[
                "Pairs of handwritten digits arrive one after the other, with the answer “same” or "
                "“not the same”. A passive–aggressive learner turns them into a Mahalanobis "
                "distance and a threshold. Beside it, LMNN learns a distance from the labels. "
                "Below: what that changes on images that neither has seen."
            ],
            sections=[_stream(study), _copy(study)],
            image_shape=(8, 8),
            n_neighbors=N_NEIGHBORS,
            command=f"python -m demo.pairs --pairs {study.n_pairs}",
        ),
    )


def _stream(study: Study) -> Section:
    errors = np.array(
        [[row.knn_error, row.few_error, row.verification_error] for row in study.table]
    )
    best = errors == errors.min(axis=0)
    updates, forms = zip(*study.trajectory, strict=True)

    def draw(ax: Any) -> None:
        plots.rank_curve(updates, forms, ax=ax).set_xscale("log")

    ranks = [form.effective_rank() for form in forms]
    return Section(
        "A stream of pairs, and few stored images",
        [
            table(
                text.COLUMNS,
                map(text.cells, study.table),
                caption="The lowest error of each column is bold.",
                best=lambda row, column: column <= best.shape[1] and bool(best[row, column - 1]),
            ),
            bullets(text.findings(study)),
            picture(
                draw,
                alt=f"The rank of M over the updates, from {ranks[0]} to {ranks[-1]}.",
                caption="Each update adds a direction or takes one away. The rank of the averaged "
                f"M goes from {ranks[0]} to {ranks[-1]} of {study.split.X_train.shape[1]}.",
            ),
            paragraph("How these numbers were obtained:"),
            bullets(text.conditions(study)),
        ],
    )


def _copy(study: Study) -> Section:
    said = (
        f"This prints the verification and nearest-neighbor errors of “{FROM_PAIRS}” in the table."
    )
    return Section("Do the same", [paragraph(said), code(text.code(study))])
