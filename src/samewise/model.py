"""A learned metric with what it takes to use it on new rows: the product of `samewise fit`."""

from __future__ import annotations

import difflib
import json
import reprlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from samewise._cards import Card, call, share, some, spectrum_lines
from samewise._typing import Array, Matrix
from samewise.exceptions import InvalidInputError
from samewise.files.container import parse
from samewise.files.state import Saved, State
from samewise.files.storable import Storable, restored, stored
from samewise.forms import Form
from samewise.kernels.pairwise import row_slices
from samewise.kernels.sparse_structure import sound_rows


@dataclass(frozen=True, eq=False, repr=False)
class Model(Card, Storable):
    """A form, the columns it was learned from, and how their values are scaled first.

    Attributes
    ----------
    form : Form
        Learned on scaled rows.
    feature_names : tuple of str, or None
        Names of the columns, in the order of the form's features.
    label : str or None
        Name of the column that held the labels.
    fill : array of shape (n_features,), or None
        What stands for a missing value (NaN) of each feature; None refuses them.
    mean, scale : arrays of shape (n_features,), or None
        A row x is compared as (x − mean) / scale.
    learner : str
        What the form was learned with.
    params : dict
        Its parameters, as far as they were set.
    kept : str
        Which of the plain and the learned metric `fit_model` kept and why, in words; empty if they
        were not compared.
    measured : dict
        What was measured on rows set aside: their number ("rows"), the error of each metric
        ("errors"), and more.
    threshold : float or None
        Two rows are the same if their closeness is at least this.
    versions : dict of str to str
        With what it was learned.
    seen : array of int64, sorted
        Marks of the rows it was learned from, by which `has_seen` knows them.
    training : dict
        How learning went, right after `fit_model`; it is not saved.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from samewise import Mahalanobis, Model, load
    >>> model = Model(Mahalanobis.identity(1), ("cm",), scale=np.array([2.0]), mean=np.array([1.0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.sw"
    ...     model.save(path)
    ...     model = load(path)
    >>> model.closeness([[0.0]], [[4.0]])
    array([[-2.]])
    """

    form: Form
    feature_names: tuple[str, ...] | None = None
    label: str | None = None
    mean: Array | None = None
    scale: Array | None = None
    learner: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    measured: dict[str, Any] = field(default_factory=dict)
    threshold: float | None = None
    versions: dict[str, str] = field(default_factory=dict)
    seen: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    training: dict[str, Any] = field(default_factory=dict, repr=False)
    kept: str = ""
    fill: Array | None = None

    def __post_init__(self) -> None:
        d = self.form.n_features_in
        if self.feature_names is not None and len(self.feature_names) != d:
            raise InvalidInputError(
                f"feature_names must name the {d} features. Got {len(self.feature_names)}."
            )
        if (self.mean is None) != (self.scale is None):
            raise InvalidInputError("mean and scale must be given together, or neither.")
        for name in ("mean", "scale", "fill"):
            values = getattr(self, name)
            if values is not None and (values.shape != (d,) or not np.isfinite(values).all()):
                raise InvalidInputError(
                    f"{name} must have {d} finite numbers. Got shape {values.shape}."
                )
        if self.scale is not None and not (self.scale > 0).all():
            raise InvalidInputError("scale must be positive.")
        if self.measured and not _is_measured(self.measured):
            raise InvalidInputError(
                "measured must be empty, or have the number of 'rows' and, by name, the 'errors' "
                f"from 0 to 1. Got {reprlib.repr(self.measured)}."
            )

    def _card(self) -> list[tuple[str, str]]:
        learned = f", from {len(self.seen):,} rows" if len(self.seen) else ""
        lines = [("form", repr(self.form)), *spectrum_lines(self.form._spectrum())]
        if self.learner:
            lines.append(("learned by", call(self.learner, self.params) + learned))
        if self.feature_names is not None:
            lines.append(("columns", some(list(self.feature_names))))
        if self.label is not None:
            lines.append(("label", self.label))
        if self.fill is not None:
            lines.append(("missing values", "filled in"))
        lines.append(("scaled", "no" if self.mean is None else "standardized"))
        if self.measured:
            errors = ", ".join(f"{n} {share(e)}" for n, e in self.measured["errors"].items())
            lines.append((f"error on {self.measured['rows']:,} rows", errors))
        if self.threshold is not None:
            lines.append(("same if", f"closeness ≥ {self.threshold:.6g}"))
        if self.kept:
            lines.append(("kept", self.kept))
        return lines

    def prepare(self, X: Any, names: Sequence[str] | None = None) -> Matrix:
        """Rows as the form takes them: its columns in its order, scaled.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features)
            Rows, with the columns that the model was learned from.
        names : sequence of str, default=None
            Names of the columns of X. Where the model knows names too, columns are found by them,
            and others are left out; otherwise they are taken as they stand.

        Returns
        -------
        array or CSR matrix of shape (n, n_features)
            The rows, scaled.
        """
        X = self._own_columns(X, names)
        if self.mean is None or self.scale is None:
            return X
        if sp.issparse(X):
            raise InvalidInputError(
                "The model standardizes dense rows, and sparse rows would not stay sparse. Give "
                "dense rows, or learn with scaling 'none'."
            )
        return standardized(X, self.mean, self.scale)

    def has_seen(self, X: Any, names: Sequence[str] | None = None) -> NDArray[np.bool_]:
        """Which rows are among those the model was learned from.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features)
            Rows, with the columns that the model was learned from.
        names : sequence of str, default=None
            Names of the columns of X. Where the model knows names too, columns are found by them,
            and others are left out; otherwise they are taken as they stand.

        Returns
        -------
        array of bool of shape (n,)
            True for the rows that were learned from.
        """
        return np.isin(row_marks(self._own_columns(X, names)), self.seen)

    def transform(self, X: Any, names: Sequence[str] | None = None) -> Array:
        """Coordinates in which the plain distance, or cosine, is the learned one.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features)
            Rows, with the columns that the model was learned from.
        names : sequence of str, default=None
            Names of the columns of X. Where the model knows names too, columns are found by them,
            and others are left out; otherwise they are taken as they stand.

        Returns
        -------
        array of shape (n, n_components)
            The coordinates of each row.
        """
        embed = getattr(self.form, "embed", None)
        if embed is None:
            raise InvalidInputError(
                f"A {type(self.form).__name__} compares two rows but has no coordinates for one: "
                "it is not a distance in a space. Use closeness or search, or learn another form, "
                "for example with lmnn or gcosla."
            )
        return embed(self.prepare(X, names))

    def closeness(self, X: Any, Y: Any = None, labels: ArrayLike | None = None) -> Array:
        """How close each row of X is to each row of Y (X itself by default); larger is closer.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features)
            Rows to compare.
        Y : array or CSR matrix of shape (m, n_features), default=None
            Rows to compare with; X itself by default.
        labels : array of shape (m,), default=None
            Classes of the rows of Y, where the model has a metric for each class.

        Returns
        -------
        array of shape (n, m)
            Closeness of every row of X to every row of Y.
        """
        A = self.prepare(X)
        B = None if Y is None else self.prepare(Y)
        return self.form.bind(A if B is None else B, labels).closeness(A, B)

    def state(self) -> State:
        """All that makes this model."""
        state = State({"seen": self.seen}, {name: getattr(self, name) for name in _VALUES})
        for name in ("mean", "scale", "fill"):
            if getattr(self, name) is not None:
                state.arrays[name] = getattr(self, name)
        if self.feature_names is not None:
            # As an array: a header has no room for many names.
            names = json.dumps(self.feature_names, ensure_ascii=False).encode()
            state.arrays["feature_names"] = np.frombuffer(names, dtype=np.uint8).copy()
        if self.kept:
            state.values["kept"] = self.kept
        return state.add("form", stored(self.form))

    @classmethod
    def restore(cls, saved: Saved) -> Self:
        """The model of that state."""
        found: dict[str, Any] = {"form": restored(saved.part("form"), Form)}
        for name in ("mean", "scale", "fill"):
            found[name] = saved.array(name, None) if saved.has(name) else None
        found["seen"] = saved.array("seen", None, dtypes=["int64"], empty=True)
        found["feature_names"] = _names(saved) if saved.has("feature_names") else None
        for name, kinds in _VALUES.items():
            found[name] = saved.value(name)
            saved.check(isinstance(found[name], kinds), f"has a wrong {name}")
        found["kept"] = saved.value("kept") if saved.has("kept") else ""
        saved.check(isinstance(found["kept"], str), "has a wrong kept")
        # A whole number may have more digits than a float can hold.
        largest = abs(found["threshold"] or 0)
        saved.check(largest <= sys.float_info.max, "has a wrong threshold")
        saved.check(all(isinstance(v, str) for v in found["versions"].values()), "has no versions")
        return cls(**found)

    def _own_columns(self, X: Any, names: Sequence[str] | None) -> Matrix:
        # Imported where it is needed: to read a model takes no scikit-learn.
        from sklearn.utils import check_array

        X = check_array(
            sound_rows(X),
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=True if self.fill is None or sp.issparse(X) else "allow-nan",
        )
        if names is not None and self.feature_names is not None:
            same = tuple(names) == self.feature_names
            return self._filled(X if same else X[:, self._columns(names)])
        if X.shape[1] != self.form.n_features_in:
            raise InvalidInputError(
                f"The model was learned from {self.form.n_features_in} features. Got "
                f"{X.shape[1]}; give rows with the same columns."
            )
        return self._filled(X)

    def _filled(self, X: Matrix) -> Matrix:
        if self.fill is None or sp.issparse(X):
            return X
        return np.where(np.isnan(X), self.fill.astype(X.dtype), X)

    def _columns(self, names: Sequence[str]) -> NDArray[np.intp]:
        assert self.feature_names is not None
        place = {name: j for j, name in enumerate(names)}
        missing = [name for name in self.feature_names if name not in place]
        if missing:
            near = difflib.get_close_matches(missing[0], list(names), n=1)
            hint = f" (there is {near[0]!r})" if near else ""
            raise InvalidInputError(
                f"The model was learned from {len(self.feature_names)} columns, of which "
                f"{len(missing)} are missing here: {', '.join(map(repr, missing[:3]))}"
                f"{'…' if len(missing) > 3 else ''}{hint}. Add them, or rename the columns that "
                "are meant."
            )
        return np.array([place[name] for name in self.feature_names])


