"""The errors and warnings of samewise.

SamewiseError
├── InvalidInputError (ValueError)      what was handed in cannot be used
│   ├── NotPSDError                     a matrix that must be positive semi-definite is not
│   └── DegenerateInputError            the value is undefined there (a zero vector has no cosine)
├── FileFormatError (ValueError)        a file is not a samewise file, is damaged, or is too new
├── TooLargeError (MemoryError)         the result would not reasonably fit in memory
└── DatasetNotFoundError (FileNotFoundError)

SamewiseWarning (UserWarning)           something worth knowing, with a remedy
└── NothingGainedWarning                what was learned is no better than the plain metric
"""

from __future__ import annotations

__all__ = [
    "DatasetNotFoundError",
    "DegenerateInputError",
    "FileFormatError",
    "InvalidInputError",
    "NotPSDError",
    "NothingGainedWarning",
    "SamewiseError",
    "SamewiseWarning",
    "TooLargeError",
]


class SamewiseError(Exception):
    """Base of every error that samewise raises on purpose."""


class InvalidInputError(SamewiseError, ValueError):
    """What was handed in cannot be used; the message says what to do."""


class NotPSDError(InvalidInputError):
    """A matrix that must be symmetric positive semi-definite is not."""


class DegenerateInputError(InvalidInputError):
    """The wanted value is undefined for this input."""


class FileFormatError(SamewiseError, ValueError):
    """A file is foreign, damaged, or written by a newer version."""


class TooLargeError(SamewiseError, MemoryError):
    """The result would not reasonably fit in memory."""


class DatasetNotFoundError(SamewiseError, FileNotFoundError):
    """A named data set is not on this machine."""


class SamewiseWarning(UserWarning):
    """Something worth knowing about a run, with a remedy."""


class NothingGainedWarning(SamewiseWarning):
    """What was learned errs no less, on rows held out, than the plain distance or cosine."""
