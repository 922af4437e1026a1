"""The normalizers N(x, x') of a bilinear similarity xᵀAx'/N(x, x').

cosine    ‖x‖‖x'‖
dice      (|x|₁ + |x'|₁)/2
jaccard   |x|₁ + |x'|₁ − xᵀx'

Each is made of one size per row (‖x‖ or |x|₁), which can be computed once, and a way to combine
two sizes.
"""

from __future__ import annotations

import numpy as np

from samewise._typing import Array, Matrix
from samewise.kernels.pairwise import all_dots, row_dots, row_sums, squared_norms

NAMES = ("cosine", "dice", "jaccard")


def sizes(name: str, X: Matrix) -> Array:
    """‖x_i‖ (cosine) or |x_i|₁ (dice, jaccard) for each row i.

    Examples
    --------
    >>> import numpy as np
    >>> sizes("cosine", np.array([[3.0, 4.0]])), sizes("dice", np.array([[3.0, 4.0]]))
    (array([5.]), array([7.]))
    """
    return np.sqrt(squared_norms(X)) if name == "cosine" else row_sums(X)


def combine(name: str, size: Array, other: Array, dots: Array | float = 0.0) -> Array:
    """N from two arrays of sizes that broadcast, and for jaccard the inner products.

    Examples
    --------
    >>> import numpy as np
    >>> combine("jaccard", np.array([2.0]), np.array([3.0]), dots=np.array([1.0]))
    array([4.])
    """
    if name == "cosine":
        return size * other
    if name == "dice":
        return (size + other) / 2
    return (size + other) - dots


def paired(name: str, X: Matrix, Y: Matrix) -> Array:
    """N(x_i, y_i) for each row i.

    Examples
    --------
    >>> import numpy as np
    >>> paired("dice", np.array([[1.0, 1.0]]), np.array([[1.0, 0.0]]))
    array([1.5])
    """
    dots = row_dots(X, Y) if name == "jaccard" else 0.0
    return combine(name, sizes(name, X), sizes(name, Y), dots)


def crossed(name: str, X: Matrix, Y: Matrix) -> Array:
    """N(x_i, y_j) for all i and j.

    Examples
    --------
    >>> import numpy as np
    >>> crossed("jaccard", np.array([[1.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 0.0]]))
    array([[2., 2.]])
    """
    dots = all_dots(X, Y) if name == "jaccard" else 0.0
    return combine(name, sizes(name, X)[:, None], sizes(name, Y), dots)
