"""Every learner with its defaults on 33 sets, against the better of Euclidean and cosine.

No replication: what a learner does that nobody has tuned.

Each set has a training part and a test part (at most 2 000 rows each): the standard ones
where there are some, otherwise 70 and 30 % of each class. Features are standardized by the training
part; more than 100 are reduced to 60 by PCA of the training part. A learner is fitted to the
training part with the parameters that `compare` uses, which are the defaults except for a shorter
run of some (`settings` in `samewise.catalog`); 3-NN among the training rows decides test rows. The
exact sign test at 5 % says whether it is better or worse than the Euclidean distance or the cosine,
whichever has fewer errors on the test part of that set. With some 30 tests for each learner, one or
two are significant by chance.

Defaults were chosen on the training parts of twelve sets, by two folds of cross-validation; test
parts, and the other sets, had no part in it. `choice.csv` has the main ones of what was tried; in
all there were about ninety variants, some on fewer of the twelve sets and on fewer or more rows of
their training parts. Learners with a kernel are left out: their kernel needs a width, which is
chosen by hand.

`--only LFDA,NCA` does the columns of some learners anew, and leaves the others as they are.

`verification.csv` is about the threshold: accuracy on at most 10 000 random pairs of test rows,
half of them similar, at `threshold_` as it is fitted, and after recalibration: at the best
threshold for pairs of one half of the test rows, judged on pairs of the other half, and the other
way around. (The best threshold for the very pairs it is judged on would be better by chance.)
Beside it stands the Euclidean distance, its threshold chosen on pairs of training rows: what it
loses comes of chance, and of scaling and PCA, which know the training part alone. "length" is how
long test rows are, as a part of what training rows are: where a PCA of few rows has fitted these,
test rows are shorter, all their distances are smaller, and no threshold for training rows fits.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from experiments import _defaults_report
from experiments._common import in_processes
from experiments._defaults_data import DEVELOPMENT, OTHERS, Parts, folds, parts
from samewise import (
    ITML,
    LEGO,
    MMC,
    NCA,
    POLA,
    Cosine,
    Euclidean,
    GCosLA,
    Index,
    Pairs,
    PassiveAggressive,
    SiLA,
    learners,
)
from samewise._typing import Indices
from samewise.catalog import LEARNERS, Entry
from samewise.decide import vote
from samewise.scores import choose_threshold

K = 3
BASELINES = ("Euclidean", "Cosine")
KERNELS = ("KernelPOLA", "KernelLMNN", "KRCA", "KIGML")
QUICK = ("wine", "iris")
N_JUDGED = 10_000

Answers = dict[str, NDArray[np.bool_]]

_RANDOM: dict[str, Any] = {"purpose": "verification"}
CHOICES: dict[str, Callable[[], Any]] = {
    "PassiveAggressive, random, last, C=1": lambda: PassiveAggressive(
        C=1.0, average="last", **_RANDOM
    ),
    "PassiveAggressive, random, survival, C=1": lambda: PassiveAggressive(C=1.0, **_RANDOM),
    "PassiveAggressive, nearest, last, C=1": lambda: PassiveAggressive(C=1.0, average="last"),
    "PassiveAggressive, nearest, survival, C=1": lambda: PassiveAggressive(C=1.0),
    "PassiveAggressive, nearest, survival, C=0.1": PassiveAggressive,
    "PassiveAggressive, nearest, uniform, C=0.1": lambda: PassiveAggressive(average="uniform"),
    "PassiveAggressive, nearest, last, C=0.1": lambda: PassiveAggressive(average="last"),
    "PassiveAggressive, nearest, survival, C=0.01": lambda: PassiveAggressive(C=0.01),
    "PassiveAggressive, nearest 5, survival, C=0.1": lambda: PassiveAggressive(n_neighbors=5),
    "POLA, random, last": lambda: POLA(average="last", **_RANDOM),
    "POLA, nearest, last": lambda: POLA(average="last"),
    "POLA, nearest, survival": POLA,
    "POLA, nearest, uniform": lambda: POLA(average="uniform"),
    "LEGO, random, last, eta=1": lambda: LEGO(1.0, average="last", **_RANDOM),
    "LEGO, nearest, last, eta=0.01": lambda: LEGO(0.01, average="last"),
    "LEGO, nearest, last, eta=0.001": lambda: LEGO(average="last"),
    "LEGO, nearest, survival, eta=0.001": lambda: LEGO(average="survival"),
    "LEGO, nearest, uniform, eta=0.001": LEGO,
    "LEGO, nearest, uniform, eta=0.01": lambda: LEGO(0.01),
    "LEGO, nearest, uniform, eta=0.1": lambda: LEGO(0.1),
    "ITML, nearest, gamma=0.1": ITML,
    "SiLA, from the base similarity": SiLA,
    "SiLA, from 0": lambda: SiLA(init="zero"),
    "SiLA, from the base similarity, shuffled": lambda: SiLA(shuffle=True),
    "NCA, tol=0.001": NCA,
    "NCA, tol=0.0003": lambda: NCA(tol=3e-4),
    "NCA, tol=0.003": lambda: NCA(tol=3e-3),
    "MMC, random, shrinkage=0": lambda: MMC(shrinkage=0.0, **_RANDOM),
    "MMC, nearest, shrinkage=0": lambda: MMC(shrinkage=0.0),
    "MMC, random, shrinkage=0.7": lambda: MMC(**_RANDOM),
    "MMC, nearest, shrinkage=0.7": MMC,
    "GCosLA, nearest, uniform, step_margin=0.1": GCosLA,
    "GCosLA, nearest, survival, step_margin=0.1": lambda: GCosLA(average="survival"),
    "GCosLA, nearest, last, step_margin=0.1": lambda: GCosLA(average="last"),
    "GCosLA, nearest 5, uniform, step_margin=0.1": lambda: GCosLA(n_neighbors=5),
    "GCosLA, nearest 20, uniform, step_margin=0.1": lambda: GCosLA(n_neighbors=20),
    "GCosLA, nearest, uniform, step_margin=-0.8": lambda: GCosLA(step_margin=-0.8),
    "GCosLA, nearest 5, uniform, step_margin=-0.8": lambda: GCosLA(step_margin=-0.8, n_neighbors=5),
}
"""What was tried, by name."""


def run(out: Path, *, quick: bool, jobs: int, only: tuple[str, ...] = ()) -> None:
    """All sets, and the tables in `out`; with `only`, the columns of those learners anew."""
    names = QUICK if quick else (*DEVELOPMENT, *OTHERS)
    if only:
        tasks = [(name, only) for name in names]
        found = in_processes(judged, tasks, jobs)
        _defaults_report.write_again(out, names, found, [entry.name for entry in shown()])
        return
    unfinished = out / "unfinished"
    unfinished.mkdir(exist_ok=True)
    parts_of = [(judged, names), (verified, names), (tried, [n for n in names if n in DEVELOPMENT])]
    tasks = [(unfinished, part, name) for part, some in parts_of for name in some]
    done = dict(zip([task[1:] for task in tasks], in_processes(once, tasks, jobs), strict=True))
    found = ([done[part, name] for name in some] for part, some in parts_of)
    answers, thresholds, chosen = found
    _defaults_report.write(out, names, answers, chosen, thresholds)
    shutil.rmtree(unfinished)


def once(folder: Path, part: Callable[[str], Any], name: str) -> Any:
    """A part of a set, or what a run before has found for it."""
    path = folder / f"{part.__name__}_{name}.joblib"
    if not path.exists():
        found, new = part(name), path.with_suffix(".new")
        joblib.dump(found, new)
        new.rename(path)
    return joblib.load(path)


def shown() -> list[Entry]:
    """The learners that take labels, and the baselines."""
    takes = [e for e in LEARNERS if "labels" in e.learns_from and e.name not in KERNELS]
    return [*(e for e in LEARNERS if e.name in BASELINES), *takes]


def judged(name: str, only: tuple[str, ...] = ()) -> Answers:
    """Which test rows each learner gets right, or the baselines and a few."""
    here = parts(name)
    some = [e for e in shown() if not only or e.name in (*BASELINES, *only)]
    return {entry.name: right(made(entry), here) for entry in some}


def tried(name: str) -> Answers:
    """Which rows of the training part each choice gets right, held out in its fold."""
    found: dict[str, list[NDArray[np.bool_]]] = {}
    for fold in folds(name):
        found.setdefault("Euclidean", []).append(correct(None, fold))
        found.setdefault("Cosine", []).append(correct(Cosine().fit(fold.X).metric_, fold))
        for choice, make in CHOICES.items():
            found.setdefault(choice, []).append(right(make().set_params(random_state=0), fold))
    return {choice: np.concatenate(rows) for choice, rows in found.items()}


def verified(name: str) -> dict[str, float]:
    """Accuracy of PassiveAggressive on pairs of test rows, at its threshold and recalibrated."""
    here = parts(name)
    order = np.random.RandomState(1).permutation(len(here.y_test))
    halves = [some_pairs(here, rows) for rows in (order[::2], order[1::2])]
    found: dict[str, float] = {}
    for purpose in ("neighbors", "verification"):
        learner = PassiveAggressive(purpose=purpose, random_state=0).fit(here.X, here.y)
        given = {"threshold_": 0.0, "own b": learner.threshold_ - learner._solution()[1]}
        found |= accuracies(purpose, learner.decision_function, halves, given)
    form = Euclidean().fit(here.X).metric_

    def closeness(pairs: Pairs) -> Any:
        return form.pair_closeness(pairs.X[pairs.left], pairs.X[pairs.right])

    known = some_pairs(here._replace(X_test=here.X, y_test=here.y), np.arange(len(here.y)))
    given = {"threshold": choose_threshold(closeness(known), known.y, "accuracy")}
    return found | accuracies("Euclidean", closeness, halves, given) | {"length": length(here)}


def length(here: Parts) -> float:
    """How long test rows are, as a part of what training rows are, by the median."""
    test, train = (float(np.median(np.linalg.norm(X, axis=1))) for X in (here.X_test, here.X))
    return test / train


def accuracies(
    name: str, score: Callable[[Pairs], Any], halves: list[Pairs], given: dict[str, float]
) -> dict[str, float]:
    """The part of two halves decided rightly: at given thresholds, and at that of the other."""
    scores = [score(pairs) for pairs in halves]
    best = [choose_threshold(s, p.y, "accuracy") for s, p in zip(scores, halves, strict=True)]
    levels = {kind: (least, least) for kind, least in given.items()}
    return {
        f"{name}, {kind}": float(
            np.mean(
                [
                    np.mean((score >= least) == (pairs.y > 0))
                    for score, least, pairs in zip(scores, at, halves, strict=True)
                ]
            )
        )
        for kind, at in (levels | {"recalibrated": (best[1], best[0])}).items()
    }


def some_pairs(here: Parts, rows: Indices) -> Pairs:
    """Random pairs of test rows, as many similar as dissimilar."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*pairs were asked for")
        n_pairs = min(N_JUDGED // 2, 8 * len(rows))
        pairs = Pairs.from_labels(here.X_test[rows], here.y_test[rows], n_pairs, random_state=1)
    kinds = [np.flatnonzero(pairs.y == kind) for kind in (-1, 1)]
    n = min(map(len, kinds))
    return pairs[np.concatenate([kind[:n] for kind in kinds])]


def made(entry: Entry) -> Any:
    """The learner as `compare` makes it."""
    learner = getattr(learners, entry.name)(**entry.settings)
    return learner.set_params(random_state=0) if "random_state" in learner.get_params() else learner


def right(learner: Any, here: Parts) -> NDArray[np.bool_]:
    """Which rows 3-NN decides rightly after learning; none if the learner refuses the set."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            form = learner.fit(here.X, here.y).metric_
        except ValueError as error:
            print(f"{type(learner).__name__} refused: {error}", flush=True)
            return np.zeros(len(here.y_test), dtype=bool)
    return correct(form.bind(here.X, here.y), here)


def correct(form: Any, here: Parts) -> NDArray[np.bool_]:
    """Which rows 3-NN decides rightly under a form."""
    labels = here.y[Index(form, here.X).query(here.X_test, K)[1]]
    return vote(labels, int(max(here.y.max(), here.y_test.max())) + 1)[0] == here.y_test
