"""The public names: where each is defined and, for a learner, what it learns from.

The one table of all learners. Whatever lists learners reads it: `samewise` itself, `compare` and
the command line, files, the documentation's index and the tests.
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["BY_COMMAND", "LEARNERS", "WHERE", "Entry"]


class Entry(NamedTuple):
    """A learner.

    Attributes
    ----------
    name : str
        Its class.
    module : str
        Where that is, below ``samewise.learners``; the folder is its family.
    learns_from : tuple of str
        "labels", "pairs", "triplets", "quadruplets", "chunklets", "targets" (numbers) or nothing
        but "rows".
    command : str
        Its name for `make_learner`, `compare` and the command line; empty if it has none.
    settings : dict
        Start, shrinkage and number of iterations that are safe on most data, where they are not
        the defaults.
    grid : dict
        What is worth trying.
    record : str
        Where no default was found that keeps neighbors (``python -m experiments defaults``: worse
        than no learning on more than one set in ten), why; otherwise empty.
    gives : str
        What its form is: a "distance", a "similarity", a "kernel distance" or several "distances".
    """

    name: str
    module: str
    learns_from: tuple[str, ...]
    command: str = ""
    settings: dict[str, Any] = {}  # noqa: RUF012 (a default that nobody changes)
    grid: dict[str, list[Any]] = {}  # noqa: RUF012
    record: str = ""
    gives: str = "distance"

    @property
    def family(self) -> str:
        """Its folder: "online", "batch", "closed" or "neighbors"."""
        return self.module.split(".")[0]


_DOTS = "a learned dot product is for unit vectors and sparse rows, not for standardized features."
_WHITE = "whitening makes directions that tell classes apart as short as the others."
_SHRINKAGE = {"shrinkage": [0.0, 0.1, 0.5]}
_SIMILARITY = {"init": "identity", "average": "survival"}
_PAIRS, _TRIPLETS, _LABELS = ("pairs", "labels"), ("triplets", "labels"), ("labels",)

LEARNERS = (
    # From simple to costly, as `compare` tries them.
    Entry("Euclidean", "closed.classical", ("rows",), "euclidean"),
    Entry(
        "Cosine",
        "closed.classical",
        ("rows",),
        "cosine",
        gives="similarity",
    ),
    Entry(
        "Relief",
        "neighbors.relief",
        _LABELS,
        "relief",
        grid={"n_neighbors": [1, 5, 10]},
    ),
    Entry("PCA", "closed.classical", ("rows",), "pca", grid={"whiten": [False, True]}),
    Entry(
        "Covariance", "closed.classical", ("rows",), "covariance", {"shrinkage": 0.1}, _SHRINKAGE
    ),
    Entry("LDA", "closed.classical", _LABELS, "lda", {"shrinkage": 0.1}, _SHRINKAGE),
    Entry("LFDA", "closed.lfda", _LABELS, "lfda", {"shrinkage": 0.1}, _SHRINKAGE),
    Entry(
        "RCA",
        "closed.rca",
        ("chunklets", "labels"),
        "rca",
        {"shrinkage": 0.1},
        _SHRINKAGE,
        _WHITE,
    ),
    Entry(
        "KRCA",
        "closed.rca",
        ("chunklets", "labels"),
        gives="kernel distance",
    ),
    Entry("IGML", "closed.igml", _LABELS, record=_WHITE),
    Entry(
        "KIGML",
        "closed.igml",
        _LABELS,
        gives="kernel distance",
    ),
    Entry(
        "RBS",
        "neighbors.rbs",
        _LABELS,
        "rbs",
        grid={"n_neighbors": [1, 3, 5]},
        record="a large sum of margins is not few errors; it is kept for the record.",
        gives="similarity",
    ),
    Entry(
        "SRBS",
        "neighbors.srbs",
        _LABELS,
        "srbs",
        grid={"n_neighbors": [1, 3], "beta": [1.0, 5.0]},
        gives="similarity",
    ),
    Entry(
        "PassiveAggressive",
        "online.passive_aggressive",
        _PAIRS,
        "pa",
        grid={"C": [0.01, 0.1, 1.0, 10.0]},
    ),
    Entry("POLA", "online.pola", _PAIRS, "pola", grid={"relaxation": [0.0, 0.1, 1.0]}),
    Entry(
        "KernelPOLA",
        "online.kernel_pola",
        _PAIRS,
        gives="kernel distance",
    ),
    Entry("LEGO", "online.lego", _PAIRS),
    Entry(
        "GCosLA",
        "online.gcosla",
        _PAIRS,
        "gcosla",
        grid={"margin": [0.01, 0.1, 0.5]},
        record="where the cosine is worse than the Euclidean distance, a learned one may be too.",
        gives="similarity",
    ),
    Entry(
        "OASIS",
        "online.oasis",
        _TRIPLETS,
        "oasis",
        {"average": "uniform"},
        {"C": [0.001, 0.01, 0.1]},
        _DOTS,
        gives="similarity",
    ),
    Entry(
        "DiagonalAROMA",
        "online.aroma",
        _TRIPLETS,
        "d-aroma",
        _SIMILARITY,
        {"r": [0.1, 1.0, 10.0]},
        _DOTS,
        gives="similarity",
    ),
    Entry(
        "FactoredAROMA",
        "online.aroma",
        _TRIPLETS,
        "f-aroma",
        _SIMILARITY,
        {"r": [0.1, 1.0, 10.0]},
        _DOTS,
        gives="similarity",
    ),
    Entry(
        "SiLA",
        "neighbors.sila",
        _LABELS,
        "sila",
        grid={"n_passes": [1, 3, 10]},
        gives="similarity",
    ),
    Entry("ITML", "batch.itml", _PAIRS, "itml", grid={"gamma": [0.1, 1.0, 10.0]}),
    Entry("SDML", "batch.sdml", _PAIRS, "sdml", grid={"sparsity": [0.001, 0.01, 0.1]}),
    Entry(
        "LSML",
        "batch.lsml",
        ("quadruplets", "triplets", "labels"),
        "lsml",
        grid={"gamma": [10.0, 100.0, 1000.0]},
    ),
    Entry(
        "SCML",
        "batch.scml",
        ("triplets", "quadruplets", "labels"),
        "scml",
        grid={"beta": [1e-5, 1e-3]},
    ),
    Entry("MMC", "batch.mmc", _PAIRS, "mmc", grid={"structure": ["diagonal", "full"]}),
    Entry(
        "LMNN",
        "batch.lmnn.estimator",
        _LABELS,
        "lmnn",
        grid={"n_neighbors": [1, 3], "push_weight": [0.2, 0.5]},
    ),
    Entry(
        "MultiMetricLMNN",
        "batch.lmnn.multi_metric_lmnn",
        _LABELS,
        "multi-lmnn",
        grid={"n_neighbors": [1, 3]},
        gives="distances",
    ),
    Entry(
        "KernelLMNN",
        "batch.lmnn.kernel_lmnn",
        _LABELS,
        gives="kernel distance",
    ),
    Entry("NCA", "batch.nca", _LABELS, "nca", {"max_iter": 50}),
    Entry("MCML", "batch.mcml", _LABELS, "mcml", {"max_iter": 50}),
    Entry("MLKR", "batch.mlkr", ("targets",)),
    Entry(
        "SNN",
        "batch.snn",
        _PAIRS,
        record="it learns whether two examples are the same, and not which are nearest.",
        gives="similarity",
    ),
    Entry(
        "HIER",
        "batch.hier",
        _LABELS,
        record="it compares classes that a logistic regression predicts; many sets are not linear.",
        gives="similarity",
    ),
)
"""Every learner."""

BY_COMMAND = {entry.command: entry for entry in LEARNERS if entry.command}
"""Those that have a name for `make_learner`, by that name."""

_OTHERS = {
    "adapt": ("LiveAdapter", "evaluate_feedback"),
    "decide": ("Guarded", "KNNClassifier", "KNNRegressor", "PerClassClassifier", "Verifier"),
    "filtering": (
        "BatchTopicFilter",
        "NearestFilter",
        "PAUMFilter",
        "PerceptronFilter",
        "PolaFilter",
        "TextVectors",
        "TopicFilter",
    ),
    "forms": (
        "Bilinear",
        "Form",
        "GeneralizedCosine",
        "KernelMahalanobis",
        "LowRankBilinear",
        "Mahalanobis",
        "MultiMetric",
        "NeuralSimilarity",
        "NormalizedBilinear",
        "PosteriorSimilarity",
    ),
    "loading": ("load",),
    "model": ("Model",),
    "protocols": (
        "choose_learner",
        "compare",
        "evaluate",
        "fit_model",
        "gain",
        "tune_C",
        "warm_up",
    ),
    "report": ("ReportOptions", "write_report"),
    "search": ("Index", "margins"),
    "serve": ("AsyncClient", "Client"),
    "supervision": ("Judgements", "Pairs", "Quadruplets", "Triplets"),
}

WHERE = {
    **{entry.name: f"samewise.learners.{entry.module}" for entry in LEARNERS},
    **{name: f"samewise.{place}" for place, names in _OTHERS.items() for name in names},
    **{
        module: f"samewise.{module}"
        for module in ("adapt", "datasets", "exceptions", "filtering", "plots", "scale", "scores")
    },
}
"""The module of every public name; a module is its own."""
