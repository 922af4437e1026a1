"""Several learners on the same data: error, significance, time and memory."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samewise._cards import Card, call, share
from samewise._typing import Matrix
from samewise.catalog import BY_COMMAND
from samewise.exceptions import SamewiseWarning
from samewise.model import standardized
from samewise.protocols.learner_process import ProcessLimits, awaited, learn_alone, side_by_side
from samewise.protocols.row_splits import held_rows
from samewise.protocols.scaling import chosen_scaling
from samewise.protocols.trials import Trial, make_learner
from samewise.scores import SignTest, s_test
from samewise.supervision.supervision_checks import labeled_rows

BASELINES = ("euclidean", "cosine")
"""What every learner is compared with."""


@dataclass(frozen=True, eq=False)
class Compared(Trial):
    """One line of `compare`: a `Trial`, and how it compares.

    Attributes
    ----------
    tests : dict of str to SignTest
        For each baseline, the s-test of this learner against it.
    """

    tests: dict[str, SignTest] = field(default_factory=dict)

    @property
    def marks(self) -> dict[str, str]:
        """For each baseline the mark of the s-test: "≫", ">", "=", "<" or "≪"; "≫" is a gain."""
        return {against: test.mark for against, test in self.tests.items()}


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Card):
    """Result of `compare`.

    Attributes
    ----------
    lines : list of Compared
        The Euclidean distance, the cosine, then the learners in the order they were given.
    n_learned, n_judged : int
        Numbers of rows that were learned from, and that learners were judged by.
    standardized : bool
        Whether columns were standardized first.
    interrupted : bool
        Whether Ctrl-C ended the comparison before all lines were known.
    """

    lines: list[Compared]
    n_learned: int
    n_judged: int
    standardized: bool
    interrupted: bool = False

    def _card(self) -> list[tuple[str, str]]:
        rows = f"{self.n_learned:,} rows learned from, {self.n_judged:,} judged by"
        lines = [("rows", rows + (", standardized" if self.standardized else ""))]
        for line in self.lines:
            tests = [f"{test.verdict} against {name}" for name, test in line.tests.items()]
            known = f"{share(line.error)} in {line.seconds:.2f} s"
            text = line.refused or "; ".join([known, *tests])
            lines.append((call(line.name, line.params), text))
        return [*lines, ("in short", self.best())]

    def best(self) -> str:
        """The learner with the least error, and how it compares, in a sentence."""
        known = [line for line in self.lines if not math.isnan(line.error)]
        plain = [line for line in known if line.name in BASELINES]
        sound = [line for line in known if line.name not in BASELINES]
        if not sound or not plain:
            return "There is nothing to compare yet."
        best, base = (min(some, key=lambda line: line.error) for some in (sound, plain))
        test = best.tests[base.name]
        against = f"against {base.name}: {test.verdict}"
        if best.error < base.error:
            return f"Best: {best.name} ({against})."
        return (
            f"Nothing was gained: no learner errs less than {base.name} here, so keep {base.name} "
            f"({best.name} {against})."
        )

    @property
    def kept(self) -> str:
        """The name of what errs least; of equal ones the first, and so the plain ones."""
        known = [line for line in self.lines if not math.isnan(line.error)]
        return min(known, key=lambda line: line.error).name if known else ""


def compare(
    X: Any,
    y: ArrayLike,
    learners: Sequence[str] = ("lda", "lmnn", "gcosla"),
    *,
    test: float | ArrayLike = 0.3,
    scale: str = "auto",
    params: Mapping[str, Mapping[str, Any]] | None = None,
    n_neighbors: int = 3,
    random_state: Any = 0,
    n_jobs: int = 1,
    time_limit: float | None = None,
    watch: Callable[[str], object] | None = None,
) -> Comparison:
    """Compare learners by k-NN error on a test part, with significance, time and memory.

    Each learner learns in a process of its own. Learners that are slow in many features learn in
    the leading principal directions.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        Rows to learn from and to judge by.
    y : array of shape (n,)
        Their labels.
    learners : sequence of str, default=("lda", "lmnn", "gcosla")
        Names that `samewise.protocols.make_learner` knows. The Euclidean distance and the cosine
        are always compared too.
    test : float or array of booleans of shape (n,), default=0.3
        The part of the rows to judge by, or which rows these are.
    scale : {"auto", "standard", "none"}, default="auto"
        "standard" standardizes the columns. "auto" does so for dense columns whose spreads differ
        more than tenfold, unless 3-NN is clearly better without.
    params : dict of dicts, default=None
        Parameters of some learners, by name.
    n_neighbors : int, default=3
        Neighbors that decide.
    random_state : int or None, default=0
        Seed for reproducible splits and learners.
    n_jobs : int, default=1
        How many learn at the same time, each with its share of the processors. Only with 1 are
        seconds those of a learner that has the machine to itself.
    time_limit : float, default=None
        Seconds after which a learner is stopped, and counts as one that refused.
    watch : callable, default=None
        Called with a line of text about what is done, and every ten seconds about what is not.

    Returns
    -------
    Comparison
        One line for each learner. After Ctrl-C, it has what is known.

    See Also
    --------
    fit_model : Learns with one of them, or chooses.
    samewise.protocols.choose_learner : A quicker choice, by validation.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from samewise import compare
    >>> found = compare(*load_iris(return_X_y=True), learners=[])
    >>> [(line.name, round(line.error, 3)) for line in found.lines]
    [('euclidean', 0.022), ('cosine', 0.0)]
    """
    rows, y = labeled_rows(X, y)
    held = held_rows(y, test, random_state)
    scaling = chosen_scaling(rows[~held], y[~held], scale)
    rows = rows if scaling is None else standardized(rows, *scaling)
    parts = rows[~held], y[~held], rows[held], y[held]
    lines: list[Compared] = []
    interrupted = False
    for name in learners:
        if name in BY_COMMAND and BY_COMMAND[name].record:
            warnings.warn(
                f"{name} is worse than no learning on more than one set in ten: "
                f"{BY_COMMAND[name].record}",
                SamewiseWarning,
                stacklevel=2,
            )
    each = compare_each(
        learners,
        *parts,
        params=params,
        n_neighbors=n_neighbors,
        random_state=random_state,
        n_jobs=n_jobs,
        time_limit=time_limit,
        watch=watch,
    )
    try:
        for line in each:
            lines.append(line)
            if watch is not None:
                watch(f"{line.name}: {line.refused or _in_short(line)}")
    except KeyboardInterrupt:
        interrupted = True
    return Comparison(lines, len(parts[1]), len(parts[3]), scaling is not None, interrupted)


def _in_short(line: Compared) -> str:
    return f"{100 * line.error:.2f} % in {line.seconds:.2f} s"


def compare_each(
    names: Sequence[str],
    X: Matrix,
    y: ArrayLike,
    X_test: Matrix,
    y_test: ArrayLike,
    *,
    params: Mapping[str, Mapping[str, Any]] | None = None,
    n_neighbors: int = 3,
    random_state: Any = 0,
    n_jobs: int = 1,
    time_limit: float | None = None,
    watch: Callable[[str], object] | None = None,
) -> Iterator[Compared]:
    """Learn with each learner in a process of its own; the baselines come first.

    Learners that are slow in many features learn in the directions of `reduction_for`.

    Parameters
    ----------
    names : sequence of str
        Learners, as `make_learner` knows them.
    X : array or CSR matrix of shape (n, d)
        Training rows, scaled as they shall be.
    y : array of shape (n,)
        Their labels.
    X_test : array or CSR matrix of shape (n_test, d)
        Test rows.
    y_test : array of shape (n_test,)
        Their labels.
    params : dict of dicts, default=None
        Parameters of some learners, by name.
    n_neighbors : int, default=3
        Neighbors that decide.
    random_state : int or None, default=0
        Seed for reproducible learners.
    n_jobs : int, default=1
        How many learn at the same time, each with its share of the processors.
    time_limit : float, default=None
        Seconds after which a learner is stopped, and counts as one that refused.
    watch : callable, default=None
        Called every ten seconds with a line of text about what is not done.

    Yields
    ------
    Compared
        As soon as it is known, so that a run that is stopped has its first lines.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from samewise.protocols import compare_each
    >>> X, y = load_iris(return_X_y=True)
    >>> lines = list(compare_each([], X[::2], y[::2], X[1::2], y[1::2]))
    >>> [(line.name, round(line.error, 3)) for line in lines]
    [('euclidean', 0.04), ('cosine', 0.04)]
    """
    params = params or {}
    wanted = [*BASELINES, *dict.fromkeys(name for name in names if name not in BASELINES)]
    for name in wanted:
        # Refused before the first one learns, not after an hour.
        make_learner(name, params.get(name))
    parts = X, np.asarray(y), X_test, np.asarray(y_test)
    baselines: dict[str, NDArray[np.bool_]] = {}
    limits = ProcessLimits.checked(n_jobs, time_limit)
    with side_by_side(n_jobs, limits) as pool:
        futures = [
            pool.submit(
                learn_alone,
                name,
                dict(params.get(name, {})),
                parts,
                random_state,
                n_neighbors,
                limits=limits,
            )
            for name in wanted
        ]
        for name, future in zip(wanted, futures, strict=True):
            found = awaited(name, future, watch)
            if name in BASELINES:
                baselines[name] = found.correct
            tests = {
                against: s_test(found.correct, correct)
                for against, correct in baselines.items()
                if against != name and not found.refused and found.correct.shape == correct.shape
            }
            yield Compared(**vars(found), tests=tests)
