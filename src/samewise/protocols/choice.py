"""Which learner, and with which parameters: judged on rows set aside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from samewise._cards import Card, call, share
from samewise._typing import Matrix
from samewise.catalog import BY_COMMAND
from samewise.exceptions import InvalidInputError
from samewise.protocols.row_splits import learn_and_judge
from samewise.protocols.trials import Trial, make_learner, try_learner
from samewise.scores import s_test
from samewise.supervision.supervision_checks import labeled_rows

_DISTANCES, _COSINES = ("lda", "lmnn"), ("gcosla", "sila")

Watch = Callable[[str, int, int], object]
"""Called with what begins: its name, how many are done, how many there are."""


@dataclass(frozen=True, eq=False, repr=False)
class Choice(Card):
    """Result of `choose_learner` or `tune_learner`.

    Attributes
    ----------
    name : str
        Of the learner.
    params : dict
        What was chosen for it.
    learner : estimator
        Not fitted.
    reason : str
        In a sentence or two.
    table : list of Trial
        All that were tried, in that order.
    """

    name: str
    params: dict[str, Any]
    learner: Any
    reason: str
    table: list[Trial]

    def _card(self) -> list[tuple[str, str]]:
        tried = [(call(t.name, t.params), t.refused or share(t.error)) for t in self.table]
        return [("chosen", call(self.name, self.params)), ("why", self.reason), *tried]


def choose_learner(
    X: Matrix,
    y: ArrayLike,
    *,
    validation: float = 0.25,
    max_rows: int = 3000,
    random_state: Any = 0,
    watch: Watch | None = None,
) -> Choice:
    """Choose a learner by what is already good without one.

    3-NN under the Euclidean distance is compared with 3-NN under the cosine, on a validation part.
    If the distance is better, learners of distances (LDA, LMNN) are tried and one of similarities
    (gCosLA); if the cosine is, learners of similarities (gCosLA, SiLA) and one of distances
    (LMNN); if neither is, all of them. The least error on the validation part wins, and of equal
    ones the simplest, which may be no learning at all.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        Examples, one row each.
    y : array of shape (n,)
        Class labels.
    validation : float in (0, 1), default=0.25
        Part of each class that the learners are judged on.
    max_rows : int, default=3000
        Of more rows, so many are sampled for the comparison, from each class in proportion.
    random_state : int, RandomState instance or None, default=0
        Seed or generator of every random choice. Pass an int for reproducible output.
    watch : callable, default=None
        Called when a learner begins, with its name, how many are done, and how many there are.

    Returns
    -------
    Choice
        The learner, its parameters, the reason, and what was tried.

    References
    ----------
    Qamar, *Generalized Cosine and Similarity Metrics*, thesis, Grenoble 2010, section 5.4: on some
    collections the cosine is significantly better than the Euclidean distance before anything is
    learned, on others it is the other way round.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from samewise import choose_learner
    >>> X, y = load_wine(return_X_y=True)
    >>> choice = choose_learner((X - X.mean(axis=0)) / X.std(axis=0), y)
    >>> [trial.name for trial in choice.table][:3]
    ['euclidean', 'cosine', 'lda']
    """
    parts = learn_and_judge(*labeled_rows(X, y), validation, max_rows, random_state)
    say = watch or (lambda name, done, total: None)
    table: list[Trial] = []

    def attempt(names: Iterable[str], total: int) -> None:
        for name in names:
            say(name, len(table), total)
            table.append(try_learner(name, {}, parts, random_state))

    attempt(("euclidean", "cosine"), 5)
    euclidean, cosine = table
    test = s_test(euclidean.correct, cosine.correct)
    if test.mark == "=":
        names: tuple[str, ...] = (*_DISTANCES, *_COSINES)
        then = "so learners of both kinds were tried"
    elif euclidean.error < cosine.error:
        names = (*_DISTANCES, _COSINES[0])
        then = "so mainly learners of distances were tried"
    else:
        names = (*_COSINES, _DISTANCES[-1])
        then = "so mainly learners of similarities were tried"
    attempt(names, 2 + len(names))
    best = _best(table, "none of the learners that were tried")
    plain = min((euclidean, cosine), key=lambda trial: trial.error)
    which = "" if test.mark == "=" else "the distance is "
    reason = (
        f"On {len(parts[3])} validation rows, 3-NN errs on {_percent(euclidean.error)} by "
        f"Euclidean distance and on {_percent(cosine.error)} by cosine "
        f"({which}{test.verdict}), {then}; "
    )
    learner = make_learner(best.name, random_state=random_state)
    return Choice(best.name, {}, learner, reason + _verdict(best, plain), table)


def tune_learner(
    name: str,
    X: Matrix,
    y: ArrayLike,
    *,
    params: Mapping[str, Any] | None = None,
    grid: Mapping[str, Iterable[Any]] | None = None,
    validation: float = 0.25,
    max_rows: int = 3000,
    random_state: Any = 0,
    watch: Watch | None = None,
) -> Choice:
    """Choose parameters of a learner: a small grid, judged by 3-NN error on a validation part.

    Parameters
    ----------
    name : str
        One of those in `samewise.catalog.BY_COMMAND`.
    X : array or CSR matrix of shape (n, d)
        Examples, one row each.
    y : array of shape (n,)
        Class labels.
    params : dict, default=None
        Parameters that are set for all; they are not varied.
    grid : dict of lists, default=None
        Values to try; by default those of `samewise.catalog`.
    validation : float in (0, 1), default=0.25
        Part of each class that the learners are judged on.
    max_rows : int, default=3000
        Of more rows, so many are sampled for the comparison, from each class in proportion.
    random_state : int, RandomState instance or None, default=0
        Seed or generator of every random choice. Pass an int for reproducible output.
    watch : callable, default=None
        Called when a learner begins, with its name, how many are done, and how many there are.

    Returns
    -------
    Choice
        Of equal errors the first is taken, and before all others what `make_learner` gives.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from samewise.protocols import tune_learner
    >>> choice = tune_learner("lda", *load_iris(return_X_y=True))
    >>> choice.params["shrinkage"] in (0.0, 0.1, 0.5), len(choice.table)
    (True, 3)
    """
    # Imported where it is needed: it loads a large part of scikit-learn.
    from sklearn.model_selection import ParameterGrid

    fixed = dict(params or {})
    default = make_learner(name, fixed).get_params()
    grid = {
        key: list(values)
        for key, values in (BY_COMMAND[name].grid if grid is None else grid).items()
        if key not in fixed
    }
    candidates = list(ParameterGrid(grid))
    # The usual setting first, so that it is kept where nothing is better.
    candidates.sort(key=lambda candidate: any(default[k] != v for k, v in candidate.items()))
    parts = learn_and_judge(*labeled_rows(X, y), validation, max_rows, random_state)
    table: list[Trial] = []
    for candidate in candidates:
        if watch is not None:
            watch(name, len(table), len(candidates))
        table.append(try_learner(name, fixed | candidate, parts, random_state))
    best = _best(table, f"the learner {name!r}")
    if len(table) == 1:
        reason = f"There is nothing to tune in {name}."
    else:
        tried = ", ".join(f"{key} = {'/'.join(map(str, grid[key]))}" for key in grid)
        chosen = ", ".join(f"{key} = {best.params[key]}" for key in grid)
        reason = (
            f"Of {tried}, {chosen} errs least on {len(parts[3])} validation rows: "
            f"{_percent(best.error)}."
        )
    learner = make_learner(name, best.params, random_state)
    return Choice(name, best.params, learner, reason, table)


def _best(table: list[Trial], what: str) -> Trial:
    """The first of those with the least error."""
    sound = [trial for trial in table if not trial.refused]
    if not sound:
        raise InvalidInputError(f"{what} can use these data: {table[-1].refused}")
    order = list(BY_COMMAND)
    return min(sound, key=lambda trial: (trial.error, order.index(trial.name)))


def _verdict(best: Trial, plain: Trial) -> str:
    if best is plain or best.name in ("euclidean", "cosine"):
        return f"none of them errs less than {best.name} without learning, {_percent(best.error)}."
    test = s_test(best.correct, plain.correct)
    return f"{best.name} errs least, {_percent(best.error)} (against {plain.name}: {test.verdict})."


def _percent(error: float) -> str:
    return f"{100 * error:.1f} %"
