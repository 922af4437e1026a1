"""Beside the tables of `thesis`: what RBS does to neighbors, and how fast learners settle."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from experiments._common import plots, save_figure, threads, write_csv
from experiments._thesis_data import examples
from experiments._thesis_learners import GAMMA
from samewise import Form, Index, Pairs
from samewise._typing import Array, Indices
from samewise.decide import KNNClassifier
from samewise.exceptions import SamewiseWarning
from samewise.forms import GeneralizedCosine, NormalizedBilinear
from samewise.learners.neighbors.rbs import RBS
from samewise.learners.neighbors.sila import SiLA
from samewise.learners.neighbors.srbs import SRBS
from samewise.learners.online.gcosla import GCosLA
from samewise.search import margins

LOOKS, CURVES, FIGURE = "looks.csv", "rapidity.csv", "figure_5_7.png"
EPOCHS = tuple(2**i for i in range(8))
FIRST_PAIRS, MOST_PASSES = 25, 4
FEW = 400
"""Rapidity is followed on sets of fewer examples."""


def present(out: Path) -> bool:
    """Whether everything here has been computed."""
    return all((out / file).exists() for file in (LOOKS, CURVES, FIGURE))


def compute(out: Path, names: Sequence[str]) -> None:
    """The files `looks.csv` and `rapidity.csv`, and figure 5.7, which is about Wine."""
    with calmly():
        write_csv(out / LOOKS, [look(name) for name in names])
        few = [name for name in names if len(examples(name)[1]) < FEW]
        curves = [row for name in few for row in rapidity(name)]
    write_csv(out / CURVES, curves)
    _figure(out / FIGURE, [row for row in curves if row["set"] == "Wine"])


@contextmanager
def calmly() -> Iterator[None]:
    """With one thread, and without a warning for each class that is small."""
    with threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", SamewiseWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def look(name: str) -> dict[str, Any]:
    """Of one against the rest, averaged over the classes, with k = 1 and all examples."""
    X, y = examples(name)
    cosine = NormalizedBilinear(np.eye(X.shape[1]))
    targets = [(y == c).astype(int) for c in np.unique(y)]
    rows = []
    for target in targets[: 1 if len(targets) == 2 else None]:
        row: dict[str, float] = {"popular (cosine)": _most_popular(cosine, X)}
        row["negative (cosine)"] = _negative(margins(cosine, X, target))
        for method, learner in (("RBS", RBS()), ("sRBS", SRBS())):
            learner.fit(X, target)
            values = np.linalg.svd(learner.metric_.matrix, compute_uv=False)
            row[f"rank one ({method})"] = float(values[0] ** 2 / np.sum(values**2))
            row[f"popular ({method})"] = _most_popular(learner.metric_, X)
            row[f"negative, given ({method})"] = _negative(learner.margins(X, target))
            row[f"negative ({method})"] = _negative(margins(learner.metric_, X, target))
        rows.append(row)
    return {"set": name} | {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


def _negative(values: Array) -> float:
    return float(np.mean(values[~np.isnan(values)] <= 0))


def _most_popular(form: Form, X: Array) -> float:
    """The part of the examples that have one and the same nearest neighbor."""
    nearest = Index(form, X).query(X, 1, exclude_self=True)[1][:, 0]
    return float(np.bincount(nearest).max() / len(X))


def rapidity(name: str) -> Iterator[dict[str, Any]]:
    """Validation accuracy of SiLA and gCosLA along the way, one matrix for all classes."""
    X, y = examples(name)
    A, B, a, b = train_test_split(X, y, test_size=0.2, stratify=y, random_state=0)
    for k in (1, 3):
        cosine = KNNClassifier(NormalizedBilinear(np.eye(X.shape[1])), k).fit(A, a).score(B, b)
        for method, states in (("SiLA", _sila(A, a, k)), ("gCosLA", _gcosla(A, a))):
            for learner in states:
                accuracy = KNNClassifier(learner.metric_, k).fit(A, a).score(B, b)
                yield {
                    "set": name,
                    "method": method,
                    "k": k,
                    "shown": learner.n_seen_,
                    "updates": learner.n_updates_,
                    "accuracy": float(accuracy),
                    "cosine": float(cosine),
                    "one example": 1 / len(b),
                }


def _sila(X: Array, y: Indices, k: int) -> Iterator[SiLA]:
    learner = SiLA(k, init="zero", warm_start=True)
    for before, epochs in zip((0, *EPOCHS), EPOCHS, strict=False):
        yield learner.set_params(n_passes=epochs - before).fit(X, y)


def _gcosla(X: Array, y: Indices) -> Iterator[GCosLA]:
    cosine = GeneralizedCosine(np.eye(X.shape[1]))
    pairs = Pairs.from_labels(
        X, y, strategy="nearest", n_neighbors=5, form=cosine, merge_duplicates=True
    )
    random = np.random.RandomState(0)
    passes = [random.permutation(len(pairs)) for _ in range(MOST_PASSES)]
    order = np.concatenate(passes)
    learner, start, stop = GCosLA(GAMMA, None), 0, FIRST_PAIRS
    while start < len(order):
        yield learner.partial_fit(pairs[order[start:stop]])
        start, stop = stop, 2 * stop


def settled(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The first row from which on the accuracy stays as it is in the end, to one example."""
    last = rows[-1]
    far = [abs(row["accuracy"] - last["accuracy"]) > 1.001 * row["one example"] for row in rows]
    return rows[max((i + 1 for i, is_far in enumerate(far) if is_far), default=0)]


def _figure(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    plt = plots()
    figure, axes = plt.subplots(figsize=(6, 4))
    for method, color in (("SiLA", "tab:orange"), ("gCosLA", "tab:blue")):
        for k, style in ((1, "-"), (3, "--")):
            curve = [row for row in rows if row["method"] == method and row["k"] == k]
            axes.plot(
                [row["shown"] for row in curve],
                [row["accuracy"] for row in curve],
                style,
                color=color,
                marker=".",
                label=f"{method}, k = {k}",
            )
    axes.set(xscale="log", xlabel="examples or pairs shown", ylabel="accuracy on the held-out part")
    axes.set_title("Wine: rapidity of SiLA and gCosLA (figure 5.7)")
    axes.legend()
    save_figure(figure, path)
