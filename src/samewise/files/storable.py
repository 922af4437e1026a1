"""Objects that a file can hold: how they are written, nested in one another, and read again."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np

from samewise.catalog import WHERE
from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.files import container
from samewise.files.state import Saved, State


class Storable:
    """Something that a file can hold.

    Its `state()` is named arrays and JSON values; `restore(saved)` takes each of them by name and
    checks it. A class of samewise registers itself by its name, which files hold; an abstract base
    says ``storable=False`` where it is defined.
    """

    _kinds: ClassVar[dict[str, type[Storable]]] = {}

    def __init_subclass__(cls, *, storable: bool = True, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if storable and cls.__module__.startswith("samewise."):
            Storable._kinds[cls.__name__] = cls

    @abstractmethod
    def state(self) -> State:
        """All that makes this object."""

    @classmethod
    @abstractmethod
    def restore(cls, saved: Saved) -> Self:
        """The object of that state.

        Parameters
        ----------
        saved : Saved
            The state, read from a file.

        Returns
        -------
        Storable
            The restored object.
        """

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write this object to a file that `samewise.load` reads.

        The loaded object equals this one bit for bit. A learner or a filter continues exactly
        where this one stopped.

        Parameters
        ----------
        path : str or path
            An existing file is replaced as a whole or not at all. A link is followed, and the
            folder must exist. While the file is written, a temporary file lies beside it.

        Notes
        -----
        No pickle: a file is data, checked when it is read. What is given as a callable, or as an
        object of a class that samewise does not know, cannot be saved.
        """
        state = stored(self)
        name = state.values.pop("class")
        container.write(path, name, state.arrays, state.values, owner=name)


def stored(part: Storable) -> State:
    """The state of an object with the name of its class, to nest it in another state.

    Examples
    --------
    >>> from samewise.forms import Bilinear
    >>> stored(Bilinear([[1.0, 2.0]])).values
    {'class': 'Bilinear'}
    """
    name = type(part).__name__
    if Storable._kinds.get(name) is not type(part):
        raise InvalidInputError(
            f"{name} is a class of your own, which a file cannot name. Save an object of a class "
            "of samewise instead, such as the metric_ of a learner."
        )
    state = part.state()
    refuse_callables(state.values, name)
    return State(state.arrays, {"class": name, **_plain(state.values)})


def restored(saved: Saved, *families: type) -> Any:
    """The object that `stored` described; its class must belong to one of the families.

    Examples
    --------
    >>> from samewise.forms import Bilinear, Form
    >>> state = stored(Bilinear([[1.0, 2.0]]))
    >>> restored(Saved(state.arrays, state.values), Form)
    Bilinear(shape=(1, 2))
    """
    name = saved.value("class")
    cls = _kind(name)
    saved.check(
        cls is not None and issubclass(cls, families),
        f"class {name!r} is not one of the kind that belongs here",
    )
    assert cls is not None
    return cls.restore(saved)


def made(content: container.Content, *families: type, wanted: str = "object") -> Any:
    """The object of a file that was read; `wanted` names the families in messages."""
    cls = _kind(content.kind)
    if cls is None:
        container.refuse(content.path, f"holds an object of the unknown class {content.kind!r}")
    if not issubclass(cls, families or (Storable,)):
        what = f"holds a {content.kind}, not a {wanted}; samewise.load reads it"
        container.refuse(content.path, what)
    saved = Saved(content.arrays, content.params)
    try:
        found = cls.restore(saved)
        saved.finish()
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise FileFormatError(
            f"{content.path} holds arrays or parameters that do not make a {content.kind}: "
            f"{str(error).rstrip('.')}."
        ) from error
    return found


def _kind(name: Any) -> type[Storable] | None:
    """The class of that name. A public one is imported, which makes it known."""
    if not isinstance(name, str):
        return None
    if name in WHERE:
        import_module(WHERE[name])
    return Storable._kinds.get(name)


def refuse_callables(values: Mapping[str, Any], owner: str) -> None:
    """Refuse to store what a file cannot hold: code."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            refuse_callables(value, owner)
        elif callable(value):
            raise InvalidInputError(
                f"A {owner} whose {name} is a callable cannot be saved. Use a named {name}, or "
                "set it to None if that is possible."
            )


def _plain(value: Any) -> Any:
    """Values of NumPy's own types as Python's, which JSON knows."""
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value.item() if isinstance(value, np.generic) else value
