"""The picture of the front page: `python docs/pictures/before_after.py` draws it anew.

Pairs of digits that were not learned from, under the Euclidean distance and under what
passive–aggressive learning made of 20 000 other pairs.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from samewise import Mahalanobis, Pairs, PassiveAggressive, Verifier
from samewise.plots import pair_histograms


def draw() -> Figure:
    """Before and after, side by side."""
    X, y = load_digits(return_X_y=True)
    X = X / 16
    pairs = Pairs.from_labels(X[:900], y[:900], n_pairs=20_000, random_state=0)
    unseen = Pairs.from_labels(X[900:], y[900:], n_pairs=20_000, random_state=1)
    learner = PassiveAggressive("pa1", C=0.01, average="uniform").fit(pairs)
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    titles = ("before: Euclidean distance", "after 20 000 pairs")
    forms = (Mahalanobis.identity(64), learner.metric_)
    for form, title, ax in zip(forms, titles, figure.subplots(1, 2), strict=True):
        verifier = Verifier(form, criterion="accuracy").fit(pairs)
        pair_histograms(form, unseen, threshold=verifier.threshold_, ax=ax)
        ax.set_title(f"{title}: {100 * (1 - verifier.score(unseen)):.0f} % wrong")
    return figure


if __name__ == "__main__":
    draw().savefig(
        Path(__file__).with_name("before_after.png"), dpi=100, metadata={"Software": None}
    )
