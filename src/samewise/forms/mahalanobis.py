"""The Mahalanobis (pseudo)metric D(x, x') = √(vᵀMv) = ‖Lv‖, v = x − x'."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any, Self

import numpy as np

from samewise._typing import Array, Matrix
from samewise.exceptions import InvalidInputError
from samewise.files.state import State
from samewise.files.tensor_files import Sides, needed, save_graph, save_tensors
from samewise.forms._frozen import freeze
from samewise.forms._input_checks import (
    check_factored,
    check_finite,
    check_matrix,
    check_psd,
    check_square,
    check_squares,
    frozen,
)
from samewise.forms.distance_form import EuclideanForm
from samewise.forms.form import LITTLE
from samewise.kernels import psd
from samewise.kernels.pairwise import difference, squared_norms, times


class Mahalanobis(EuclideanForm):
    """A Mahalanobis distance √((x − x')ᵀ M (x − x')), M = LᵀL ⪰ 0.

    Parameters
    ----------
    matrix : array of shape (d, d)
        M: finite, symmetric (up to 1e-8 of its largest entry) and positive semi-definite (up to
        −1e-9 of its largest eigenvalue; such a rest is zeroed). For float32 both are 1e-5.

    Attributes
    ----------
    matrix : array of shape (d, d)
        M.
    components : array of shape (r, d)
        L with M = LᵀL: rows by decreasing eigenvalue, or as given to `from_components`.
    eigenvalues : array of shape (r,)
        The eigenvalues of M that are not zero, largest first; after `from_components` the
        min(r, d) squared singular values of L.
    root : array of shape (d, d)
        M^½, the symmetric root.

    Examples
    --------
    >>> import numpy as np
    >>> form = Mahalanobis(np.diag([4.0, 0.0]))
    >>> form
    Mahalanobis(n_features_in=2, rank=1)
    >>> form.pairs([[0.0, 0.0]], [[1.0, 7.0]])
    array([2.])
    >>> form.embed([[1.0, 7.0]])
    array([[2.]])
    """

    def __init__(self, matrix: Array) -> None:
        M, components, eigenvalues = check_psd(matrix, "Mahalanobis")
        self._set(matrix=M, components=components, eigenvalues=eigenvalues, _from_matrix=True)

    @classmethod
    def from_components(cls, components: Array) -> Self:
        """The distance ‖L(x − x')‖ of a linear map L, which is kept as it is given.

        Parameters
        ----------
        components : array of shape (r, d)
            L. M = LᵀL is computed only when it is asked for.

        Examples
        --------
        >>> Mahalanobis.from_components([[1.0, 1.0]]).matrix
        array([[1., 1.],
               [1., 1.]])
        """
        L = check_matrix(components, "components", cls.__name__)
        check_squares(L, f"The components of {cls.__name__}")
        return cls._of_components(L)

    @classmethod
    def nearest(cls, matrix: Array) -> Self:
        """The metric nearest to any square matrix: its symmetric part without negative eigenvalues.

        Parameters
        ----------
        matrix : array of shape (d, d)
            Finite; neither symmetry nor M ⪰ 0 is asked for. Its eigenvectors are computed when the
            form is first used.

        Examples
        --------
        >>> Mahalanobis.nearest([[2.0, 0.0], [0.0, -1.0]]).matrix
        array([[2., 0.],
               [0., 0.]])
        """
        M = check_matrix(matrix, "matrix", cls.__name__)
        check_square(M, cls.__name__)
        with np.errstate(over="ignore"):
            S = psd.symmetrize(M)
        check_finite(S, f"The symmetric part of the matrix of {cls.__name__}")
        form = cls.__new__(cls)
        # Factored when it is first used: who reads a form after every event of a stream may not
        # want to use all of them.
        form._set(_given=freeze(S), _from_matrix=True)
        return form

    @classmethod
    def identity(cls, n_features: int) -> Self:
        """The Euclidean distance.

        Parameters
        ----------
        n_features : int
            Number of features, at least 1.

        Returns
        -------
        Mahalanobis
            The form with M = I.

        Examples
        --------
        >>> Mahalanobis.identity(3).pairs([[0.0, 0.0, 0.0]], [[1.0, 2.0, 2.0]])
        array([3.])
        """
        if n_features < 1:
            raise InvalidInputError(f"n_features must be at least 1, but it is {n_features}.")
        form = cls._of_components(frozen(np.eye(n_features)))
        form._set(eigenvalues=frozen(np.ones(n_features)), matrix=form.components)
        return form

    @cached_property
    def _factors(self) -> tuple[Array, Array]:
        components, eigenvalues = psd.factor(self._given)
        return freeze(components), freeze(eigenvalues)

    @cached_property
    def components(self) -> Array:
        """L with M = LᵀL."""
        return self._factors[0]

    @cached_property
    def matrix(self) -> Array:
        """M = LᵀL."""
        return freeze(psd.symmetrize(self.components.T @ self.components))

    @cached_property
    def eigenvalues(self) -> Array:
        """Eigenvalues of M, largest first."""
        if self._from_matrix:
            return self._factors[1]
        return freeze(np.linalg.svd(self.components, compute_uv=False) ** 2)

    @cached_property
    def root(self) -> Array:
        """M^½, the symmetric root: M = M^½M^½."""
        return freeze(psd.root_of(self._canonical_components(), self.eigenvalues))

    @property
    def n_features_in(self) -> int:
        """Number of features d."""
        known = vars(self).get("_given")
        return (self.components if known is None else known).shape[1]

    def embed(self, X: Matrix, *, symmetric: bool = False) -> Array:
        """X Lᵀ: rows whose Euclidean distance is this distance.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Examples, one row each.
        symmetric : bool, default=False
            Take the symmetric root M^½ for L. The result has d columns whatever the rank, and it is
            continuous in M: two forms whose matrices differ by Δ place a row x at most √‖Δ‖ ‖x‖
            apart. Leading directions can swap or change their signs.

        Returns
        -------
        array of shape (n, r) or (n, d)
            The embedded rows.

        Examples
        --------
        >>> form = Mahalanobis.from_components([[2.0, 0.0]])
        >>> form.embed([[1.0, 5.0]])
        array([[2.]])
        >>> form.embed([[1.0, 5.0]], symmetric=True)
        array([[2., 0.]])
        """
        X = self._check_rows(X, "X", self.n_features_in)
        return self._checked(self._embed, X, self.root if symmetric else self.components)

    def reduce(self, n_components: int) -> Self:
        """Keep the leading directions only: the best M of that rank in the Frobenius norm.

        Parameters
        ----------
        n_components : int
            Number of directions; from the rank of M on, the form itself is returned.

        Returns
        -------
        Mahalanobis
            The form of the leading directions.

        Examples
        --------
        >>> import numpy as np
        >>> Mahalanobis(np.diag([1.0, 9.0])).reduce(1).components
        array([[0., 3.]])
        """
        if n_components < 1:
            raise InvalidInputError(f"n_components must be at least 1, but it is {n_components}.")
        if n_components >= len(self.eigenvalues):
            return self
        return self.from_components(self._canonical_components()[:n_components])

    def lift(self, axes: Array) -> Self:
        """The same distance for rows x whose images Vx the form compares: that of the map LV.

        Parameters
        ----------
        axes : array of shape (d, n)
            V.

        Returns
        -------
        Mahalanobis
            A form of rows of n features.

        Examples
        --------
        >>> Mahalanobis.from_components([[2.0]]).lift([[0.0, 1.0]]).components
        array([[0., 2.]])
        """
        return self.from_components(self.components @ axes)

    def effective_rank(self, tol: float = 1e-9) -> int:
        """Number of eigenvalues greater than tol·λ_max.

        Parameters
        ----------
        tol : float, default=1e-9
            The part of the largest eigenvalue λ_max that others must exceed.

        Returns
        -------
        int
            The number of such eigenvalues.

        Examples
        --------
        >>> import numpy as np
        >>> Mahalanobis(np.diag([1.0, 1e-10])).effective_rank()
        1
        """
        return psd.effective_rank(self.eigenvalues, tol)

    def to_safetensors(self, path: str | os.PathLike[str]) -> None:
        """Write the map as the weight of a linear layer, for torch.

        ``torch.nn.Linear(d, r, bias=False)`` takes it by ``load_state_dict``. It holds one array,
        "weight": `components`.

        Parameters
        ----------
        path : str or path
            An existing file is replaced as a whole or not at all.

        Notes
        -----
        It needs the package safetensors: ``pip install 'samewise[safetensors]'``.
        """
        about = {"kind": "samewise linear map", "form": type(self).__name__}
        save_tensors(path, {"weight": self.components}, about)

    def to_onnx(self, path: str | os.PathLike[str], *, pairs: bool = False) -> None:
        """Write the map, or the closeness of pairs, as an ONNX model.

        Parameters
        ----------
        path : str or path
            An existing file is replaced as a whole or not at all.
        pairs : bool, default=False
            False: input "rows" of shape (n, d), output "mapped" of shape (n, r), as `embed` gives
            it. True: inputs "left" and "right", the members of n pairs, and output "closeness" of
            shape (n,), the distance with a minus sign.

        Notes
        -----
        Inputs have the type of `components`, float32 or float64. It needs the package onnx:
        ``pip install 'samewise[onnx]'``.
        """
        node = needed("onnx", "onnx").helper.make_node
        r, d = self.components.shape
        nodes = [node("Gemm", ["rows", "weight"], ["mapped"], transB=1)]
        sides: Sides = {"rows": ["n", d]}, {"mapped": ["n", r]}
        arrays: dict[str, Any] = {"weight": self.components}
        if pairs:
            arrays["across"] = np.array([1], dtype=np.int64)
            nodes = [
                node("Sub", ["left", "right"], ["difference"]),
                node("Gemm", ["difference", "weight"], ["mapped"], transB=1),
                node("Mul", ["mapped", "mapped"], ["squares"]),
                node("ReduceSum", ["squares", "across"], ["squared"], keepdims=0),
                node("Sqrt", ["squared"], ["distance"]),
                node("Neg", ["distance"], ["closeness"]),
            ]
            sides = {"left": ["n", d], "right": ["n", d]}, {"closeness": ["n"]}
        about = {"form": type(self).__name__}
        save_graph(path, "samewise form", nodes, sides, arrays, about, "Reduce the form first.")

    @property
    def _width(self) -> int:
        return len(self.components)

    def _spectrum(self) -> Array | None:
        known = "eigenvalues" in vars(self) or self.components.size <= LITTLE
        return self.eigenvalues if known else None

    def _embed(self, X: Matrix, L: Array | None = None) -> Array:
        L = self.components if L is None else L
        return times(X, L.astype(X.dtype, copy=False).T)

    def _pair_values(self, X: Matrix, Y: Matrix) -> Array:
        return squared_norms(self._embed(difference(X, Y)))

    def _canonical_components(self) -> Array:
        if self._from_matrix:
            return self.components
        _, singular, V = np.linalg.svd(self.components, full_matrices=False)
        return singular[:, None] * V

    def state(self) -> State:
        """All that makes this form.

        Returns
        -------
        State
            Arrays and plain values, by name.
        """
        names = ("matrix", "components", "eigenvalues") if self._from_matrix else ("components",)
        return State({name: getattr(self, name) for name in names})

    @classmethod
    def _of_parts(
        cls, *, components: Array, matrix: Array | None = None, eigenvalues: Array | None = None
    ) -> Self:
        if matrix is None and eigenvalues is None:
            return cls.from_components(components)
        if matrix is None or eigenvalues is None:
            raise InvalidInputError("matrix and eigenvalues must come together.")
        matrix, components, eigenvalues = check_factored(
            matrix, components, eigenvalues, cls.__name__
        )
        form = cls.__new__(cls)
        form._set(matrix=matrix, components=components, eigenvalues=eigenvalues, _from_matrix=True)
        return form

    @classmethod
    def _of_components(cls, components: Array) -> Self:
        form = cls.__new__(cls)
        form._set(components=components, _from_matrix=False)
        return form

    def _summary(self) -> dict[str, Any]:
        return {"n_features_in": self.n_features_in, "rank": len(self.components)}

    _from_matrix: bool
    _given: Array
