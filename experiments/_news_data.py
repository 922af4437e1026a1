"""The documents and images of `newsgroups`, split and weighted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import normalize

from samewise._typing import Array, Indices
from samewise.datasets import load

TEST_PART = 0.35
N_FOLDS = 5
N_IMAGE_CLASSES = 50


class Split(NamedTuple):
    """One split: rows of unit length as CSR in float32, and labels."""

    name: str
    number: int
    train: tuple[Any, Array]
    test: tuple[Any, Array]
    lengths: Array
    """Of the test rows before they were scaled to unit length."""
    dropped: tuple[int, int]
    """Training and test examples without any of the features."""


def documents(n_splits: int, n_terms: int, every: int) -> Iterator[Split]:
    """20 Newsgroups: each split with terms of its own training part."""
    bunch = load("news20_18828")
    counts = CountVectorizer(stop_words="english").fit_transform(bunch.data[::every])
    y = bunch.target[::every]
    for i in range(n_splits):
        first, second = train_test_split(
            np.arange(len(y)), test_size=TEST_PART, stratify=y, random_state=i
        )
        terms = best_terms(counts[first], y[first], n_terms)
        yield weighted("newsgroups", i, counts[:, terms], y, first, second)


def images(name: str, n_folds: int) -> Iterator[Split]:
    """Visual words of the largest classes, the first `n_folds` of five folds."""
    bunch = load(name)
    counts, y = sparse.csr_matrix(bunch.data), bunch.target
    largest = np.argsort(-np.bincount(y), kind="stable")[:N_IMAGE_CLASSES]
    rows = np.flatnonzero(np.isin(y, largest))
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(rows, y[rows])
    for i, (first, second) in zip(range(n_folds), folds, strict=False):
        yield weighted(name, i, counts[rows], y[rows], first, second)


def best_terms(counts: Any, y: Array, n_terms: int) -> Indices:
    """Columns of the highest information gain, ascending; ties by the smaller column."""
    return np.sort(np.argsort(-information_gain(counts, y), kind="stable")[:n_terms])


def information_gain(counts: Any, y: Array) -> Array:
    """H(C) − P(t) H(C | t) − P(¬t) H(C | ¬t) in bits, t: the term is in the document.

    Y. Yang and J. O. Pedersen, "A comparative study on feature selection in text categorization"
    (ICML 1997), §2.2, for all terms (columns) at once.
    """
    classes = (y[:, None] == np.unique(y)).astype(np.float64)
    with_term = np.asarray((counts > 0).astype(np.float64).T @ classes)
    totals = classes.sum(axis=0)
    part = with_term.sum(axis=1) / len(y)
    conditional = part * _entropy(with_term) + (1 - part) * _entropy(totals - with_term)
    return _entropy(totals[None, :])[0] - conditional


def _entropy(counts: Array) -> Array:
    P = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return -np.sum(P * np.log2(P, out=np.zeros_like(P), where=P > 0), axis=1)


def weighted(name: str, i: int, counts: Any, y: Array, first: Indices, second: Indices) -> Split:
    """tf-idf fitted on the training rows; rows without any feature are left out."""
    filled = np.asarray(counts.sum(axis=1)).ravel() > 0
    train, test = first[filled[first]], shuffled(second[filled[second]], i)
    tfidf = TfidfTransformer(norm=None).fit(counts[train])
    A, B = (tfidf.transform(counts[rows]).astype(np.float32) for rows in (train, test))
    return Split(
        name,
        i,
        (normalize(A), y[train]),
        (normalize(B), y[test]),
        sparse.linalg.norm(B, axis=1),
        (len(first) - len(train), len(second) - len(test)),
    )


def shuffled(rows: Indices, i: int) -> Indices:
    # Equal scores stand in the order of the rows, which must not be the order of the classes.
    return np.random.RandomState(i).permutation(rows)
