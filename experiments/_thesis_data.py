"""The data sets of `thesis`, under the names the thesis has for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from samewise._typing import Array, Indices
from samewise.datasets import load

WORDS, DIMENSIONS = 20_000, 200


@dataclass(frozen=True)
class Set:
    """Where a set comes from, and how much of it is used."""

    file: str
    drawn: int | None = None
    """So many examples, at random within each class."""
    train_only: bool = False
    """Only the training part of the standard split, as in the thesis."""
    n_folds: int = 5
    large: bool = False
    """Whether learners get the short lists of parameters."""
    largest: bool = False
    """Whether lists are shorter still, and features are float32."""


SETS = {
    "Soybean": Set("soybean_small"),
    "Iris": Set("iris"),
    "Letter": Set("letter", n_folds=2, large=True, largest=True),
    "Balance": Set("balance_scale"),
    "Wine": Set("wine"),
    "Ionosphere": Set("ionosphere"),
    "Glass": Set("glass"),
    "Pima": Set("pima"),
    "Liver": Set("bupa"),
    "German": Set("german_numeric"),
    "Heart": Set("heart_statlog"),
    "Yeast": Set("yeast", large=True),
    "Magic": Set("magic04", large=True, largest=True),
    "Spambase": Set("spambase", large=True),
    "Musk-1": Set("musk1", large=True),
    "Sonar": Set("sonar"),
    "Segmentation": Set("segmentation", train_only=True),
    "Optdigits": Set("optdigits", train_only=True, large=True),
    "Waveform": Set("waveform21", large=True),
    "Soybean (large)": Set("soybean_large", large=True),
    "News": Set("news20_18828", drawn=4561, n_folds=2, large=True),
}


@cache
def examples(name: str) -> tuple[Array, Indices]:
    """Features as they are, and class numbers."""
    this = SETS[name]
    bunch = load(this.file)
    y = bunch.target
    X = _documents(tuple(bunch.data)) if name == "News" else bunch.data
    rows = np.arange(len(y))
    if this.train_only:
        rows = np.flatnonzero(bunch.train)
    if name == "News":
        rows = np.flatnonzero(np.linalg.norm(X, axis=1) > 0)
    if this.drawn is not None:
        kept, _ = train_test_split(rows, train_size=this.drawn, stratify=y[rows], random_state=0)
        rows = np.sort(kept)
    X = X[rows].astype(np.float32 if this.largest else X.dtype)
    return X, y[rows]


def _documents(texts: tuple[str, ...]) -> Array:
    """tf-idf of the most frequent words, and of these the leading singular directions."""
    with threadpool_limits(1):
        X = TfidfVectorizer(max_features=WORDS).fit_transform(texts)
        return TruncatedSVD(DIMENSIONS, random_state=0).fit_transform(X)


@cache
def n_classes(name: str) -> int:
    """How many classes a set has, without reading its features' columns."""
    return len(load(SETS[name].file).target_names)
