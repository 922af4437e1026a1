"""Objects that introduce themselves: a few lines as text, a small table in a notebook."""

from __future__ import annotations

from abc import abstractmethod
from html import escape


class Card:
    """A result whose representation is one screen at most, without raw arrays."""

    @abstractmethod
    def _card(self) -> list[tuple[str, str]]:
        """What to show: names and texts."""

    def __repr__(self) -> str:
        lines = self._card()
        width = max((len(name) for name, _ in lines), default=0)
        return "\n".join([type(self).__name__, *(f"  {n:{width}}  {text}" for n, text in lines)])

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th style="text-align:left">{escape(name)}</th>'
            f'<td style="text-align:left">{escape(text)}</td></tr>'
            for name, text in self._card()
        )
        return f"<table><caption>{type(self).__name__}</caption>{rows}</table>"


def share(value: float) -> str:
    """A share in percent.

    Examples
    --------
    >>> share(0.0278)
    '2.78 %'
    """
    return f"{100 * value:.2f} %"


def some(names: list[str], most: int = 6) -> str:
    """Names, at most so many.

    Examples
    --------
    >>> some(["a", "b", "c"], 2)
    'a, b, …'
    """
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def call(name: str, params: dict[str, object]) -> str:
    """A name with its parameters.

    Examples
    --------
    >>> call("lmnn", {"n_neighbors": 5})
    'lmnn(n_neighbors=5)'
    """
    return name + (f"({', '.join(f'{k}={v!r}' for k, v in params.items())})" if params else "")
