"""AROMA on 20 Newsgroups and on visual words: precision at k, learning curves, the choice of r.

Replicates §5 (Figures 3 and 4) of K. Crammer and G. Chechik, "Adaptive regularization for weight
matrices" (ICML 2012): d-AROMA and f-AROMA against OASIS and against no learning.

Protocol (§5.2): the 18828 version of 20 Newsgroups without stop words and without stemming; the
1 000 terms of the highest information gain about the class on the training part; tf-idf; five
splits into 65 % for training and 35 % for testing. 500 000 triplets of training documents: the
query is uniform, p⁺ uniform from its class, p⁻ uniform from the others; every learner is shown
the same triplets of a split, once, in the same order. Each test document is a query that ranks the
other test documents by qᵀWp; those of its class are relevant. Precision at k = 1, …, 50 and mAP.
AROMA starts at W = 0, with r = 1 (Figure 4, left) and r = 0.01 (middle); OASIS at W = I, C = 0.1.

Not said in the paper and decided here:

- Words are scikit-learn's (two letters or more, lower case), of the text and of the From and
  Subject lines that the 18828 version keeps; the stop words its English list. Information gain is
  that of a term's presence (Yang and Pedersen, 1997).
- tf-idf is scikit-learn's, count · (1 + ln((1 + n)/(1 + df))) fitted on the training part, and rows
  have unit length. Then the Euclidean distance, the cosine and W = I rank alike and are one line of
  the tables; another has the Euclidean distance of rows that kept their lengths.
- Splits are random within each class. Documents without any of the 1 000 terms are left out
  (`splits.csv`).
- Test documents stand in random order, which decides between equal scores.
- The margin is 1 for all, as in the paper's loss. Data and matrices are float32.
- Two of the splits are looked at more closely: scores along the way, r = 0.01, other r and C, and
  OASIS beyond 500 000 triplets, which tells how many more it needs.

Beside the paper's protocol, labeled as such: OASIS with C = 1, taken up after the choice of C had
shown on the test documents what a larger one does.

Figure 3 is about 50 classes of Caltech-256 in features that are not available. Two stand-ins take
their place, so that nothing but the order of the methods can be compared: `caltech101_bow`, 1 000
visual words of the 50 largest classes of Caltech-101, and `caltech10_surf`, 800 visual words of ten
classes of Caltech-256. An image has about 100 and 130 words, in the paper 27 (median). tf-idf of
unit length as above, three folds of a five-fold cross-validation, 200 000 triplets, r = 0.01;
other r after 10 000.

ITML and LEGO, which are one line of the paper's figures, learn from pairs, half of them of one
class, drawn from the same training documents; a test document ranks the others by vᵀAv. The paper
says "default parameters": ITML here has γ = 1, 20c² pairs of c classes (at most 8 000), bounds from
the data (5th and 95th percentile), and runs until the duality gap is 0.5 % of the loss, or for ten
cycles. LEGO has η = 1, such bounds too, and is shown 50 000 pairs, once. A step costs Θ(d²) however
sparse the rows are, hence the smaller numbers.

LMNN and HIER are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np

from experiments import _news_data, _news_report
from experiments._common import in_processes
from experiments._news_data import Split
from experiments._news_tables import (
    AROMAS,
    BASELINES,
    COSINE,
    ETA,
    GAMMA,
    LARGE_C,
    LEARNERS,
    OF_PAIRS,
    SMALL_R,
    C,
    R,
)
from samewise import (
    ITML,
    LEGO,
    OASIS,
    Bilinear,
    DiagonalAROMA,
    FactoredAROMA,
    Form,
    Mahalanobis,
    Pairs,
    Triplets,
)
from samewise._typing import Array
from samewise.scores import retrieval_scores

MAX_K = 50
TRIED = (0.001, 0.01, 0.1, 1.0, 10.0)
"""Values of r and of C."""
TOL, MAX_CYCLES = 5e-3, 10
"""Of ITML."""


@dataclass(frozen=True)
class Plan:
    """How much is run."""

    n_splits: int
    n_first: int
    """Splits that are scored along the way, and on which several r are tried."""
    n_terms: int
    every: int
    """Of so many documents one is used."""
    stops: tuple[int, ...]
    """Triplets after which learners are scored."""
    further: tuple[int, ...]
    """And OASIS beyond them."""
    n_for_r: int
    """Triplets for the choice of r and of C; one of `stops`."""
    image_sets: tuple[str, ...]
    n_folds: int
    image_stops: tuple[int, ...]
    image_n_for_r: int
    pair_stops: tuple[int, ...]
    """Pairs after which LEGO is scored, on all sets."""
    most_pairs: int
    """Of ITML."""


WHOLE = Plan(
    n_splits=5,
    n_first=2,
    n_terms=1000,
    every=1,
    stops=tuple(1000 * n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    further=(1_000_000, 2_000_000, 5_000_000),
    n_for_r=100_000,
    image_sets=("caltech101_bow", "caltech10_surf"),
    n_folds=3,
    image_stops=tuple(1000 * n for n in (1, 2, 5, 10, 20, 50, 100, 200)),
    image_n_for_r=10_000,
    pair_stops=tuple(1000 * n for n in (1, 2, 5, 10, 20, 50)),
    most_pairs=8000,
)
QUICK = Plan(
    n_splits=2,
    n_first=1,
    n_terms=200,
    every=10,
    stops=(500, 2000, 5000),
    further=(10_000, 20_000),
    n_for_r=2000,
    image_sets=("caltech10_surf",),
    n_folds=1,
    image_stops=(500, 1000),
    image_n_for_r=500,
    pair_stops=(200, 400),
    most_pairs=400,
)

Task = tuple[Split, str, float | None, tuple[int, ...], tuple[int, ...]]
"""A split, a method, its parameter, the stream's stops, and those after which to score."""


