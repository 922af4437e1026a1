"""A FAISS index that searches under a learned distance."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from samewise.exceptions import InvalidInputError
from samewise.forms import Form, Mahalanobis


def to_faiss(form: Form, inner: Any = None) -> Any:
    """A FAISS index of plain rows, which it maps before it stores or searches them.

    Parameters
    ----------
    form : Mahalanobis
        The learned distance ‖Lx − Lx′‖; L has r rows.
    inner : faiss.Index, default=None
        Where mapped rows are stored: any index of r dimensions under the L2 metric. By default
        ``IndexFlatL2(r)``, an exact search. An inner index that must be trained is trained through
        the outer one, by plain rows.

    Returns
    -------
    faiss.IndexPreTransform
        ``add`` and ``search`` take rows of the form's features in float32; distances are squared,
        as FAISS has them. It keeps `inner`, and ``faiss.write_index`` writes both.

    Notes
    -----
    It needs the package faiss: ``pip install 'samewise[search]'``. FAISS works in float32, also for
    a form in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise import Mahalanobis
    >>> from samewise.search import to_faiss
    >>> index = to_faiss(Mahalanobis.from_components([[2.0, 0.0]]))  # doctest: +SKIP
    >>> index.add(np.float32([[0, 0], [1, 9]]))  # doctest: +SKIP
    >>> index.search(np.float32([[0.9, 0]]), 1)[1]  # doctest: +SKIP
    array([[1]])
    """
    if not isinstance(form, Mahalanobis):
        raise InvalidInputError(
            f"to_faiss needs a Mahalanobis distance, whose map is one matrix. Got a "
            f"{type(form).__name__}; index rows that it has mapped (embed) instead."
        )
    try:
        faiss = import_module("faiss")
    except ImportError as error:
        raise ImportError(
            "A FAISS index needs the package faiss: pip install 'samewise[search]'."
        ) from error
    r, d = form.components.shape
    inner = faiss.IndexFlatL2(r) if inner is None else inner
    if inner.d != r or inner.metric_type != faiss.METRIC_L2:
        raise InvalidInputError(
            f"The inner index must be of {r} dimensions, as many as the form maps to, under the L2 "
            f"metric. Got {inner.d} dimensions and the metric {inner.metric_type}."
        )
    if inner.ntotal:
        raise InvalidInputError(
            f"The inner index must be empty, since rows are mapped as they are added. Got one of "
            f"{inner.ntotal} rows."
        )
    weight = np.ascontiguousarray(form.components, dtype=np.float32)
    if not np.isfinite(weight).all():
        raise InvalidInputError(
            "The form has values that overflow float32, in which FAISS works. Scale the features."
        )
    linear = faiss.LinearTransform(d, r, False)
    faiss.copy_array_to_vector(weight.ravel(), linear.A)
    linear.is_trained = True
    # Its Python class keeps what its pointers point to.
    return faiss.IndexPreTransform(linear, inner)
