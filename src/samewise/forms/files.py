"""The file of a form."""

from __future__ import annotations

import os
from typing import Any

from samewise._typing import Array
from samewise.exceptions import InvalidInputError
from samewise.files import container
from samewise.files.state import FLOATS, Saved, State
from samewise.forms.form import KINDS, Form

__all__ = ["form_of", "form_state", "load", "restored_form", "save_form"]


def save_form(form: Form, path: str | os.PathLike[str]) -> None:
    """Write a form to a file; an older file at that path is replaced whole or not at all.

    Parameters
    ----------
    form : Form
    path : str or path
        A link is followed; its folder must exist. While it is written, a temporary file lies
        beside it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from samewise import Bilinear
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "metric.samewise"
    ...     save_form(Bilinear([[1.0, 2.0]]), path)
    ...     load(path) == Bilinear([[1.0, 2.0]])
    True
    """
    arrays, params = _savable(form)
    container.write(path, form.kind, arrays, params, owner=type(form).__name__)


def _savable(form: Form) -> tuple[dict[str, Array], dict[str, Any]]:
    arrays, params = form._state()
    owner = type(form).__name__
    for name, value in params.items():
        if callable(value):
            raise InvalidInputError(
                f"A {owner} whose {name} is a callable cannot be saved; use a named {name}, or "
                "keep the arrays and build the form again in your program"
            )
    return arrays, params


def load(path: str | os.PathLike[str]) -> Form:
    """Read a form that `Form.save` wrote; the arrays come back with the same bits.

    Nothing in the file is executed, and a file that is foreign, damaged, newer than this version
    or inconsistent raises a FileFormatError.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Form

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from samewise import Mahalanobis
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "metric.samewise"
    ...     Mahalanobis([[4.0]]).save(path)
    ...     load(path).components
    array([[2.]])
    """
    return form_of(container.read(path))


def form_of(content: container.Content) -> Form:
    """The form that a file holds."""
    if content.kind == container.LEARNER:
        content.refuse("holds a learner, not a form; samewise.load reads it")
    cls = KINDS.get(content.kind)
    if cls is None:
        content.refuse(f"holds a form of the unknown kind {content.kind!r}")
    with content.making(cls.__name__):
        return cls._restore(content.arrays, content.params)


def form_state(form: Form) -> State:
    """A form as a part of something else that is saved."""
    arrays, params = _savable(form)
    shapes = [[name, values.ndim] for name, values in arrays.items()]
    return State(dict(arrays), {"form": form.kind, "params": params, "arrays": shapes})


def restored_form(saved: Saved) -> Form:
    """The form of such a state."""
    cls = KINDS.get(str(saved.value("form")))
    params, shapes = saved.value("params"), saved.value("arrays")
    saved.check(
        cls is not None and isinstance(params, dict) and isinstance(shapes, list),
        "must be a form of a known kind",
    )
    assert cls is not None
    arrays = {}
    for name, ndim in shapes:
        saved.check(type(ndim) is int and 1 <= ndim <= 2, "arrays must have one or two sides")
        arrays[name] = saved.array(name, *[None] * ndim, dtypes=[*FLOATS, "int64"], empty=True)
        # Where a form does not copy what it is restored of, it is frozen nevertheless.
        arrays[name].flags.writeable = False
    return cls._restore(arrays, params)
