"""samewise learns what *similar* means: distances and similarities from labels, pairs or streams.

Public names are imported when they are first used, so that `import samewise` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from samewise import datasets, exceptions, filtering, plots, scores
    from samewise.decide import KNNClassifier, PerClassClassifier, Verifier
    from samewise.filtering import (
        BatchTopicFilter,
        NearestFilter,
        PAUMFilter,
        PerceptronFilter,
        PolaFilter,
        TextVectors,
        TopicFilter,
    )
    from samewise.forms import (
        Bilinear,
        Form,
        GeneralizedCosine,
        KernelMahalanobis,
        LowRankBilinear,
        Mahalanobis,
        MultiMetric,
        NeuralSimilarity,
        NormalizedBilinear,
        PosteriorSimilarity,
    )
    from samewise.learners import (
        HIER,
        IGML,
        ITML,
        KIGML,
        KRCA,
        LDA,
        LEGO,
        LMNN,
        MCML,
        MMC,
        NCA,
        OASIS,
        PCA,
        POLA,
        RBS,
        RCA,
        SNN,
        SRBS,
        Cosine,
        Covariance,
        DiagonalAROMA,
        Euclidean,
        FactoredAROMA,
        GCosLA,
        KernelLMNN,
        KernelPOLA,
        MultiMetricLMNN,
        PassiveAggressive,
        Relief,
        SiLA,
    )
    from samewise.loading import load
    from samewise.model import Model
    from samewise.protocols import (
        choose_learner,
        evaluate,
        gain,
        tune_C,
    )
    from samewise.report import write_report
    from samewise.search import Index, margins
    from samewise.supervision import Pairs, Triplets

__version__ = "0.1.0"

__all__ = [
    "HIER",
    "IGML",
    "ITML",
    "KIGML",
    "KRCA",
    "LDA",
    "LEGO",
    "LMNN",
    "MCML",
    "MMC",
    "NCA",
    "OASIS",
    "PCA",
    "POLA",
    "RBS",
    "RCA",
    "SNN",
    "SRBS",
    "BatchTopicFilter",
    "Bilinear",
    "Cosine",
    "Covariance",
    "DiagonalAROMA",
    "Euclidean",
    "FactoredAROMA",
    "Form",
    "GCosLA",
    "GeneralizedCosine",
    "Index",
    "KNNClassifier",
    "KernelLMNN",
    "KernelMahalanobis",
    "KernelPOLA",
    "LowRankBilinear",
    "Mahalanobis",
    "Model",
    "MultiMetric",
    "MultiMetricLMNN",
    "NearestFilter",
    "NeuralSimilarity",
    "NormalizedBilinear",
    "PAUMFilter",
    "Pairs",
    "PassiveAggressive",
    "PerClassClassifier",
    "PerceptronFilter",
    "PolaFilter",
    "PosteriorSimilarity",
    "Relief",
    "SiLA",
    "TextVectors",
    "TopicFilter",
    "Triplets",
    "Verifier",
    "choose_learner",
    "datasets",
    "evaluate",
    "exceptions",
    "filtering",
    "gain",
    "load",
    "margins",
    "plots",
    "scores",
    "tune_C",
    "write_report",
]

_WHERE = {
    **dict.fromkeys(("KNNClassifier", "PerClassClassifier", "Verifier"), "decide"),
    **dict.fromkeys(
        (
            "BatchTopicFilter",
            "NearestFilter",
            "PAUMFilter",
            "PerceptronFilter",
            "PolaFilter",
            "TextVectors",
            "TopicFilter",
        ),
        "filtering",
    ),
    **dict.fromkeys(
        (
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
        "forms",
    ),
    **dict.fromkeys(
        (
            "Cosine",
            "Covariance",
            "DiagonalAROMA",
            "Euclidean",
            "FactoredAROMA",
            "GCosLA",
            "HIER",
            "IGML",
            "ITML",
            "KernelLMNN",
            "KernelPOLA",
            "KIGML",
            "KRCA",
            "LDA",
            "LEGO",
            "LMNN",
            "MCML",
            "MMC",
            "MultiMetricLMNN",
            "NCA",
            "OASIS",
            "PassiveAggressive",
            "PCA",
            "POLA",
            "RBS",
            "RCA",
            "Relief",
            "SiLA",
            "SNN",
            "SRBS",
        ),
        "learners",
    ),
    "Model": "model",
    **dict.fromkeys(("choose_learner", "evaluate", "gain", "tune_C"), "protocols"),
    "load": "loading",
    "write_report": "report",
    **dict.fromkeys(("Index", "margins"), "search"),
    **dict.fromkeys(("Pairs", "Triplets"), "supervision"),
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(import_module(f"samewise.{_WHERE[name]}"), name)
    elif name in __all__:
        value = import_module(f"samewise.{name}")
    else:
        raise AttributeError(f"module 'samewise' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