def run(out: Path, *, quick: bool, jobs: int) -> None:
    """All learners on all splits, and the tables and figures in `out`."""
    plan = QUICK if quick else WHOLE
    splits = list(_news_data.documents(plan.n_splits, plan.n_terms, plan.every))
    folds = [fold for name in plan.image_sets for fold in _news_data.images(name, plan.n_folds)]
    tasks = [task for split in splits for task in document_tasks(split, plan)]
    tasks += [task for fold in folds for task in image_tasks(fold, plan)]
    # Long ones first, so that no process is left alone with one at the end.
    tasks.sort(key=effort, reverse=True)
    results = in_processes(follow, tasks, jobs)
    records = [record for result in results for record in result]
    _news_report.write(out, records, [*splits, *folds])


def document_tasks(split: Split, plan: Plan) -> Iterator[Task]:
    """What is run on one split of the documents."""
    first = split.number < plan.n_first
    marks = plan.stops if first else plan.stops[-1:]
    further = plan.further if first else ()
    yield from baselines(split)
    yield split, "OASIS", C, plan.stops + further, marks + further
    yield split, "OASIS", LARGE_C, plan.stops, marks
    for r, method in product((R, SMALL_R) if first else (R,), AROMAS):
        yield split, method, r, plan.stops, marks
    if first:
        yield from choices(split, plan.stops, plan.n_for_r, {R, SMALL_R})
    yield from from_pairs(split, plan, first)


def image_tasks(fold: Split, plan: Plan) -> Iterator[Task]:
    """What is run on one fold of the images."""
    stops = plan.image_stops
    yield from baselines(fold)
    for method, value in (("OASIS", C), ("OASIS", LARGE_C), *((m, SMALL_R) for m in AROMAS)):
        yield fold, method, value, stops, stops
    yield from choices(fold, stops, plan.image_n_for_r, {SMALL_R})
    yield from from_pairs(fold, plan, True)


