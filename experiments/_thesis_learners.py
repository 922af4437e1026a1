"""Learners of `thesis`, and the lists their parameters are chosen from."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import joblib
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from experiments._papers_pairs import PapersGCosLA, PapersITML, PapersMMC, PapersSNN
from experiments._thesis_data import SETS
from samewise._typing import Array, Indices
from samewise.decide import KNNClassifier
from samewise.forms import Form, NormalizedBilinear
from samewise.learners import LMNN
from samewise.learners.batch.mcml import MCML
from samewise.learners.closed.classical import Covariance
from samewise.learners.closed.igml import IGML, KIGML
from samewise.learners.closed.rca import KRCA
from samewise.learners.neighbors.rbs import RBS
from samewise.learners.neighbors.relief import Relief
from samewise.learners.neighbors.sila import SiLA
from samewise.learners.neighbors.srbs import SRBS
from samewise.learners.online.gcosla import GCosLA
from samewise.search.hits import hits_and_misses
from samewise.supervision import Pairs

GAMMA = 0.1
WIDE = 200
FEW = 1000
LANDMARKS = 500
"""Of kernels, on large sets."""
K = {"n_neighbors": [1, 3]}
RULE_K = {"rule__n_neighbors": [1, 3]}

Grid = dict[str, list[Any]]


class Once:
    """Learns from the same data with the same parameters but once: kNN and SkNN share it."""

    learned: ClassVar[dict[str, dict[str, Any]]] = {}

    def fit(self, X: Any, y: Indices | None) -> Self:
        """Learn, or take what was learned."""
        at = joblib.hash((type(self).__name__, self.get_params(), X, y))  # type: ignore[attr-defined]
        if at not in self.learned:
            self.learned[at] = vars(super().fit(X, y))  # type: ignore[misc]
        vars(self).update(self.learned[at])
        return self


class OnceSiLA(Once, SiLA):
    """SiLA, for both rules."""


class OnceGCosLA(Once, PapersGCosLA):
    """gCosLA, for both rules."""


class FewGCosLA(OnceGCosLA):
    """The same from the pairs of `FEW` examples, drawn at random; their neighbors are among all."""

    def fit(self, X: Array, y: Indices) -> Self:
        """Learn from labeled examples."""
        random = np.random.RandomState(self.random_state)
        drawn = np.sort(random.choice(len(y), min(FEW, len(y)), replace=False))
        form = NormalizedBilinear(np.eye(X.shape[1], dtype=X.dtype))
        found = hits_and_misses(
            lambda asked, order: form.blocks(X[asked], X[order]),
            np.unique(y, return_inverse=True)[1],
            self.n_neighbors,
            queries=drawn,
        )
        right = np.column_stack(found)
        there = right >= 0
        left = np.broadcast_to(drawn[:, None], right.shape)[there]
        right = right[there]
        pairs = Pairs(X, left, right, np.where(y[left] == y[right], 1, -1))
        return GCosLA.fit(self, pairs)


class OnceRelief(Once, Relief):
    """RELIEF, for both rules."""


class OnceRBS(Once, RBS):
    """RBS, for both rules."""


class OnceSRBS(Once, SRBS):
    """sRBS, for both rules."""


def learner(method: str, name: str, X: Array) -> tuple[Any, Grid | list[Grid]]:
    """The learner, and what is chosen by validation."""
    if method.startswith("centered "):
        return centered(method.removeprefix("centered "), name, X)
    for known in (similarities, distances):
        found = known(name, X)
        if method in found:
            return found[method]
    raise KeyError(method)


def similarities(name: str, X: Array) -> dict[str, tuple[Any, Grid]]:
    """What the thesis is about, and the cosine and the Euclidean distance."""
    d, this = X.shape[1], SETS[name]
    strengths: Grid = {"beta": [0.1, 1.0, 10.0], "regularization": [1e-4, 1e-2]}
    steps: Grid = {"n_passes": [5, 50], "average": ["survival", ("suffix", 10)]}
    structures: Grid = {"structure": ["full", "diagonal"]}
    pairs: Grid = {
        "step_margin": [GAMMA, -GAMMA],
        "n_passes": [1, 3],
        "average": ["uniform", ("suffix", 100)],
    }
    impostors: int | str = "exact"
    few: dict[str, Any] = {}
    if this.large:
        strengths["regularization"], few = [1e-3], {"max_iter": 100}
        steps, pairs = {"n_passes": [2, 10]}, {"step_margin": [GAMMA, -GAMMA]}
    if this.largest:
        strengths["beta"], structures = [0.1, 1.0], {}
    if d >= WIDE:
        structures, steps, impostors = {}, {"n_passes": [2]}, 100
    relief = {"form": "similarity"}
    cosine = OnceGCosLA(
        GAMMA, None, n_neighbors=5, n_pairs=5000 if this.large else None, shuffle=True
    )
    if this.largest:
        cosine = FewGCosLA(GAMMA, None, n_neighbors=5, shuffle=True)
    return {
        "Euclidean": (None, K),
        "cosine": (NormalizedBilinear(np.eye(d, dtype=X.dtype)), K),
        "SiLA": (OnceSiLA(impostors=impostors, init="zero"), K | structures | steps),
        "gCosLA": (cosine, RULE_K | pairs),
        "RELIEF": (OnceRelief(psd=None, **relief), K),
        "RBS": (OnceRBS(), K),
        "sRBS": (OnceSRBS(**few), K | strengths),
        "RELIEF-PSD": (OnceRelief(psd="end", **relief), K),
        "RBS-PSD": (OnceRBS(psd="end"), K),
        "sRBS-PSD": (OnceSRBS(psd="each", **few), K | strengths),
        "RBS diagonal": (RBS(structure="diagonal"), K),
    }


def distances(name: str, X: Array) -> dict[str, tuple[Any, Grid]]:
    """What the thesis compares with in Tables 5.21 to 5.24."""
    # The mean of the squared distances of two examples is twice this.
    spread = float(X.var(axis=0).sum())
    widths: Grid = {"kernel_params": [{"gamma": c / spread} for c in (0.1, 1.0, 10.0)]}
    few = {"n_landmarks": LANDMARKS if SETS[name].large else None}
    smoothing: Grid = {"smoothing": [0.01, 1.0, 100.0]}
    return {
        "Mahalanobis": (Covariance(), RULE_K),
        "Xing": (PapersMMC(shrinkage=0.0), RULE_K | {"structure": ["full", "diagonal"]}),
        "LMNN": (LMNN(3), RULE_K),
        "ITML": (PapersITML(), RULE_K | {"gamma": [0.01, 0.1, 1.0, 10.0]}),
        "MCML": (MCML(), RULE_K),
        "KRCA": (KRCA(**few), RULE_K | widths),
        "IGML": (IGML(), RULE_K | smoothing),
        "KIGML": (KIGML(**few), RULE_K | widths | smoothing),
        "SNN": (PapersSNN(), RULE_K | {"alpha": [1e-4, 1e-2]}),
        "SVM": (SVC(max_iter=10**6), {"kernel": ["linear", "rbf"], "C": [0.1, 1.0, 10.0, 100.0]}),
    }


def centered(method: str, name: str, X: Array) -> tuple[Any, list[Grid]]:
    """The same for features from which the mean of the learning part is taken away."""
    metric, _ = similarities(name, X)[method]
    names = ["n_neighbors"] if isinstance(metric, Form) else ["n_neighbors", "metric__n_neighbors"]
    grid: list[Grid] = [{f"knnclassifier__{name}": [k] for name in names} for k in (1, 3)]
    return make_pipeline(StandardScaler(with_std=False), KNNClassifier(metric)), grid
