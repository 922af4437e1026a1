"""Double cross-validation: parameters chosen on one part, accuracy measured on another."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pickle import PicklingError
from typing import Any

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_X_y
from threadpoolctl import threadpool_limits

from samewise._typing import Indices, Matrix
from samewise.decide import KNNClassifier
from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.files import container
from samewise.forms import Form

__all__ = ["DoubleCV", "double_cross_validation"]

SORTED_AS = {"n_passes": "n_epochs", "step_margin": "beta"}
"""Parameters that were renamed, and the names they are sorted by."""

_RULE = ("n_neighbors", "rule")
_KIND = "double_cross_validation"


@dataclass(frozen=True, eq=False)
class DoubleCV:
    """Result of `double_cross_validation`; "unit" is a fold or, in binary mode, a fold and class.

    Attributes
    ----------
    accuracies : array of shape (n_folds,)
        Of the test part of each fold; in binary mode averaged over the classes.
    params : list of dict, or list of lists of dict
        What was chosen: for each fold or, in binary mode, for each fold and class.
    validation_accuracies : array of shape (n_units, n_candidates)
        NaN for a candidate that could not be used with the data of its fold.
    predictions : array of shape (n,), or of booleans of shape (n, n_classes) in binary mode
        The label of each example when it was in a test part; or whether it was taken for each
        class.
    correct : array of booleans, of the same shape
        Which of these are right: what `samewise.scores.s_test` compares.
    folds : array of shape (n,)
        The fold in which each example was tested.
    classes : array
        The labels.
    """

    accuracies: NDArray[np.float64]
    params: list[Any]
    validation_accuracies: NDArray[np.float64]
    predictions: NDArray[Any]
    correct: NDArray[np.bool_]
    folds: Indices
    classes: NDArray[Any]

    @property
    def mean(self) -> float:
        """The mean accuracy over the folds."""
        return float(self.accuracies.mean())

    @property
    def std(self) -> float:
        """The standard deviation over the folds (with n_folds − 1 in the denominator)."""
        return float(self.accuracies.std(ddof=1))


def double_cross_validation(
    learner: Any,
    X: Matrix,
    y: ArrayLike,
    *,
    grid: Mapping[str, Any] | list[Mapping[str, Any]] | None = None,
    rule: str = "knn",
    mode: str = "multiclass",
    n_folds: int = 5,
    validation: float = 0.2,
    stratify: bool = True,
    refit: bool = False,
    random_state: Any = None,
    n_jobs: int | None = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    verbose: int | bool = False,
) -> DoubleCV:
    """Judge a learner by folds, each with its own choice of parameters.

    Each fold is once the test part (20 % with 5 folds). Of the rest, `validation` is set aside and
    the learner learns from what remains, once for each candidate of the grid. The candidate with
    the best accuracy on the validation part decides about the test part.

    Parameters
    ----------
    learner : learner, Form, None, or classifier
        A learner, a form or None (Euclidean) decides through `KNNClassifier`. A classifier decides
        itself; `rule` is then not used. Preprocessing that is learned goes into a pipeline that
        ends with a classifier. It is cloned, never fitted itself.
    X : array or CSR matrix of shape (n, d)
    y : array of shape (n,)
        Class labels.
    grid : dict of lists, or list of such dicts, optional
        Values to try, of parameters of the learner and of the rule ("n_neighbors", "rule"). A name
        that both have is set in both; "rule__n_neighbors" sets only that of the rule. Unless
        given, ``{"n_neighbors": [1, 3]}``, or nothing for a classifier. Of equally good candidates
        the first is chosen, in the order of `in_order`. One that
        refuses the data of a fold (more neighbors than a class has members) is left out of it.
    rule : {"knn", "sknn"}, default="knn"
        How neighbors decide, see `KNNClassifier`.
    mode : {"multiclass", "binary"}, default="multiclass"
        "binary": one against the rest for each class, learned and chosen apart, on the same folds;
        accuracy is averaged over the classes.
    n_folds : int, default=5
    validation : float in (0, 1), default=0.2
        The validation part of what is not test.
    stratify : bool, default=True
        Deal each class out evenly. Classes smaller than the number of folds are allowed.
    refit : bool, default=False
        Learn again with the chosen parameters on the learning and validation parts together.
    random_state : int, RandomState instance or None
        For the folds, and for learners whose own `random_state` is None. The same number gives the
        same folds to every learner, as the s-test needs.
    n_jobs : int or None, default=1
        Processes, as for joblib; each uses one thread for products.
    checkpoint : path, optional
        A file that is written after each unit. If it exists, the run goes on from there; a file of
        another run, other data or other parameters is refused, and so is a damaged one. Needs an
        integer random_state.
    verbose : bool or int, default=False
        Print a line after each unit, to stderr.

    Returns
    -------
    DoubleCV

    References
    ----------
    Qamar, *Generalized Cosine and Similarity Metrics*, thesis, Grenoble 2010, section 5.3. It does
    not say whether classes were dealt out evenly, nor whether the chosen model was learned again.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from samewise.forms import NormalizedBilinear
    >>> from experiments._double_cv import double_cross_validation
    >>> from samewise.scores import s_test
    >>> X, y = load_iris(return_X_y=True)
    >>> cosine = NormalizedBilinear([[float(i == j) for j in range(4)] for i in range(4)])
    >>> a = double_cross_validation(cosine, X, y, random_state=0)
    >>> b = double_cross_validation(None, X, y, random_state=0)
    >>> a.mean > 0.9, s_test(a.correct, b.correct).mark
    (True, '=')
    """
    X, y = check_X_y(X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    _check_options(len(classes), len(codes), rule, mode, n_folds, validation)
    candidates = _candidates(learner, grid)
    random = check_random_state(random_state)
    folds, parts = _split(codes, n_folds, validation, stratify, random)
    columns = len(classes) if mode == "binary" else 1
    seeds = random.randint(2**31 - 1, size=n_folds * columns)
    state = _State(n_folds * columns, len(candidates), len(codes), columns)
    if checkpoint is not None:
        if not isinstance(random_state, int | np.integer):
            raise InvalidInputError(
                "A run that can be resumed needs an integer random_state, for the same folds. Got "
                f"{random_state!r} instead."
            )
        settings = (mode, n_folds, validation, stratify, refit, rule, int(random_state))
        run = _fingerprint(X, y, learner, candidates, settings)
        if os.path.exists(checkpoint):
            state.read(checkpoint, run)

    def work() -> Iterator[Any]:
        for unit in np.flatnonzero(~state.done):
            fold, column = divmod(int(unit), columns)
            target = codes == column if mode == "binary" else codes
            yield joblib.delayed(_run)(
                unit, learner, rule, candidates, X, target, parts[fold], refit, int(seeds[unit])
            )

    start = time.monotonic()
    finished = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")(work())
    for unit, chosen, scores, predicted in finished:
        fold, column = divmod(int(unit), columns)
        state.take(unit, chosen, scores, parts[fold][2], column, predicted)
        if checkpoint is not None:
            state.write(checkpoint, run)
        if verbose:
            which = f", class {classes[column].item()!r}" if mode == "binary" else ""
            print(
                f"Fold {fold + 1} of {n_folds}{which}: {candidates[chosen]}, validation accuracy "
                f"{scores[chosen]:.4f}; {state.done.sum()} of {state.done.size} done, "
                f"{time.monotonic() - start:.0f} s",
                file=sys.stderr,
            )
    return _result(state, candidates, folds, classes, codes, mode)


def _check_options(
    n_classes: int, n: int, rule: str, mode: str, n_folds: int, validation: float
) -> None:
    if n_classes < 2:
        raise InvalidInputError("y must have labels of at least two classes. Got one class.")
    if rule not in ("knn", "sknn"):
        raise InvalidInputError(f"rule must be 'knn' or 'sknn'. Got {rule!r} instead.")
    if mode not in ("multiclass", "binary"):
        raise InvalidInputError(f"mode must be 'multiclass' or 'binary'. Got {mode!r} instead.")
    if not isinstance(n_folds, int | np.integer) or not 2 <= n_folds <= n:
        raise InvalidInputError(
            f"n_folds must be an integer from 2 to the number of examples, {n}. Got {n_folds!r} "
            "instead."
        )
    if not 0 < validation < 1:
        raise InvalidInputError(f"validation must be between 0 and 1. Got {validation!r} instead.")


def _is_metric(learner: Any) -> bool:
    """Whether there is nothing to learn: a form, or the Euclidean distance."""
    return learner is None or isinstance(learner, Form)


def in_order(grid: Any) -> list[dict[str, Any]]:
    """The settings of a grid in the order of scikit-learn's ParameterGrid, with one exception.

    That order, which decides between equally good settings, goes by the names of parameters.
    Renamed ones keep the place that their former name had, so that kept results stay as they are.
    """
    grids = [grid] if isinstance(grid, Mapping) else grid
    found: list[dict[str, Any]] = []
    for each in grids:
        names = sorted(each, key=lambda name: SORTED_AS.get(name, name))
        found += [dict(zip(names, v, strict=True)) for v in product(*(each[n] for n in names))]
    return found


def _candidates(learner: Any, grid: Any) -> list[dict[str, Any]]:
    """The settings to try, each with names that something has."""
    decides = not _is_metric(learner) and is_classifier(learner)
    if grid is None:
        return [{}] if decides else [{"n_neighbors": 1}, {"n_neighbors": 3}]
    candidates = in_order(grid)
    known = set() if _is_metric(learner) else set(learner.get_params())
    if not decides:
        known |= {*_RULE, *(f"rule__{name}" for name in _RULE)}
    unknown = {name for candidate in candidates for name in candidate} - known
    if unknown:
        raise InvalidInputError(
            f"The grid names {', '.join(sorted(unknown))}, which neither the learner nor the rule "
            f"has; there are {', '.join(sorted(known))}."
        )
    return candidates


def _split(
    codes: Indices, n_folds: int, validation: float, stratify: bool, random: Any
) -> tuple[Indices, list[tuple[Indices, Indices, Indices]]]:
    """The test fold of each example, and learning, validation and test rows of each fold."""

    def mixed(rows: Indices) -> Indices:
        rows = random.permutation(rows)
        return rows[np.argsort(codes[rows], kind="stable")] if stratify else rows

    folds: Indices = np.empty(len(codes), dtype=np.intp)
    folds[mixed(np.arange(len(codes)))] = np.arange(len(codes)) % n_folds
    parts: list[tuple[Indices, Indices, Indices]] = []
    for fold in range(n_folds):
        rest = mixed(np.flatnonzero(folds != fold))
        # Every fifth, if it is 20 %: evenly along the rows sorted by class.
        upto = np.floor(np.arange(len(rest) + 1) * validation + 0.5)
        held = np.diff(upto) > 0
        if not held.any() or held.all():
            raise InvalidInputError(
                f"validation={validation:g} of {len(rest)} examples leaves nothing to learn from "
                "or to validate on; change it, or take fewer folds."
            )
        parts.append((np.sort(rest[~held]), np.sort(rest[held]), np.flatnonzero(folds == fold)))
    return folds, parts


def _run(
    unit: int,
    learner: Any,
    rule: str,
    candidates: list[dict[str, Any]],
    X: Matrix,
    target: Indices,
    parts: tuple[Indices, Indices, Indices],
    refit: bool,
    seed: int,
) -> tuple[int, int, NDArray[np.float64], Indices]:
    """Choose on the validation part and predict the test part."""
    learn, held, test = parts
    scores = np.full(len(candidates), np.nan)
    refused: InvalidInputError | None = None
    learned: dict[str, Any] = {}
    best, chosen = None, -1
    with threadpool_limits(1):
        for i, candidate in enumerate(candidates):
            try:
                model = _fitted(learner, rule, candidate, X[learn], target[learn], seed, learned)
                scores[i] = np.mean(model.predict(X[held]) == target[held])
            except InvalidInputError as error:
                refused = error
                continue
            if best is None or scores[i] > scores[chosen]:
                best, chosen = model, i
        if best is None:
            assert refused is not None
            raise refused
        if refit:
            both = np.sort(np.concatenate([learn, held]))
            best = _fitted(learner, rule, candidates[chosen], X[both], target[both], seed, {})
        return unit, chosen, scores, np.asarray(best.predict(X[test]))


def _fitted(
    learner: Any,
    rule: str,
    candidate: dict[str, Any],
    X: Matrix,
    y: Indices,
    seed: int,
    learned: dict[str, Any],
) -> Any:
    """A classifier with the parameters of a candidate; what was learned alike is used again."""
    # What is named for the rule alone comes last, and so overrides what is named for both.
    named = sorted(candidate.items(), key=lambda item: item[0].startswith("rule__"))
    of_rule = {name.removeprefix("rule__"): value for name, value in named}
    decide = {"rule": rule} | {name: of_rule[name] for name in _RULE if name in of_rule}
    if _is_metric(learner):
        return KNNClassifier(learner, **decide).fit(X, y)
    if is_classifier(learner):
        return _seeded(clone(learner).set_params(**candidate), seed).fit(X, y)
    own = {name: value for name, value in candidate.items() if name in learner.get_params()}
    key = joblib.hash(own)
    if key not in learned:
        learned[key] = _seeded(clone(learner).set_params(**own), seed).fit(X, y)
    return KNNClassifier(learned[key], **decide).fit(X, y)


def _seeded(model: Any, seed: int) -> Any:
    """Random numbers that depend on the run only, unless the model has its own."""
    open_seeds = {
        name: seed
        for name, value in model.get_params().items()
        if value is None and name.split("__")[-1] == "random_state"
    }
    return model.set_params(**open_seeds)


class _State:
    """What is finished: everything that a resumed run need not do again."""

    def __init__(self, units: int, candidates: int, n: int, columns: int) -> None:
        self.done = np.zeros(units, dtype=bool)
        self.chosen = np.full(units, -1, dtype=np.int64)
        self.scores = np.full((units, candidates), np.nan)
        self.predicted = np.full((n, columns), -1, dtype=np.int64)

    def take(
        self,
        unit: int,
        chosen: int,
        scores: NDArray[np.float64],
        rows: Indices,
        column: int,
        predicted: Indices,
    ) -> None:
        self.done[unit], self.chosen[unit], self.scores[unit] = True, chosen, scores
        self.predicted[rows, column] = predicted

    def write(self, path: str | os.PathLike[str], run: str) -> None:
        container.write(path, _KIND, dict(vars(self)), {"run": run}, owner="a run")

    def read(self, path: str | os.PathLike[str], run: str) -> None:
        content = container.read(path)
        if content.kind != _KIND:
            raise FileFormatError(f"{path} holds a {content.kind}, not a double cross-validation.")
        if content.params.get("run") != run:
            raise InvalidInputError(
                f"{os.fspath(path)!s} belongs to a run with other data, learner, grid or settings. "
                "Repeat that run, or give another checkpoint."
            )
        for name, mine in vars(self).items():
            there = content.arrays.get(name)
            if there is None or there.shape != mine.shape or there.dtype != mine.dtype:
                raise FileFormatError(f"{path} holds a run whose {name!r} does not fit it.")
            setattr(self, name, there.copy())


def _fingerprint(X: Matrix, y: Any, learner: Any, candidates: Any, settings: Any) -> str:
    """What must be the same for a run to be resumed."""
    given = learner if _is_metric(learner) else clone(learner)
    try:
        return str(joblib.hash((X, y, given, candidates, settings)))
    except (PicklingError, AttributeError, TypeError) as error:
        raise InvalidInputError(
            f"A run with a checkpoint must be recognized again, but its learner or grid cannot be "
            f"({error}); leave out callables made on the spot, or the checkpoint."
        ) from error


def _result(
    state: _State,
    candidates: list[dict[str, Any]],
    folds: Indices,
    classes: NDArray[Any],
    codes: Indices,
    mode: str,
) -> DoubleCV:
    n_folds = int(folds.max()) + 1
    params: list[Any] = [dict(candidates[chosen]) for chosen in state.chosen]
    if mode == "binary":
        predictions: NDArray[Any] = state.predicted == 1
        correct = predictions == (codes[:, None] == np.arange(len(classes)))
        params = [params[i : i + len(classes)] for i in range(0, len(params), len(classes))]
    else:
        predictions = classes[state.predicted[:, 0]]
        correct = state.predicted[:, 0] == codes
    accuracies = np.array([correct[folds == fold].mean() for fold in range(n_folds)])
    return DoubleCV(accuracies, params, state.scores, predictions, correct, folds, classes)