def from_pairs(split: Split, plan: Plan, first: bool) -> Iterator[Task]:
    """ITML on as many pairs as its paper draws, if these are not too many; LEGO."""
    n = min(20 * len(np.unique(split.train[1])) ** 2, plan.most_pairs)
    yield split, "ITML", GAMMA, (n,), (n,)
    stops = plan.pair_stops
    yield split, "LEGO", ETA, stops, stops if first else stops[-1:]


def choices(split: Split, stops: tuple[int, ...], last: int, rs_done: set[float]) -> Iterator[Task]:
    """The values of C and r that have no longer run."""
    stops = stops[: stops.index(last) + 1]
    for method in LEARNERS:
        done = {C, LARGE_C} if method == "OASIS" else rs_done
        for value in sorted(set(TRIED) - done):
            yield split, method, value, stops, (last,)


def baselines(split: Split) -> Iterator[Task]:
    """Without learning."""
    for method in BASELINES:
        yield split, method, None, (), ()


def effort(task: Task) -> float:
    """About how long a task takes, in triplets of OASIS."""
    _, method, _, stops, marks = task
    each = {"f-AROMA": 30, "d-AROMA": 2, "ITML": 300, "LEGO": 80}.get(method, 1)
    return max(stops, default=0) * each + len(marks)


def follow(
    split: Split, method: str, value: float | None, stops: tuple[int, ...], marks: tuple[int, ...]
) -> list[dict[str, Any]]:
    """The scores of one learner as it goes through the stream, one record after each mark."""
    about = {"set": split.name, "split": split.number, "method": method, "value": value}
    if not stops:
        return [about | {"seen": 0, "updates": 0} | without_learning(split, method)]
    records, learner = [], learner_of(method, value)
    kind = Pairs if method in OF_PAIRS else Triplets
    for stop, told in stream(split, stops, kind):
        if method == "ITML":
            learner.fit(told)
            updates = np.count_nonzero(learner.duals_)
        else:
            updates = learner.partial_fit(told).n_updates_
        if stop in marks:
            counts = {"seen": stop, "updates": updates}
            records.append(about | counts | scores(learner.metric_, *dense(split.test)))
    return records


def learner_of(method: str, value: float | None) -> Any:
    """The learner that the tables call `method`."""
    if method == "ITML":
        return ITML(value, tol=TOL, max_iter=MAX_CYCLES)
    if method == "LEGO":
        return LEGO(value, average="last")
    if method == "OASIS":
        return OASIS(value, margin=1.0, init="identity")
    kind = DiagonalAROMA if method == "d-AROMA" else FactoredAROMA
    return kind(value, margin=1.0, init="zero")


def stream(split: Split, stops: tuple[int, ...], kind: Any = Triplets) -> Iterator[tuple[int, Any]]:
    """The triplets, or pairs, of a split up to each stop: the same for all learners."""
    for start, stop in pairwise((0, *stops)):
        seed = np.random.RandomState([split.number, start])
        yield stop, kind.from_labels(*split.train, stop - start, random_state=seed)


def without_learning(split: Split, method: str) -> dict[str, Any]:
    """W = I for rows of unit length, or the Euclidean distance of rows of their own length."""
    B, b = dense(split.test)
    d = B.shape[1]
    if method == COSINE:
        return scores(Bilinear(np.eye(d, dtype=np.float32)), B, b)
    return scores(Mahalanobis.identity(d), split.lengths[:, None] * B, b)


def dense(part: tuple[Any, Array]) -> tuple[Array, Array]:
    # All against all is faster so.
    return part[0].toarray(), part[1]


def scores(form: Form, B: Array, b: Array) -> dict[str, Any]:
    """Each row as a query against the others: precision at 1 … 50 and mAP."""
    ks = range(1, MAX_K + 1)
    blocks = form.blocks(B, B)
    # Rows of small counts coincide often; the tables take equal ones by their row number.
    means = retrieval_scores(blocks, b, b, ks, exclude_self=True, ties="index").means
    return {"precision": np.array([means[f"precision@{k}"] for k in ks]), "map": means["map"]}
