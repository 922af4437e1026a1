"""What learning gained: two metrics judged by the same held-out examples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from samewise.scores.significance import s_test, verdict


@dataclass(frozen=True)
class Gain:
    """How a learned metric compares with another one on examples that were not learned from.

    Attributes
    ----------
    before, after : str
        Names of what was compared.
    errors : tuple of float
        k-NN error before and after.
    mark : str
        How `after` compares with `before`: "≫" or "≪" for p ≤ 0.01, ">" or "<" for p ≤ 0.05,
        otherwise "=". "≫" is a gain, "≪" a loss.
    p_value : float
        Of the s-test, exact and two-sided.
    n_better, n_worse : int
        Examples that only `after` decided rightly, and that only `before` did.
    n_judged : int
        Examples that both were judged by.

    Examples
    --------
    >>> gain = Gain.of("euclidean", [1, 0, 0, 0, 0, 0, 0, 1], "lmnn", [1, 1, 1, 1, 1, 1, 1, 0])
    >>> gain.errors, gain.difference, round(gain.standard_error, 3)
    ((0.75, 0.125), 0.625, 0.246)
    >>> gain.verdict
    'no difference shown, p = 0.125'
    """

    before: str
    after: str
    errors: tuple[float, float]
    mark: str
    p_value: float
    n_better: int
    n_worse: int
    n_judged: int

    @classmethod
    def of(
        cls, before: str, correct_before: ArrayLike, after: str, correct_after: ArrayLike
    ) -> Self:
        """The gain of two metrics whose decisions on the same examples are known.

        Parameters
        ----------
        before : str
            Name of what is compared with.
        correct_before : array of booleans of shape (n,)
            Which examples it decided rightly.
        after : str
            Name of what was learned.
        correct_after : array of booleans of shape (n,)
            Which examples that decided rightly.

        Returns
        -------
        Gain
            The errors, and whether the difference is more than chance.
        """
        test = s_test(correct_after, correct_before)
        first, second = np.equal(correct_before, 0), np.equal(correct_after, 0)
        errors = float(first.mean()), float(second.mean())
        found = test.mark, test.p_value, test.n_better, test.n_worse
        return cls(before, after, errors, *found, len(second))

    @property
    def gained(self) -> bool:
        """Whether `after` errs less than `before`, be it by chance or not."""
        return self.n_better > self.n_worse

    @property
    def difference(self) -> float:
        """The error before minus the error after: positive is a gain."""
        return (self.n_better - self.n_worse) / self.n_judged

    @property
    def standard_error(self) -> float:
        """Of the difference: √(b + w − (b − w)²/n)/n, with n_better b and n_worse w of n."""
        better, worse, n = self.n_better, self.n_worse, self.n_judged
        return math.sqrt(better + worse - (better - worse) ** 2 / n) / n

    @property
    def verdict(self) -> str:
        """What the test says, in words: "better", "no difference shown" or "worse", with p."""
        return verdict(self.mark, self.p_value)

    @property
    def sentence(self) -> str:
        """Both errors and the verdict, in words."""
        before, after = (f"{100 * error:.1f} %" for error in self.errors)
        return (
            f"on {self.n_judged:,} validation rows {self.after} errs on {after} and {self.before} "
            f"on {before} ({self.verdict})"
        )
