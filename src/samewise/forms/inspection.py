"""What a form looks at: its spectrum, and the features and pairs of features that count most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from samewise.forms.form import Form

_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Inspection:
    """Result of `inspect_form`.

    Attributes
    ----------
    spectrum : array
        Eigenvalues of the matrix, of its symmetric part if it is not symmetric, descending; of
        several metrics those of all, one after another.
    rank : int
        How many are, in absolute value, above 1e-9 of the largest.
    n_for_90 : int
        How many of the largest hold 90 % of the sum of absolute values.
    features : list of (str, float)
        Features by their weight, the entry of the diagonal, largest in absolute value first; empty
        if the form has no matrix over features.
    feature_pairs : list of (str, str, float)
        The same for pairs and their entry off the diagonal (the mean of the two).
    """

    spectrum: NDArray[np.float64]
    rank: int
    n_for_90: int
    features: list[tuple[str, float]]
    feature_pairs: list[tuple[str, str, float]]


def inspect_form(form: Form, names: Sequence[str] | None = None, *, top: int = 10) -> Inspection:
    """Look into a form.

    Parameters
    ----------
    form : Form
    names : sequence of str, optional
        Of its features; x0, x1, … by default.
    top : int, default=10
        How many features and pairs.

    Returns
    -------
    Inspection

    Examples
    --------
    >>> from samewise import Mahalanobis
    >>> from samewise.protocols import inspect_form
    >>> found = inspect_form(Mahalanobis([[4.0, 1.0], [1.0, 1.0]]), ["size", "age"])
    >>> found.rank, found.features, found.feature_pairs
    (2, [('size', 4.0), ('age', 1.0)], [('size', 'age', 1.0)])
    """
    stack = _matrices(form)
    spectrum = np.concatenate([np.linalg.eigvalsh(matrix)[::-1] for matrix in stack])
    size = np.sort(np.abs(spectrum))[::-1]
    share = np.cumsum(size)
    features: list[tuple[str, float]] = []
    pairs: list[tuple[str, str, float]] = []
    # Of several metrics, none is that of the whole; a kernel's matrix is not over features.
    if len(stack) == 1 and len(stack[0]) == form.n_features_in == form.n_features_items:
        features, pairs = _weights(stack[0], names, top)
    return Inspection(
        spectrum,
        int(np.sum(size > _TOLERANCE * size[0])),
        int(np.searchsorted(share, 0.9 * share[-1]) + 1) if share[-1] > 0 else 0,
        features,
        pairs,
    )


def _matrices(form: Form) -> list[NDArray[np.float64]]:
    if len(form.spaces) > 1:
        return [np.asarray(space.matrix, dtype=np.float64) for space in form.spaces]
    [one] = form.spaces or [form]
    matrix = np.asarray(one.matrix, dtype=np.float64)  # type: ignore[attr-defined]
    if matrix.shape[0] != matrix.shape[1]:
        # Queries and items have features of their own: singular values stand for eigenvalues.
        return [np.diag(np.linalg.svd(matrix, compute_uv=False))]
    return [(matrix + matrix.T) / 2]


def _weights(
    M: NDArray[np.float64], names: Sequence[str] | None, top: int
) -> tuple[list[tuple[str, float]], list[tuple[str, str, float]]]:
    named = [f"x{j}" for j in range(len(M))] if names is None else list(names)
    first = np.argsort(-np.abs(np.diag(M)), kind="stable")[:top]
    i, j = np.triu_indices(len(M), 1)
    off = M[i, j]
    best = np.argsort(-np.abs(off), kind="stable")[:top]
    best = best[off[best] != 0]
    return (
        [(named[a], float(M[a, a])) for a in first],
        [(named[i[p]], named[j[p]], float(off[p])) for p in best],
    )
