"""metric-learn's errors, which are samewise's too."""

from __future__ import annotations

from numpy.linalg import LinAlgError

from samewise.exceptions import InvalidInputError, NotPSDError

__all__ = ["NonPSDError", "PreprocessorError"]


class PreprocessorError(InvalidInputError):
    """A preprocessor failed, or gave no points."""


class NonPSDError(NotPSDError, LinAlgError):
    """A prior or start that must be positive (semi-)definite is not."""
