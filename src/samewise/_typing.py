"""Array aliases shared by the whole library."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.floating[Any]]
"""A dense array of float32 or float64."""

Matrix: TypeAlias = Any
"""A dense (n, d) array or a SciPy CSR matrix or array of the same shape."""

Indices: TypeAlias = NDArray[np.integer[Any]]
"""Row numbers."""

Signs: TypeAlias = NDArray[np.int8]
"""+1 for similar, −1 for dissimilar."""
