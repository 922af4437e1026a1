"""What hostile users hand in: rows, labels, supervision, parameters, texts.

Small recipes are drawn (a kind, a size, a seed, a few touches), not single numbers: they cost
little and shrink to something that can be read.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st
from sklearn.utils import _param_validation as validation

from samewise import LDA, Mahalanobis, Pairs, Quadruplets, Triplets

seeds = st.integers(0, 999)
sizes = st.integers(1, 12)
features = st.integers(1, 4)
up_to_five = st.integers(1, 5)

# Rows

KINDS = {
    "ordinary": lambda rng, n, d: rng.normal(size=(n, d)),
    "integers": lambda rng, n, d: rng.integers(-2, 3, (n, d)).astype(float),
    "twins": lambda rng, n, d: rng.integers(0, 2, (n, 1)) * np.ones((n, d)),
    "one direction": lambda rng, n, d: rng.normal(size=(n, 1)) * rng.normal(size=d),
    "constant column": lambda rng, n, d: rng.normal(size=(n, d)) * (np.arange(d) > 0) + 3.0,
    "zeros": lambda rng, n, d: np.zeros((n, d)),
    "far away": lambda rng, n, d: rng.normal(size=(n, d)) + 1e9,
    "scales of columns": lambda rng, n, d: (
        rng.normal(size=(n, d)) * 10.0 ** rng.integers(-99, 99, d)
    ),
    "scales of rows": lambda rng, n, d: (
        rng.normal(size=(n, d)) * 10.0 ** rng.integers(-99, 9, (n, 1))
    ),
    "subnormal": lambda rng, n, d: rng.normal(size=(n, d)) * 1e-310,
    "small": lambda rng, n, d: rng.normal(size=(n, d)) * 1e-160,
    "large": lambda rng, n, d: rng.normal(size=(n, d)) * 1e60,
    "huge": lambda rng, n, d: rng.normal(size=(n, d)) * 1e300,
}
TAME = ("ordinary", "integers", "twins", "one direction", "constant column")
VALUES = (0.0, -0.0, 1e10, 1e-10, 1e-160, 1e154, 5e-324, 1e308, np.nan, np.inf)


def _unsorted(X):
    """CSR whose rows have their columns in falling order, with stored zeros."""
    n, d = X.shape
    columns = np.tile(np.arange(d)[::-1], n)
    return sp.csr_array((X[:, ::-1].ravel(), columns, np.arange(0, n * d + 1, d)), shape=(n, d))


def _frozen(X):
    X.flags.writeable = False
    return X


LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "read-only": _frozen,
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "reversed": lambda X: X[::-1, ::-1],
    "other byte order": lambda X: X.astype(X.dtype.newbyteorder()),
    "float32": lambda X: X.astype(np.float32),
    "float16": lambda X: X.astype(np.float16),
    "list": lambda X: X.tolist(),
    "objects": lambda X: X.astype(object),
    "CSR": sp.csr_array,
    "CSR float32": lambda X: sp.csr_matrix(X.astype(np.float32)),
    "CSR unsorted": _unsorted,
    "CSC": sp.csc_array,
}


@st.composite
def rows(draw, n=sizes, d=features, kinds=tuple(KINDS), layouts=tuple(LAYOUTS), values=VALUES):
    """A matrix of some kind and layout, with up to two values put into it."""
    n, d = draw(n), draw(d)
    X = KINDS[draw(st.sampled_from(kinds))](np.random.default_rng(draw(seeds)), n, d)
    if values:
        for value in draw(st.lists(st.sampled_from(values), max_size=2)):
            X[draw(st.integers(0, n - 1)), draw(st.integers(0, d - 1))] = value
    with np.errstate(over="ignore"):
        return LAYOUTS[draw(st.sampled_from(layouts))](X)


def tame_rows(n=sizes, d=features, **how):
    """Rows that must be accepted as they are."""
    return rows(n, d, TAME, values=(), **how)


@st.composite
def malformed(draw, n=sizes, d=features):
    """A sparse matrix one of whose arrays is wrong, and sometimes right by chance."""
    make = draw(st.sampled_from([sp.csr_array, sp.csr_matrix, sp.csc_array, sp.bsr_array]))
    X = make(draw(rows(n, d, ("ordinary", "integers"), ("C",), ())))
    part = draw(st.sampled_from(["indices", "indptr", "data", "shorter", "wider"]))
    if part in ("indices", "indptr") and len(getattr(X, part)):
        at = draw(st.integers(0, len(getattr(X, part)) - 1))
        wrong = [X.shape[1], -1, -7, 0, 10**6, X.nnz + 1, 2**31 - 1, -(2**31)]
        getattr(X, part)[at] = draw(st.sampled_from(wrong))
    elif part == "data":
        X.data = X.data[:-1]
    elif part == "shorter":
        X.indptr = X.indptr[:-1]
    elif part == "wider":
        X.indices = np.append(X.indices, 0).astype(X.indices.dtype)
    return X


def n_rows(X):
    return X.shape[0] if hasattr(X, "shape") else len(X)


# Labels and supervision

NAMES = {
    "numbers": lambda codes: codes,
    "negative": lambda codes: -codes - 7,
    "floats": lambda codes: codes.astype(float),
    "booleans": lambda codes: codes > 0,
    "texts": lambda codes: np.array(["", "é", "b" * 40, "\u2028", "0"])[codes],
    "objects": lambda codes: np.array(["x", "y", "z", "u", "v"], dtype=object)[codes],
    "list": lambda codes: codes.tolist(),
    "column": lambda codes: codes[:, None],
    "mixed": lambda codes: np.array(["x", 1, None, 2.5, ()], dtype=object)[codes],
    "not numbers": lambda codes: np.where(codes > 0, np.nan, 0.0),
    "infinite": lambda codes: np.where(codes > 0, np.inf, 0.0),
    "huge": lambda codes: codes * 1e300,
    "continuous": lambda codes: codes + 0.5,
    "singletons": lambda codes: np.arange(len(codes)),
    "too few": lambda codes: codes[1:],
    "none": lambda codes: None,
}
USUAL = ("numbers", "negative", "booleans", "texts", "objects", "list")


@st.composite
def labels(draw, n, kinds=tuple(NAMES), n_classes=up_to_five):
    """A label for each of n rows, of up to five classes."""
    codes = np.random.default_rng(draw(seeds)).integers(0, draw(n_classes), n)
    return NAMES[draw(st.sampled_from(kinds))](codes)


@st.composite
def weights(draw, n):
    """None, or weights with zeros, and sometimes with what is no weight."""
    kind = draw(st.sampled_from(["none", "none", "some zero", "zero", "huge", "negative", "nan"]))
    if kind == "none":
        return None
    w = np.random.default_rng(draw(seeds)).integers(0, 3, n).astype(float)
    return w * {"some zero": 1, "zero": 0, "huge": 8e307, "negative": -1, "nan": np.nan}[kind]


class Given(NamedTuple):
    """What a learner is to learn from: a container to be made, or arrays as they are."""

    kind: str
    arguments: tuple[Any, ...]
    options: dict[str, Any] = {}  # noqa: RUF012 (a default that nobody changes)

    def to(self, learn):
        """Make the container, which may be refused too, and hand it over."""
        kinds = {"Pairs": Pairs, "Triplets": Triplets, "Quadruplets": Quadruplets}
        container = kinds.get(self.kind)
        if container is None:
            return learn(*self.arguments, **self.options)
        return learn(container(*self.arguments, **self.options))

    @property
    def X(self):
        return self.arguments[0]

    @property
    def arrays(self):
        return [*self.arguments, *self.options.values()]


@st.composite
def supervision(draw, kinds, X=None, wild=True):
    """What a learner learns from that is said to take these kinds; `wild` may be wrong."""
    kind = draw(st.sampled_from(kinds))
    if X is None:
        X = rows() if wild else tame_rows(st.integers(4, 12))
    X = draw(X)
    n = n_rows(X)
    numbers = st.integers(-1 if wild else 0, n if wild else n - 1)
    rng = np.random.default_rng(draw(seeds))
    m = draw(st.integers(0 if wild else 1, 12))
    if kind == "rows":
        return Given(kind, (X,))
    if kind in ("labels", "targets"):
        y = labels(n) if wild else labels(n, USUAL, st.just(2))
        return Given(kind, (X, draw(y)))
    if kind == "chunklets":
        return Given(kind, (X,), {"chunklets": rng.integers(-1, 3, n)})
    members = {"pairs": 2, "triplets": 3, "quadruplets": 4}[kind]
    signs = (np.where(rng.random(m) < 0.5, 1, -1),) if kind == "pairs" else ()
    if draw(st.booleans()) and not sp.issparse(X):
        stacked = np.asarray(X)[rng.integers(0, n, (m, members))]
        return Given("array", (stacked, *signs))
    at = rng.integers(0, n, (members, m))
    if m and wild:
        at[0, 0] = draw(numbers)
    weight = draw(weights(m)) if wild else None
    return Given(kind.title(), (X, *at, *signs), {"sample_weight": weight})


# Parameters

CHEAP = {
    "max_iter": 20,
    "n_pairs": 30,
    "n_triplets": 30,
    "n_quadruplets": 30,
    "max_passes": 3,
    "random_state": 0,
}
COSTLY = {*CHEAP, "n_passes", "n_draws", "n_hidden", "n_init", "n_target_searches"}
_MATRICES = ([[1.0, 0.0], [0.0, 1.0]], [[0.0]], [[np.nan]], [], [[1.0, 2.0]], [0, 1], ["x"])
_ANY = {
    "boolean": (False, True),
    "verbose": (0,),
    "random_state": (0, 2**32 - 1),
    "array-like": _MATRICES,
    None: (None,),
    callable: (None,),
    str: ("zero", "identity", "last", "uniform", "survival", "nonsense", ""),
    tuple: (("suffix", 2), ("cutoff", 1), ("suffix", 0), ("suffix",), ()),
    list: ([], ["suffix", 2]),
    dict: ({}, {"gamma": 1e-300}, {"gamma": 1e300}, {"gamma": -1.0}, {"degree": 2}, {"what": 1}),
    Mapping: ({}, {0: "a", 1: "a"}),
    Mahalanobis: (Mahalanobis.identity(2), Mahalanobis([[0.0]])),
}


def _legal(name, constraint):
    """Values that a constraint of scikit-learn allows."""
    try:
        return _ANY[constraint]
    except (KeyError, TypeError):
        constraint = validation.make_constraint(constraint)
    if isinstance(constraint, validation.StrOptions):
        return sorted(constraint.options)
    if not isinstance(constraint, validation.Interval):
        return (LDA(), None)
    if constraint.type is Integral:
        few = range(constraint.left, constraint.left + 4)
        return [*few] if name in COSTLY else [*few, 1000, 2**63]
    tried = [1e-300, 1e-9, 0.1, 0.5, 1 - 1e-9, 1, 1000.0, 1e300, constraint.left, constraint.right]
    return [value for value in tried if constraint.is_satisfied_by(value)]


@st.composite
def parameters(draw, cls, most=2, legal=False):
    """Parameters of an estimator: cheap ones, and up to `most` others, a few of them illegal."""
    known = inspect.signature(cls).parameters
    # What has no default is a learner.
    given = {name: LDA() for name, each in known.items() if each.default is each.empty}
    given |= {name: value for name, value in CHEAP.items() if name in known}
    allowed = {k: v for k, v in cls._parameter_constraints.items() if k in known}
    for name in draw(
        st.lists(st.sampled_from(sorted(allowed) or [""]), max_size=most, unique=True)
    ):
        if not name:
            continue
        choice = [value for each in allowed[name] for value in _legal(name, each)]
        if not legal:
            choice += [object(), "", -1, np.nan]
        given[name] = draw(st.sampled_from(choice))
    return given


@st.composite
def field_values(draw, cls, most=2):
    """Parameters of a filter, by what its fields allow; one in some is illegal."""
    allowed = {f.name: f.metadata["allowed"] for f in dataclasses.fields(cls) if f.metadata}
    names = draw(st.lists(st.sampled_from(sorted(allowed)), max_size=most, unique=True))
    choices = {
        name: [value for each in allowed[name] for value in _legal(name, each)] for name in names
    }
    odd = [object(), "", -1, np.nan, (0.3, 0.7), (0.9, 0.1), (np.nan, 1), (0.5,)]
    return {
        name: draw(st.sampled_from(4 * choice + [draw(st.sampled_from(odd))]))
        for name, choice in choices.items()
    }


# Texts

words = st.sampled_from(
    [
        "cocoa",
        "gold",
        "the",
        "x",
        "É",
        "ß",
        "\u0130",
        "\ufeff",
        "\u202e",
        "\0",
        "\ud800",
        "👩‍👩‍👧",
        "[/b]",
    ]
)
texts = st.lists(words | st.text(max_size=8), max_size=8).map(" ".join)
