"""What an unlabeled sample of items says about their space: units, whitening, and cells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.exceptions import DegenerateInputError, InvalidInputError
from samewise.files.state import Saved, State
from samewise.files.storable import Storable
from samewise.kernels.adapter_loops import on_lines
from samewise.supervision.supervision_checks import parameter_array

RANK = 256
"""Whitened coordinates are at most so many: the leading ones."""
SKETCH = 32
PIVOTS = 256
"""Leading coordinates, and pivots in them, by which remembered events are found."""
SAMPLE = 20_000
PROBED = 1_000
"""Items from which the units are computed, and those of them whose nearest is looked for."""


@dataclass(frozen=True)
class ItemUnits(Storable):
    """The units of a space of items.

    Attributes
    ----------
    mean_similarity : float
        s̄, the mean similarity of two items.
    gap : float
        g = s½ − s̄; s½ is the median similarity of an item to its nearest.
    mu : array of shape (d,)
        The mean item.
    L : array of shape (d, r)
        Whitening: phi(q) = (q − μ)L, with mean ‖phi‖² = 1.
    axes : array of shape (d, s)
        The leading principal axes.
    pivots : array of shape (m, s)
        Some items in these axes.
    """

    mean_similarity: float
    gap: float
    mu: Array
    L: Array
    axes: Array
    pivots: Array

    @property
    def n_features(self) -> int:
        """The number of features of an item."""
        return len(self.mu)

    @property
    def compiled(self) -> tuple[Array, Array, Array, Array, Array]:
        """What compiled code takes: coordinates along the axes are phi(q), stretched, from μ on."""
        stretch = 1.0 / np.linalg.norm(self.L, axis=0)
        pivots = self.pivots - self.mu @ self.axes
        half = 0.5 * np.einsum("ij,ij->i", pivots, pivots)
        return self.mu, on_lines(self.L), stretch, pivots, half

    @classmethod
    def of(cls, items: NDArray[Any], random: np.random.RandomState) -> Self:
        """The units of a sample of checked rows."""
        if len(items) > SAMPLE:
            items = items[np.sort(random.choice(len(items), SAMPLE, replace=False))]
        n, d = items.shape
        X = items.astype(np.float32)
        total = X.sum(axis=0, dtype=np.float64)
        squares = float(np.einsum("ij,ij->", X, X, dtype=np.float64))
        mean = float((total @ total - squares) / (n * (n - 1)))
        gap = _nearest(X, random) - mean
        if not gap > 1e-6 * squares / n:
            raise DegenerateInputError(
                "The items are as similar to any other item as to their nearest, so there is no "
                "unit to measure similarities by. Give at least a few hundred different items."
            )
        mu = total / n
        centered = X - mu.astype(np.float32)
        values, V = np.linalg.eigh((centered.T @ centered).astype(np.float64) / n)
        order = np.argsort(-values, kind="stable")
        values, V = np.maximum(values[order], 0.0), V[:, order]
        rank = min(d, RANK)
        shrunk = values + values.sum() / d
        # Mean ‖phi‖² over the items is the sum of the variances that are kept.
        scale = np.sqrt((values[:rank] / shrunk[:rank]).sum())
        L = V[:, :rank] / (np.sqrt(shrunk[:rank]) * scale)
        axes = V[:, : min(d, SKETCH)].astype(np.float32)
        chosen = random.choice(n, min(PIVOTS, n), replace=False)
        arrays = (mu, L, axes, X[chosen] @ axes)
        return cls(mean, float(gap), *(np.ascontiguousarray(a, dtype=np.float32) for a in arrays))

    def state(self) -> State:
        """The numbers and arrays."""
        names = ("mu", "L", "axes", "pivots")
        values = {"mean_similarity": self.mean_similarity, "gap": self.gap}
        return State({name: getattr(self, name) for name in names}, values)

    @classmethod
    def restore(cls, saved: Saved) -> Self:
        """The units of that state."""
        only: Any = {"dtypes": ["float32"]}
        mu = saved.array("mu", None, **only)
        L = saved.array("L", len(mu), None, **only)
        axes = saved.array("axes", len(mu), None, **only)
        pivots = saved.array("pivots", None, axes.shape[1], **only)
        return cls(saved.number("mean_similarity"), saved.positive("gap"), mu, L, axes, pivots)


def _nearest(X: Array, random: np.random.RandomState) -> float:
    """The median similarity of an item to its nearest other item."""
    n = len(X)
    rows = random.choice(n, min(PROBED, n), replace=False)
    nearest = np.empty(len(rows))
    for start in range(0, len(rows), 200):
        part = rows[start : start + 200]
        S = X[part] @ X.T
        S[np.arange(len(part)), part] = -np.inf
        nearest[start : start + 200] = S.max(axis=1)
    return float(np.median(nearest))


def single(values: Any) -> Array:
    """A copy in float32; what overflows is infinite, and refused where sizes are looked at."""
    if isinstance(values, np.ndarray) and values.dtype == np.float32:
        return values.copy(order="C")
    with np.errstate(over="ignore"):
        return np.array(values, dtype=np.float32, order="C")


def within_range(rows: NDArray[Any]) -> Array:
    """Results in float32; refused if they overflow, as forged or extreme numbers may."""
    found = rows if rows.dtype == np.float32 else single(rows)
    # In float64 the sum of finite ones cannot overflow.
    if not math.isfinite(found.sum(dtype=np.float64)):
        raise InvalidInputError(
            "What was learned takes these queries out of the range of float32; scale queries and "
            "items to unit length."
        )
    return found


def checked_items(items: Any, n_features: int | None = None, name: str = "items") -> NDArray[Any]:
    """Rows of finite numbers, dense, of float32 or float64."""
    rows = parameter_array(items, name)
    if rows.ndim != 2 or rows.dtype.kind not in "fiu" or not rows.size:
        raise InvalidInputError(
            f"{name} must be a dense array of numbers with a row for each vector. Got an array of "
            f"shape {rows.shape} and type {rows.dtype}."
        )
    if n_features is not None and rows.shape[1] != n_features:
        raise InvalidInputError(
            f"{name} must have the {n_features} features of the items that the adapter was fitted "
            f"on. Got {rows.shape[1]}."
        )
    if not np.isfinite(rows).all() or float(np.abs(rows).max()) > 1e15:
        raise InvalidInputError(f"{name} must be finite, and at most 1e15 in size.")
    return rows
