"""What was learned, or the plain metric: the better of both on a validation part."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Matrix
from samewise.exceptions import InvalidInputError, NothingGainedWarning
from samewise.forms import Form
from samewise.protocols.choice import Choice
from samewise.protocols.learner_comparison import BASELINES
from samewise.protocols.row_splits import Parts, learn_and_judge
from samewise.protocols.trials import Trial, make_learner, try_learner
from samewise.scores import Gain

VALIDATION, MAX_ROWS = 0.25, 3000
"""The part to judge by, and the most rows: those of `choose_learner`, whose trials are reused."""

LEAST = 10
"""Of fewer rows to judge by, nothing is concluded."""


@dataclass(frozen=True, eq=False)
class Kept:
    """The metric that is kept.

    Attributes
    ----------
    name : str
        Of the learner, which is "euclidean" or "cosine" where nothing learned is kept.
    params : dict
        Its parameters.
    form : Form
        What it learned from all rows.
    gain : Gain or None
        Validation errors of the plain metric and of what was learned; None if not compared.
    """

    name: str
    params: dict[str, Any]
    form: Form
    gain: Gain | None = None

    @property
    def reason(self) -> str:
        """Which one is kept and why, in a sentence; empty if nothing was compared."""
        if self.gain is None:
            return ""
        though = ", though it gained nothing" if self.gain.n_better == self.gain.n_worse else ""
        return f"{self.name} is kept{though}: {self.gain.sentence}."

    def warn(self) -> None:
        """Say if nothing was gained; for `fit_model` to call."""
        if self.gain is not None and not self.gain.gained:
            other = (
                "" if self.name == self.gain.after else " keep='learned' keeps what was learned."
            )
            warnings.warn(
                f"{self.reason}{other} Try to tune {self.gain.after}, another learner, or 'auto'.",
                NothingGainedWarning,
                stacklevel=3,
            )


def better_of(choice: Choice, form: Form, X: Matrix, y: NDArray[Any], random_state: Any) -> Kept:
    """The form of the chosen learner, or the plain metric if that errs less in validation.

    The learner learns once more, from a part of the rows, and is judged by 3-NN on the others
    beside the Euclidean distance and the cosine. Of equal errors, what was asked for is kept. It is
    also kept where it cannot be judged: if there are too few rows, or it refuses a part of them.
    """
    asked = Kept(choice.name, choice.params, form)
    if choice.name in BASELINES:
        return asked
    try:
        parts = learn_and_judge(X, y, VALIDATION, MAX_ROWS, random_state)
    except InvalidInputError:
        # Too few rows to set any aside.
        return asked
    if len(parts[3]) < LEAST:
        return asked
    trial = _trial(choice, parts, random_state)
    plain = [try_learner(name, {}, parts, random_state) for name in BASELINES]
    plain = [tried for tried in plain if not tried.refused]
    if trial.refused or not plain:
        return asked
    best = min(plain, key=lambda tried: tried.error)
    gain = Gain.of(best.name, best.correct, trial.name, trial.correct)
    if gain.n_worse > gain.n_better:
        return Kept(best.name, {}, make_learner(best.name).fit(X).metric_, gain)
    return replace(asked, gain=gain)


def _trial(choice: Choice, parts: Parts, random_state: Any) -> Trial:
    """The chosen learner on these parts; tried already, if they are those of the choice."""
    if isinstance(random_state, int | np.integer):
        for tried in choice.table:
            if (tried.name, tried.params) == (choice.name, choice.params):
                return tried
    return try_learner(choice.name, choice.params, parts, random_state)
