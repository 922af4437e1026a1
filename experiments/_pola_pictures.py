"""The two pictures of POLA §7 that are not scatter plots, each with numbers."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linprog
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score

from experiments._common import plots, save_figure
from samewise import POLA, Pairs
from samewise._typing import Array
from samewise.datasets import make_noisy_digits
from samewise.protocols import neighbor_accuracies

SEED = 0
EPSILON = 0.1

Labeled = tuple[Array, Array]


def noisy_digits(path: Path, snr: float) -> list[dict[str, Any]]:
    """Figure 2: 64 noisy images on one direction, by PCA and by POLA on all 2016 pairs.

    64 images of 144 pixels can always be told apart by some direction, so 64 more, not learned
    from, are laid on the same directions.
    """
    X, y = sorted_digits(snr, SEED)
    fresh = sorted_digits(snr, SEED + 1)
    pairs = all_pairs(X, y, np.arange(len(y)))
    once, batch = POLA(average="last").fit(pairs), POLA(epsilon=EPSILON, max_passes=200).fit(pairs)
    directions = {
        "PCA, leading direction": PCA(1, svd_solver="full").fit(X).components_[0],
        "POLA, one pass": once.metric_.components[0],
        f"POLA, batch ({batch.n_passes_} passes)": batch.metric_.components[0],
    }
    shown = {"noisy images": X}
    shown |= {name: on_direction(X, u, X.mean(axis=0)) for name, u in directions.items()}
    draw_digits(path, shown)
    unseen = {"noisy images": fresh[0]}
    unseen |= {name: on_direction(fresh[0], u, X.mean(axis=0)) for name, u in directions.items()}
    picture = f"2 and 5, SNR {snr:g}"
    return [
        {"picture": picture, "what": name} | told(E, labels) | {"images": images}
        for images, labels, places in (("learned from", y, shown), ("fresh", fresh[1], unseen))
        for name, E in places.items()
    ]


def sorted_digits(snr: float, seed: int) -> Labeled:
    """The noisy images, first the 2s, then the 5s."""
    X, y, _ = make_noisy_digits(64, snr=snr, random_state=seed)
    order = np.argsort(y, kind="stable")
    return X[order], y[order]


def all_pairs(X: Array, y: Array, rows: Array) -> Pairs:
    """All pairs of the rows, shuffled."""
    left, right = np.array(list(combinations(rows, 2))).T
    shuffled = np.random.RandomState(SEED).permutation(len(left))
    return Pairs(X, left, right, np.where(y[left] == y[right], 1, -1))[shuffled]


def on_direction(X: Array, u: Array, mean: Array) -> Array:
    """The images reconstructed from their place along one direction, about a mean."""
    u = u / np.linalg.norm(u)
    return mean + np.outer((X - mean) @ u, u)


def zeros_and_eights(path: Path, problem: tuple[Labeled, Labeled]) -> list[dict[str, Any]]:
    """Figure 3, bottom: 100 images in the plane of two leading directions.

    POLA learns from all pairs of these images or, which the paper does not show, from 1 000 pairs
    of the other training images.
    """
    X, y = problem[0]
    rows = np.random.RandomState(SEED).permutation(len(y))
    chosen, rest = rows[:100], rows[100:]
    others = Pairs.from_labels(X[rest], y[rest], 1000, strategy="random", random_state=SEED)
    last = POLA(average="last")
    shown = {
        "PCA": PCA(2, svd_solver="full").fit_transform(X[chosen]),
        "POLA, all pairs of these": plane(last.fit(all_pairs(X, y, chosen)), X[chosen]),
        "POLA, 1 000 pairs of others": plane(last.fit(others), X[chosen]),
    }
    draw_planes(path, shown, y[chosen])
    images = ("learned from", "learned from", "fresh")
    return [
        {"picture": "0 and 8", "what": name} | told(E, y[chosen]) | {"images": kind}
        for (name, E), kind in zip(shown.items(), images, strict=True)
    ]


def plane(learner: POLA, X: Array) -> Array:
    """X on the two leading eigenvectors, of unit length as in PCA."""
    U = learner.metric_.components[:2]
    return X @ (U / np.linalg.norm(U, axis=1, keepdims=True)).T


def told(E: Array, y: Array) -> dict[str, Any]:
    """How well points tell two classes apart."""
    i, j = np.triu_indices(len(y), 1)
    distances = np.linalg.norm(E[i] - E[j], axis=1)
    return {
        "1-NN leave-one-out error": 1 - float(neighbor_accuracies(None, E, y, 1)[0]),
        "AUC of distances": float(roc_auc_score(y[i] != y[j], distances)),
        "separable by a plane": "yes" if separable(E, y) else "no",
    }


def separable(E: Array, y: Array) -> bool:
    """Whether some w, w₀ has s (wᵀx + w₀) ≥ 1 for all points, s = ±1 by class."""
    s = np.where(y == y.max(), 1.0, -1.0)
    E = (E - E.mean(axis=0)) / E.std()
    A = -s[:, None] * np.column_stack([E, np.ones(len(E))])
    result = linprog(np.zeros(A.shape[1]), A_ub=A, b_ub=-np.ones(len(A)), bounds=(None, None))
    return result.status == 0


def draw_digits(path: Path, shown: dict[str, Array]) -> None:
    plt = plots()
    figure, axes = plt.subplots(2, len(shown), figsize=(2.2 * len(shown), 4.6))
    for (name, X), (top, bottom) in zip(shown.items(), axes.T, strict=True):
        tiles = X.reshape(8, 8, 12, 12).transpose(0, 2, 1, 3).reshape(96, 96)
        top.imshow(tiles, cmap="gray_r", interpolation="nearest")
        top.set_title(name, fontsize=7)
        bottom.imshow(
            np.linalg.norm(X[:, None] - X[None], axis=2), cmap="viridis", interpolation="nearest"
        )
        for ax in (top, bottom):
            ax.set_axis_off()
    save_figure(figure, path)


def draw_planes(path: Path, shown: dict[str, Array], y: Array) -> None:
    plt = plots()
    figure, axes = plt.subplots(1, len(shown), figsize=(4 * len(shown), 3.8))
    for ax, (name, E) in zip(axes, shown.items(), strict=True):
        for c, label, mark in ((0, "0", "o"), (1, "8", "x")):
            ax.plot(*E[y == c].T, mark, ms=4, label=label)
        ax.set_title(name, fontsize=9)
    axes[0].legend()
    save_figure(figure, path)
