"""Objects that introduce themselves: a few lines as text, a small table in a notebook."""

from __future__ import annotations

from abc import abstractmethod
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEADING = 0.01
"""A direction counts if its eigenvalue is above this part of the largest."""


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
        return table(type(self).__name__, self._card())


def table(caption: str, lines: list[tuple[str, str]]) -> str:
    """Names and texts as a small table of a notebook.

    Examples
    --------
    >>> table("Form", [("rank", "<3")]).endswith(">&lt;3</td></tr></table>")
    True
    """
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(text)}</td></tr>'
        for name, text in lines
    )
    return f"<table><caption>{caption}</caption>{rows}</table>"


def rows_of(n: int, d: int) -> str:
    """The size of a matrix in words.

    Examples
    --------
    >>> rows_of(1000, 64)
    '1,000 rows of 64 features'
    """
    return f"{n:,} rows of {d:,} features"


BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: NDArray[Any], most: int = 32) -> str:
    """Bars as high as numbers from 0 on; of more than `most`, the mean of each run of neighbors.

    Examples
    --------
    >>> sparkline(np.array([4.0, 2.0, 0.0]))
    '█▅▁'
    """
    parts = np.array_split(values, min(len(values), most))
    means = np.array([part.mean() for part in parts])
    largest = means.max(initial=0.0)
    if not largest > 0:
        return BARS[0] * len(means)
    return "".join(BARS[round(float(m / largest) * (len(BARS) - 1))] for m in means)


def spectrum_lines(values: NDArray[Any] | None) -> list[tuple[str, str]]:
    """What a card says of eigenvalues or singular values, largest first."""
    if values is None or not len(values):
        return []
    leading = int(np.count_nonzero(values > LEADING * values.max(initial=0.0)))
    said = f"{leading} of {len(values)} (above {100 * LEADING:g} % of the largest)"
    return [("spectrum", sparkline(values)), ("effective rank", said)]


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
