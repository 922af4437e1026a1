"""The forms of an adapter: the start, the live form, and what is served."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samewise._typing import Array, Indices

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
