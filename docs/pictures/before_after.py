"""The picture of the front page: `python -m docs.pictures.before_after` draws it anew.

Pairs of digits that were not learned from, under the Euclidean distance and under what
passive–aggressive learning made of 20 000 other pairs: those of `make demo-pairs`.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from demo.study import FROM_PAIRS, HELD_OUT, Study, run
from samewise import Pairs, Verifier
from samewise.plots import pair_histograms

TITLES = {"Euclidean": "before: Euclidean distance", FROM_PAIRS: "after 20 000 pairs"}


def draw(study: Study) -> Figure:
    """Before and after, side by side."""
    split = study.split
    unseen = Pairs.from_labels(split.X_test, split.y_test, HELD_OUT, random_state=1)
    stream = Pairs.from_labels(split.X_train, split.y_train, study.n_pairs, random_state=0)
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    for (name, title), ax in zip(TITLES.items(), figure.subplots(1, 2), strict=True):
        form = study.forms[name]
        own = Verifier(study.learner) if name == FROM_PAIRS else None
        verifier = own or Verifier(form, criterion="balanced_accuracy")
        pair_histograms(form, unseen, threshold=verifier.fit(stream).threshold_, ax=ax)
        ax.set_title(f"{title}: {100 * study.row(name).verification_error:.1f} % wrong")
    return figure


if __name__ == "__main__":
    draw(run()).savefig(
        Path(__file__).with_name("before_after.png"), dpi=100, metadata={"Software": None}
    )
