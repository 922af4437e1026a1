"""The forms of an adapter: the start, the live form, and what is served."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from samewise._rollback import alone
from samewise._typing import Array, Indices
from samewise.adapt.map_files import write_onnx, write_safetensors
from samewise.adapt.query_map import QueryMap, query_map
from samewise.exceptions import InvalidInputError
from samewise.forms import GeneralizedCosine
from samewise.kernels.psd import project

if TYPE_CHECKING:
    from samewise.adapt.serving_adapter import ServingAdapter


class QueryForm:
    """One of the three forms of a `LiveAdapter`: it maps queries, items stay as they are.

    Parameters
    ----------
    adapter : LiveAdapter
        The adapter.
    which : {"start", "live", "served"}
        Which form.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise import LiveAdapter
    >>> items = np.random.RandomState(0).randn(100, 8)
    >>> adapter = LiveAdapter(random_state=0).fit(items)
    >>> bool((adapter.start.embed_query(items) == items.astype(np.float32)).all())
    True
    """

    def __init__(self, adapter: ServingAdapter, which: str) -> None:
        self._adapter, self._which = adapter, which

    def embed_query(self, Q: Any, place: str = "rest") -> Array:
        """Vectors to search a dot-product index of the items with.

        Parameters
        ----------
        Q : array of shape (n, d) or (d,)
            Queries.
        place : {"rest", "first"}, default="rest"
            Of what is served: the vector that decides the order, or the one that decides the first
            place, which is guarded apart. The start and the live form have one vector for both.

        Returns
        -------
        array of float32 of shape (n, d) or (d,)
            The mapped queries.
        """
        return self._adapter._embed(Q, self._which, place)

    def to_matrix(self, place: str = "rest") -> tuple[Array, Array]:
        """The linear part as a matrix and a vector, for systems that map queries themselves.

        Q @ matrix + bias are the mapped queries, exactly, but for what is remembered of single
        lists: that has no matrix.

        Parameters
        ----------
        place : {"rest", "first"}, default="rest"
            Of what is served: the map that decides the order, or the first place.

        Returns
        -------
        matrix : array of float32 of shape (d, d)
            What queries are multiplied with.
        bias : array of float32 of shape (d,)
            What is added.
        """
        return self._adapter._matrix(self._which, place)

    def to_numpy(self, place: str = "rest", *, memory: bool = True) -> QueryMap:
        """This form as a function of arrays alone, as it is now.

        Parameters
        ----------
        place : {"rest", "first"}, default="rest"
            Of what is served: the map that decides the order, or the first place.
        memory : bool, default=True
            Whether remembered lists count, or the linear part only.

        Returns
        -------
        QueryMap
            The function: `mapped(Q)` are the mapped queries. Its linear part is exact; of the
            remembered lists it looks at all, where `embed_query` looks at the nearest.
        """
        if not isinstance(memory, bool):
            raise InvalidInputError(f"memory must be True or False. Got {memory!r}.")
        adapter = self._adapter
        with alone(adapter):
            linear = self.to_matrix(place)
            window = adapter._fitted.form(self._which, place)[1]
            return query_map(adapter._fitted, linear, window, memory)

    def to_safetensors(
        self, path: str | os.PathLike[str], place: str = "rest", *, memory: bool = True
    ) -> None:
        """Write this form to a safetensors file.

        Its tensors are "weight", of shape (out, in), and "bias", as a linear layer of torch has
        them, and, where lists are remembered, "memory.queries", "memory.directions" and
        "memory.weights", the arrays of `QueryMap`, whose numbers are in the metadata.

        Parameters
        ----------
        path : str or path
            An existing file is replaced as a whole or not at all.
        place : {"rest", "first"}, default="rest"
            Of what is served: the map that decides the order, or the first place.
        memory : bool, default=True
            Whether remembered lists are written, or the linear part only.

        Notes
        -----
        It needs the package safetensors: ``pip install 'samewise[safetensors]'``.
        """
        write_safetensors(self.to_numpy(place, memory=memory), path, self._about(place))

    def to_onnx(
        self, path: str | os.PathLike[str], place: str = "rest", *, memory: bool = True
    ) -> None:
        """Write this form to an ONNX file.

        The input is "query", float32 of shape (n, d). The output "linear" is the linear part,
        exactly; where lists are remembered, a second output "mapped" adds them as `to_numpy` does.

        Parameters
        ----------
        path : str or path
            An existing file is replaced as a whole or not at all.
        place : {"rest", "first"}, default="rest"
            Of what is served: the map that decides the order, or the first place.
        memory : bool, default=True
            Whether remembered lists are written, or the linear part only.

        Notes
        -----
        It needs the package onnx: ``pip install 'samewise[onnx]'``.
        """
        write_onnx(self.to_numpy(place, memory=memory), path, self._about(place))

    def to_items(self, place: str = "rest") -> GeneralizedCosine:
        """The linear part as one map for queries and items, for stores that map both alike.

        With the matrix M of `to_matrix`, queries are compared with items by qMpᵀ. One map for both,
        x ↦ xL, compares them by qLLᵀpᵀ; L is the symmetric root of the positive semi-definite
        matrix next to M, which is (M + Mᵀ)/2 without its negative eigenvalues. What is not
        symmetric in M, the bias and the remembered lists are lost, and all items have to be
        indexed again. Whether that gains or loses is to be measured, as in the example.

        Parameters
        ----------
        place : {"rest", "first"}, default="rest"
            Of what is served: the map that decides the order, or the first place.

        Returns
        -------
        GeneralizedCosine
            The form; ``form.embed(X, symmetric=True)`` are the vectors to store, and to search
            with, of unit length.

        See Also
        --------
        QueryForm.to_matrix : The linear part as it is. Where items may be indexed again and queries
            shall stay as they are, ``items @ matrix.T`` with a last column ``items @ bias``, and
            queries with a last 1, have exactly its scores.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_digits
        >>> from samewise import LiveAdapter, evaluate_feedback
        >>> from samewise.adapt import Judged
        >>> X, y = load_digits(return_X_y=True)
        >>> items = X / np.linalg.norm(X, axis=1, keepdims=True)
        >>> rng = np.random.RandomState(0)
        >>> lists = [(q, rng.choice(1797, 10, replace=False)) for q in rng.choice(1797, 1500)]
        >>> events = [Judged(items[q], rows, np.where(y[rows] == y[q], 1, -1)) for q, rows in lists]
        >>> adapter = LiveAdapter(items=items, random_state=0).fit(items)
        >>> for event in events[:1000]:
        ...     _ = adapter.feedback(event)
        >>> form = adapter.live.to_items()
        >>> form.embed(items, symmetric=True).shape
        (1797, 64)
        >>> found = evaluate_feedback(adapter.start, form, events[1000:], items=items)
        >>> found.n_compared, found.verdict[:6]
        (340, 'better')
        """
        M = self.to_matrix(place)[0]
        return GeneralizedCosine(project(M.astype(np.float64)), on_zero="zero")

    def _about(self, place: str) -> dict[str, str]:
        events = str(self._adapter.n_events_)
        return {"form": self._which, "place": place, "events": events}

    def rank(self, query: Any, items: Any = None, k: int = 10) -> Indices:
        """The k best items for a query under this form.

        Parameters
        ----------
        query : array of shape (d,)
            The query.
        items : array of shape (n, d) or sequence of ids, default=None
            What to rank; the adapter's item store by default.
        k : int, default=10
            How many; fewer where there are fewer items.

        Returns
        -------
        array of shape (k,)
            Places in `items`, the best first.
        """
        return self._adapter._rank(query, items, k, self._which)

    def __repr__(self) -> str:
        return f"QueryForm({self._which!r} of {self._adapter!r})"
