"""samewise learns what *similar* means: distances and similarities from labels, pairs or streams.

Public names are imported when they are first used, so that `import samewise` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from samewise import datasets, exceptions, scores
    from samewise.decide import KNNClassifier, Verifier
    from samewise.forms import (
        Bilinear,
        Form,
        GeneralizedCosine,
        KernelMahalanobis,
        LowRankBilinear,
        Mahalanobis,
        NormalizedBilinear,
    )
    from samewise.learners import (
        LMNN,
        OASIS,
        POLA,
        DiagonalAROMA,
        FactoredAROMA,
        KernelPOLA,
        PassiveAggressive,
    )
    from samewise.protocols import tune_C
    from samewise.saved import load
    from samewise.search import Index
    from samewise.supervision import Pairs, Triplets

__version__ = "0.1.0"

__all__ = [
    "LMNN",
    "OASIS",
    "POLA",
    "Bilinear",
    "DiagonalAROMA",
    "FactoredAROMA",
    "Form",
    "GeneralizedCosine",
    "Index",
    "KNNClassifier",
    "KernelMahalanobis",
    "KernelPOLA",
    "LowRankBilinear",
    "Mahalanobis",
    "NormalizedBilinear",
    "Pairs",
    "PassiveAggressive",
    "Triplets",
    "Verifier",
    "datasets",
    "exceptions",
    "load",
    "scores",
    "tune_C",
]

_WHERE = {
    **dict.fromkeys(("KNNClassifier", "Verifier"), "decide"),
    **dict.fromkeys(
        (
            "Bilinear",
            "Form",
            "GeneralizedCosine",
            "KernelMahalanobis",
            "LowRankBilinear",
            "Mahalanobis",
            "NormalizedBilinear",
        ),
        "forms",
    ),
    **dict.fromkeys(
        (
            "DiagonalAROMA",
            "FactoredAROMA",
            "KernelPOLA",
            "LMNN",
            "OASIS",
            "PassiveAggressive",
            "POLA",
        ),
        "learners",
    ),
    "tune_C": "protocols",
    "load": "saved",
    "Index": "search",
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
