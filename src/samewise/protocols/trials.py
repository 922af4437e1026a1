"""One learner by its name: made, learned on some rows and judged on others."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise import learners
from samewise.catalog import BY_COMMAND
from samewise.exceptions import InvalidInputError
from samewise.kernels.compile_clock import CLOCK
from samewise.protocols.measuring import knn_correct
from samewise.protocols.reduction import reduction_for
from samewise.protocols.row_splits import Parts


@dataclass(frozen=True, eq=False)
class Trial:
    """One learner with its parameters, learned on one part and judged on another.

    Attributes
    ----------
    name : str
        Of the learner.
    params : dict
        As far as they differ from those of `make_learner`.
    error : float
        k-NN error on the part it is judged by; NaN if it refused the data.
    seconds : float
        Wall time of learning, without what compiling takes at first use.
    refused : str
        Why it could not learn, if it could not.
    correct : array of booleans of shape (n_judged,)
        Which rows were decided rightly.
    memory : int or None
        Bytes: the most that the process held at once until it had learned, with data and
        libraries. None where the system does not tell.
    """

    name: str
    params: dict[str, Any]
    error: float
    seconds: float
    refused: str = ""
    correct: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, bool), repr=False)
    memory: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """The trial in plain values, without its single decisions."""
        found = {
            "learner": self.name,
            "params": self.params,
            "error": self.error,
            "seconds": self.seconds,
        }
        return found | ({"refused": self.refused} if self.refused else {})


def make_learner(
    name: str, params: Mapping[str, Any] | None = None, random_state: Any = None
) -> Any:
    """A learner by its name.

    Parameters
    ----------
    name : str
        One of those in `samewise.catalog.BY_COMMAND`.
    params : dict, optional
        Parameters to set.
    random_state : int, RandomState instance or None
        For learners that draw.

    Returns
    -------
    estimator
        Not fitted.

    Examples
    --------
    >>> from samewise.protocols import make_learner
    >>> make_learner("lmnn", {"n_neighbors": 1})
    LMNN(n_neighbors=1)
    """
    if name not in BY_COMMAND:
        near = difflib.get_close_matches(name.lower(), BY_COMMAND, n=1)
        raise InvalidInputError(
            f"There is no learner {name!r}{f'; did you mean {near[0]!r}?' if near else '.'} "
            f"There are {', '.join(BY_COMMAND)}."
        )
    entry = BY_COMMAND[name]
    learner = getattr(learners, entry.name)(**entry.settings)
    known = learner.get_params()
    for key in params or {}:
        if key not in known:
            rest = f"; it has {', '.join(sorted(known))}." if known else "; it has none."
            raise InvalidInputError(f"The learner {name!r} has no parameter {key!r}{rest}")
    if "random_state" in known and "random_state" not in (params or {}):
        learner.set_params(random_state=random_state)
    return learner.set_params(**(params or {}))


def try_learner(
    name: str, params: dict[str, Any], parts: Parts, random_state: Any, n_neighbors: int = 3
) -> Trial:
    """Learn from the first part, and judge by k-NN on the second."""
    X, y = parts[:2]
    learner = make_learner(name, params, random_state)
    start = CLOCK.now()
    try:
        reduction = reduction_for(learner, X)
        form = reduction.lift(learner.fit(reduction.rows(X), y).metric_)
        seconds, memory = CLOCK.now() - start, _peak()
        correct = knn_correct(form, *parts, n_neighbors)
    # A parameter out of its range is a ValueError of scikit-learn's.
    except (ValueError, MemoryError) as error:
        spent = CLOCK.now() - start
        return Trial(name, params, np.nan, spent, str(error), memory=_peak())
    error_rate = float(np.mean(~correct))
    return Trial(name, params, error_rate, seconds, correct=correct, memory=memory)


def _peak() -> int | None:
    """The most bytes this process held at once; None where the system does not tell."""
    try:
        # What getrusage says on Linux includes what the parent held when it started this process.
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    except (OSError, IndexError):
        pass
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
