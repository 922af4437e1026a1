"""How a call may end: with a finite result, or refused with a sentence. All else is a defect."""

from __future__ import annotations

import faulthandler
import os
import sys
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

import samewise
from samewise.exceptions import SamewiseError, SamewiseWarning
from samewise.forms import Form

FUZZ = os.environ.get("SAMEWISE_FUZZ")
"""The folder in which a long run keeps its notes."""
HANG = 600
"""Seconds after which a call of a long run counts as hanging: on a busy machine, the first call may
compile for minutes."""
_hanging = open(Path(FUZZ, "hanging"), "w") if FUZZ else None

OURS, THEIRS = (str(Path(package.__file__).parent) for package in (samewise, sklearn))
EXPECTED = (SamewiseWarning, ConvergenceWarning, DataConversionWarning)

counts: Counter[tuple[str, str]] = Counter()
"""How often a property was tried, and with which outcome."""


class Refusal(NamedTuple):
    """A call that was refused."""

    error: Exception


def attempt(call, *shown):
    """What a call returns, or its Refusal; `shown` is noted, in case the interpreter dies."""
    name = os.environ["PYTEST_CURRENT_TEST"].split("::")[-1].split(" (")[0]
    if FUZZ:
        Path(FUZZ, "last").write_text(f"{name}\n{shown!r}", errors="backslashreplace")
        faulthandler.dump_traceback_later(HANG, exit=True, file=_hanging)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = _warned
        try:
            result = call()
        except (SamewiseError, ValueError, TypeError) as error:
            counts[name, "refused"] += 1
            check_sentence(error)
            return Refusal(error)
        except MemoryError as error:
            # NumPy's own sentence, of an array that was asked for and is larger than the machine.
            if not str(error).startswith("Unable to allocate"):
                raise
            counts[name, "refused"] += 1
            return Refusal(error)
        finally:
            if FUZZ:
                faulthandler.cancel_dump_traceback_later()
    counts[name, "done"] += 1
    return result


def _warned(message, category, *where):
    """A warning is a defect, unless it is given on purpose, or set off within scikit-learn."""
    if issubclass(category, EXPECTED):
        return
    frame = sys._getframe(1)
    while not frame.f_code.co_filename.startswith(OURS):
        if frame.f_code.co_filename.startswith(THEIRS):
            return
        frame = frame.f_back
    raise AssertionError(f"{category.__name__}: {message}")


def check_sentence(error):
    """Fail unless an error was raised on purpose, here or in scikit-learn, and says something."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    ours = isinstance(error, SamewiseError)
    on_purpose = frame.line.startswith("raise") and frame.filename.startswith(OURS)
    # scikit-learn lets NumPy say why something is no array of numbers.
    assert ours or on_purpose or frame.filename.startswith(THEIRS), f"a raw error: {error!r}"
    text = str(error)
    assert text and (not ours or text.endswith(".")), f"not a sentence: {error!r}"


def check_finite(value):
    """Fail unless all numbers of a result are finite."""
    if isinstance(value, Form):
        state = value.state()
        value = [*state.arrays.values(), *state.values.values()]
    if isinstance(value, list | tuple | dict):
        for each in value.values() if isinstance(value, dict) else value:
            check_finite(each)
        return
    value = value.data if sp.issparse(value) else np.asarray(value)
    if value.dtype.kind in "fc":
        assert np.isfinite(value).all(), value


def bits(value):
    """The bits of arrays and of all that holds arrays, to see whether anything changed."""
    if sp.issparse(value):
        return tuple(bits(value.__dict__[part]) for part in ("data", "indices", "indptr"))
    if isinstance(value, np.ndarray):
        return (
            value.dtype.str,
            value.shape,
            repr(value) if value.dtype.hasobject else value.tobytes(),
        )
    if isinstance(value, list | tuple):
        return tuple(map(bits, value))
    if isinstance(value, np.random.RandomState):
        return repr(value.get_state())
    return repr(value)


def saved(stored, folder):
    """The bytes of its file."""
    path = Path(folder, "file")
    stored.save(path)
    return path.read_bytes()
