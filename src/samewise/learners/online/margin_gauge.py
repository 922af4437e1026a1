"""What is known of the rows of a stream: whether they have unit length, and how alike they are.

`margin="auto"` and `init="auto"` follow from it. A few odd rows (an empty document, lengths that
were rounded) do not decide: lengths are judged by their median, products measured on rows of about
unit length. A stream may begin with a single event, whose rows say little about rows in general:
the gauge goes on collecting rows until it has seen enough of them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from samewise._typing import Array, Indices, Matrix
from samewise.exceptions import SamewiseWarning
from samewise.files.state import Saved, State
from samewise.kernels.pairwise import all_dots, squared_norms, times
from samewise.supervision import Triplets
from samewise.supervision.sampling import row_keys

Bases = tuple[Array, Array]
"""Orthonormal columns, for queries and for items: the coordinates of a W of low rank."""
UNIT = 0.05
"""How far from 1 the lengths of unit vectors may be, in the median: stored embeddings are rounded,
and with 4 bits a number that makes 0.01 (banking77)."""
ODD = 0.1
"""How far from 1 the length of a row may be that products are measured on."""
ALIKE = 0.05
"""Lengths whose quartiles differ by less than this part of the median are all the same."""
APART = 0.95
"""The mean of unit vectors is at most so long, or they all point the same way."""
SAMPLE = 1000
"""Rows that the size of similarities is measured on."""
ENOUGH = 200
"""Rows of queries and of items after which the margin is settled."""
DISTURBANCE = 0.05
"""How much of the scores of unrelated pairs a step may change (`margin="auto"`)."""
TYPICAL, WEIGHT = 0.2, 100
"""The size of products of unrelated unit vectors where little is known, and how many products it
counts as. It is between those of sentence embeddings (0.14 and 0.26 were met)."""


def unit_rows(triplets: Triplets) -> bool:
    """Whether queries and items have unit length; warns where they may have been meant to."""
    sides = [triplets.X] if triplets.items is triplets.X else [triplets.X, triplets.items]
    return all([_unit(X) for X in sides])


def _unit(X: Matrix) -> bool:
    rows = X[some_rows(X)]
    lengths = _lengths(rows)
    lengths = lengths[lengths > 0]
    if not lengths.size:
        return False
    away = np.abs(lengths - 1.0)
    if np.median(away) <= UNIT:
        if n_odd := int(np.count_nonzero(away > ODD)):
            _warn(
                f"Most rows have unit length, but {n_odd} of {len(lengths)} have not (lengths from "
                f"{lengths.min():.3g} to {lengths.max():.3g}). margin='auto' leaves them out, but "
                "their scores are of another size"
            )
        return True
    low, middle, high = np.percentile(lengths, [25, 50, 75])
    alike = len(lengths) >= 10 and high - low <= ALIKE * middle
    # Rows far from the origin in one direction have like lengths too, and are no embeddings.
    if alike and np.linalg.norm(rows.mean(axis=0)) <= APART * middle:
        _warn(
            f"Rows have nearly the same length, {middle:.3g}, as embeddings have, but not unit "
            "length, so margin='auto' is 1 and init='auto' is zero"
        )
    return False


def _warn(what: str) -> None:
    advice = "; scale rows to unit length, for instance with sklearn.preprocessing.normalize."
    warnings.warn(what + advice, SamewiseWarning, stacklevel=2)


def _lengths(X: Matrix) -> NDArray[np.float64]:
    return np.sqrt(np.asarray(squared_norms(X), dtype=np.float64))


def some_rows(X: Matrix) -> Indices:
    """Some different rows, the same ones however X is ordered and whatever it repeats."""
    rows = np.unique(row_keys(X), return_index=True)[1]
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), SAMPLE)).astype(np.intp)]


@dataclass(frozen=True)
class Gauge:
    """Different rows of about unit length, in the coordinates that are learned in.

    Parameters
    ----------
    queries, items : array or CSR matrix
        The same object where queries and items are rows of one matrix.
    start : array or None
        W before the first example; None is the identity.
    """

    queries: Matrix
    items: Matrix
    start: Array | None

    @classmethod
    def of(cls, triplets: Triplets, W: Array, bases: Bases | None) -> Self:
        """What the rows of the first portion say."""
        queries, items = _sides(triplets, bases)
        identity = W.shape[0] == W.shape[1] and np.array_equal(W, np.eye(len(W)))
        return cls(queries, items, None if identity else W)

    def wider(self, triplets: Triplets, bases: Bases | None) -> Self:
        """The same with the rows of another portion."""
        queries, items = _sides(triplets, bases)
        one = items is queries and self.items is self.queries
        both = _different(stacked(self.queries, queries))
        rest = both if one else _different(stacked(self.items, items))
        return type(self)(both, rest, self.start)

    @property
    def settled(self) -> bool:
        """Whether there are rows enough."""
        return self.queries.shape[0] + self.items.shape[0] >= 2 * ENOUGH

    def margin(self) -> float:
        """The margin whose steps change the scores of unrelated pairs by a twentieth.

        A step that changes its own score by the margin changes the score of an unrelated (q′, p′)
        by margin · (q·q′)(p·p′), about margin · ρ² with ρ the size of such products. To keep that
        to a twentieth of the scores there are, which are of size s, the margin is at most s/20ρ²;
        the identity, with s = ρ, gets min(1, 1/20ρ).
        """
        Q, P, W = self.queries, self.items, self.start
        one = P is Q
        known = 0 if self.settled else WEIGHT
        rho = np.sqrt(_size(Q, Q, True, known) * _size(P, P, True, known))
        if W is None:
            scores = _size(Q, P, one, known)
        else:
            typical = TYPICAL * float(np.linalg.norm(W)) / np.sqrt(min(W.shape))
            scores = _size(times(Q, W.astype(Q.dtype)), P, one, known, typical)
        if rho == 0.0 or scores == 0.0:
            return 1.0
        return float(scores / rho * min(1.0, DISTURBANCE / rho))

    def state(self) -> State:
        """The rows and the start."""
        one = self.items is self.queries
        state = State().add("queries", _rows_state(self.queries))
        if not one:
            state.add("items", _rows_state(self.items))
        if self.start is not None:
            state.arrays["start"] = self.start
        return state

    @classmethod
    def restore(cls, saved: Saved, m: int, n: int) -> Self:
        """The gauge of that state, with rows of m and of n coordinates."""
        queries = _restored_rows(saved.part("queries"), m)
        items = _restored_rows(saved.part("items"), n) if saved.has("items") else queries
        saved.check(items.shape[1] == n, "items must be like the matrix")
        start = saved.array("start", m, n) if saved.has("start") else None
        return cls(queries, items, start)


def _sides(triplets: Triplets, bases: Bases | None) -> tuple[Matrix, Matrix]:
    """Rows of queries and of items; one object where they are of one matrix."""
    X, items = triplets.X, triplets.items
    left, right = (None, None) if bases is None else bases
    Q = _usable(X, left)
    # Bases of one matrix are equal, but when they come from a file not the same array.
    one = items is X and (bases is None or np.array_equal(*bases))
    return Q, Q if one else _usable(items, right)


def _usable(X: Matrix, basis: Array | None) -> Matrix:
    """Some rows of about unit length, in the coordinates of the basis."""
    rows = X[some_rows(X)]
    rows = rows[np.abs(_lengths(rows) - 1.0) <= ODD]
    return rows if basis is None else times(rows, basis)


def _different(rows: Matrix) -> Matrix:
    return rows[some_rows(rows)]


def stacked(X: Matrix, Y: Matrix) -> Matrix:
    """The rows of both, CSR if one of them is."""
    if sp.issparse(X) or sp.issparse(Y):
        return sp.csr_array(sp.vstack([sp.csr_array(X), sp.csr_array(Y)]))
    return np.concatenate([X, Y])


def _size(A: Matrix, B: Matrix, same: bool, known: int, typical: float = TYPICAL) -> float:
    """Root mean square of the products of rows, but for those of a row with itself.

    `known` products of the typical size are counted as well.
    """
    products = np.asarray(all_dots(A, B), dtype=np.float64)
    if same:
        np.fill_diagonal(products, 0.0)
    n = products.size - len(products) * same + known
    return float(np.sqrt((np.sum(products**2) + known * typical**2) / max(n, 1)))


def _rows_state(rows: Matrix) -> State:
    if not sp.issparse(rows):
        return State({"rows": rows})
    names = ("data", "indices", "indptr")
    parts = {name: getattr(rows, name) for name in names}
    return State({k: v.astype(np.int64) if k != "data" else v for k, v in parts.items()})


def _restored_rows(saved: Saved, width: int) -> Matrix:
    if saved.has("rows"):
        return saved.array("rows", None, width, empty=True)
    data = saved.array("data", None, empty=True)
    indices = saved.array("indices", len(data), dtypes=["int64"], empty=True)
    indptr = saved.array("indptr", None, dtypes=["int64"])
    right = indptr[0] == 0 and indptr[-1] == len(data) and bool(np.all(np.diff(indptr) >= 0))
    saved.check(right and bool(np.all((indices >= 0) & (indices < width))), "rows do not fit")
    return sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, width))