_VALUES: dict[str, Any] = {
    "label": (str, type(None)),
    "learner": str,
    "params": dict,
    "measured": dict,
    "threshold": (float, int, type(None)),
    "versions": dict,
}


def _is_measured(found: dict[str, Any]) -> bool:
    rows, errors = found.get("rows"), found.get("errors")
    return (
        isinstance(rows, int)
        and isinstance(errors, dict)
        and all(isinstance(e, int | float) and 0 <= e <= 1 for e in errors.values())
    )


def as_model(found: Any) -> Model:
    """A model as it is, or a form or fitted learner made into one without names and scaling."""
    if isinstance(found, Model):
        return found
    if isinstance(found, Form):
        return Model(found)
    form = getattr(found, "metric_", None)
    if not isinstance(form, Form):
        raise InvalidInputError(
            f"A Model, a Form or a fitted learner is needed. Got {type(found).__name__}, which has "
            "no metric."
        )
    threshold = getattr(found, "closeness_threshold_", None)
    return Model(form, learner=type(found).__name__, threshold=threshold)


def standardized(X: Array, mean: Array, scale: Array) -> Array:
    """(X − mean) / scale, in the type of X."""
    return (X - mean.astype(X.dtype)) / scale.astype(X.dtype)


def row_marks(X: Matrix) -> NDArray[np.int64]:
    """A number for each row, the same for equal rows and hardly ever for others.

    Examples
    --------
    >>> import numpy as np
    >>> a, b, c = row_marks(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]]))
    >>> bool(a == c), bool(a == b)
    (True, False)
    """
    # A linear hash of the bits, modulo 2⁶⁴. Zeros count nothing, so that sparse and dense agree.
    random = np.random.RandomState(0)
    drawn = random.randint(2**63 - 1, size=X.shape[1], dtype=np.int64)
    odd = drawn.astype(np.uint64) | np.uint64(1)
    if sp.issparse(X):
        terms = sp.csr_array((_bits(X.data) * odd[X.indices], X.indices, X.indptr), X.shape)
        return np.asarray(terms.sum(axis=1)).ravel().astype(np.uint64).view(np.int64)
    marks = np.empty(X.shape[0], dtype=np.uint64)
    for rows in row_slices(X.shape[0], 16 * X.shape[1], 2**24):
        marks[rows] = _bits(X[rows]) @ odd
    return marks.view(np.int64)


def _bits(values: Array) -> NDArray[np.uint64]:
    # In single precision, so that rows written as text and read again are the same; + 0.0 makes
    # one zero of the two.
    with np.errstate(over="ignore"):
        bits = (np.ascontiguousarray(values, dtype=np.float32) + np.float32(0)).view(np.uint32)
    mixed = bits.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    # Multiplication carries upward only, and round numbers have their bits high up.
    return mixed ^ (mixed >> np.uint64(29))


def _names(saved: Saved) -> tuple[str, ...]:
    names = parse(saved.array("feature_names", None, dtypes=["uint8"]).tobytes())
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InvalidInputError("feature_names must be a list of names")
    return tuple(names)
