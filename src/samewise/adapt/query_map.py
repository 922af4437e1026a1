"""What an adapter's form does to queries, as plain arrays: a function that needs NumPy only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from samewise._typing import Array
from samewise.adapt.adapter_course import ALPHA, BETA, CENTER, AdapterCourse
from samewise.adapt.item_units import checked_items, within_range
from samewise.kernels.event_cells import LEAST
from samewise.kernels.pairwise import row_slices
from samewise.supervision.supervision_checks import parameter_array

LARGEST_EXPONENT = 60.0
"""Kernels are at most exp of this, as in `kernels/event_cells.py`."""


@dataclass(frozen=True, eq=False)
class QueryMap:
    """A function that maps queries as a form of a `LiveAdapter` does, made of arrays alone.

        q' = q matrix + bias + α Σ K_i v_i / (Σ K_i + 1),   K_i = w_i exp(β (q·q_i − c)),

    over all remembered lists i with K_i ≥ 1e-4. The linear part is exactly that of the form. The
    form itself takes the 32 nearest of at most 320 remembered lists, those in the cells nearest to
    the query; here all of them count.

    It can be pickled and copied, and does not change when the adapter learns.

    Parameters
    ----------
    matrix : array of shape (d, d)
        What queries are multiplied with.
    bias : array of shape (d,)
        What is added.
    queries : array of shape (m, d)
        The queries q_i of the remembered lists; none where m is 0.
    directions : array of shape (m, d)
        Which way their liked items lie, v_i.
    weights : array of shape (m,)
        How much each counts, w_i; less with age where the adapter has a `half_life`.
    alpha, beta, center : float
        α, β and c.

    See Also
    --------
    QueryForm.to_numpy : Makes it.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise import LiveAdapter
    >>> items = np.random.RandomState(0).randn(100, 8)
    >>> adapter = LiveAdapter(items=items, random_state=0).fit(items)
    >>> adapter.feedback(items[0], [1, 2, 3], [1, -1, -1])
    True
    >>> mapped = adapter.live.to_numpy()
    >>> mapped
    QueryMap(8 features, 1 remembered lists)
    >>> bool(np.allclose(mapped(items[0]), adapter.live.embed_query(items[0]), atol=1e-5))
    True
    """

    matrix: Array
    bias: Array
    queries: Array
    directions: Array
    weights: Array
    alpha: float
    beta: float
    center: float

    def __call__(self, Q: Any) -> Array:
        """Map queries.

        Parameters
        ----------
        Q : array of shape (n, d) or (d,)
            Queries.

        Returns
        -------
        array of float32 of shape (n, d) or (d,)
            The mapped queries.
        """
        Q = parameter_array(Q, "Q")
        one = Q.ndim == 1
        rows = checked_items(Q[None] if one else Q, len(self.bias), "Q").astype(np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            out = rows @ self.matrix + self.bias
            if len(self.queries):
                for part in row_slices(len(rows), 4 * len(self.queries), 2**25):
                    out[part] += self._recalled(rows[part])
        found = within_range(out)
        return found[0] if one else found

    def _recalled(self, Q: Array) -> Array:
        exponents = np.float32(self.beta) * (Q @ self.queries.T - np.float32(self.center))
        K = self.weights * np.exp(np.minimum(exponents, np.float32(LARGEST_EXPONENT)))
        K[K < LEAST] = 0.0
        found: Array = np.float32(self.alpha) * (K @ self.directions)
        return found / (K.sum(axis=1, keepdims=True) + np.float32(1.0))

    def __repr__(self) -> str:
        m, d = self.queries.shape
        return f"QueryMap({d} features, {m} remembered lists)"


def query_map(
    course: AdapterCourse, linear: tuple[Array, Array], window: tuple[int, int, int], memory: bool
) -> QueryMap:
    """The map of a form: its matrix and bias, and what its window shows of the memory."""
    units = course.units
    d = units.n_features
    queries, directions = np.zeros((2, 0, d), dtype=np.float32)
    weights = np.zeros(0, dtype=np.float32)
    if memory:
        events = course.memory.state().arrays
        first, last, now = window
        seen = (events["numbers"] >= first) & (events["numbers"] < last) & (events["ended"] >= last)
        queries, directions = events["queries"][seen], events["directions"][seen]
        half_life = course.linear.half_life
        rate = 0.0 if half_life is None else math.log(2.0) / half_life
        age = now - events["numbers"][seen]
        weights = (events["weights"][seen] * np.exp(-rate * age)).astype(np.float32)
    center = units.mean_similarity + CENTER * units.gap
    kernel = (ALPHA, BETA / units.gap, center)
    return QueryMap(*linear, queries, directions, weights, *kernel)
