"""Sentence embeddings: what 1 500 to 50 000 triplets do to a frozen encoder's similarities.

Data: `banking77_minilm`, 13 083 questions to a bank of 77 intents as MiniLM sentence embeddings of
unit length, with the data's own division into training and test part. Learned is a bilinear
similarity qᵀWp from triplets of the training part; then every test question is a query against
the other test questions: precision@1, precision@10 and mAP, before (cosine) and after.

Compared: OASIS, d-AROMA and f-AROMA as in their papers (margin 1; OASIS starts at the identity, the
AROMAs at zero), and with other margins, starts, averages, C or r and negatives. "Current" negatives
are drawn again every 2 500 triplets under the form learned so far. "Hardest" takes, once and under
the identity, the closest question of another intent: nothing else that is tried hurts so much.

Settings are chosen on the training part alone: a fifth of it is held out, class by class, the rest
is learned from, and a setting is *safe* if none of the three measures falls below the cosine's
among the held-out questions at 1 500, 5 000 or 50 000 triplets (means over the seeds). Chosen, for
each learner, is the safe setting with the best mAP in the mean of the three sizes; once among those
with random negatives and once among all.

Baselines that are told all labels of the training part, not triplets: shrinkage LDA followed by the
cosine, and logistic regression, whose posteriors are compared by dot product (the probability that
two questions have the same intent) and by cosine; its C by mAP on the held-out questions.

Every seed draws its own triplets and, for the choice, its own held-out part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from experiments import _banking_report
from experiments._common import in_processes
from samewise import OASIS, Bilinear, DiagonalAROMA, FactoredAROMA, Form, Triplets
from samewise._typing import Array
from samewise.datasets import load
from samewise.scores import retrieval_scores

SIZES = (1500, 5000, 50000)
N_SEEDS = 3
REDRAW = 2500
MARGINS = ("0.5 auto", "auto", "2 auto")
LEARNERS = ("OASIS", "d-AROMA", "f-AROMA")
STEPS = {"OASIS": (0.1, 0.01), "d-AROMA": (1.0,), "f-AROMA": (1.0, 0.1)}
"""C of OASIS, r of the AROMAs: what is tried on the held-out questions, the papers' first."""
MORE_STEPS = {"OASIS": (0.01, 1.0), "d-AROMA": (0.1, 10.0), "f-AROMA": (0.01, 0.1, 10.0)}
"""And what else is shown of the test part."""
PARTS = {"random": "random", "half semi-hard": 0.5, "semi-hard": "semi-hard"}
LOGISTIC_C = (1.0, 10.0, 100.0)

Labeled = tuple[Array, Array]
Curve = dict[int, Array]
"""Number of triplets → precision@1, precision@10, mAP."""


@dataclass(frozen=True)
class Setting:
    """One way to learn. `margin` is a number, "auto", or a multiple of that, such as "2 auto"."""

    learner: str
    margin: str = "auto"
    start: str = "identity"
    step: float = 0.0
    average: str = "last"
    negatives: str = "random"
    form: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", self.step or STEPS[self.learner][0])


def run(out: Path, *, quick: bool, jobs: int) -> None:
    """The choice of settings, the test part, and the tables in `out`."""
    train, test = banking(10 if quick else 77)
    sizes = (100, 300, 1000) if quick else SIZES
    seeds = range(2 if quick else N_SEEDS)
    candidates, shown = tried_settings(), shown_settings()
    if quick:
        candidates, shown = candidates[::7], shown[::4]
    validated = in_processes(
        on_held_out, [(train, s, sizes, seed) for s in candidates for seed in seeds], jobs
    )
    validation = dict(zip(candidates, grouped(validated, len(seeds)), strict=True))
    chosen = choices(validation)
    shown = list(dict.fromkeys([*shown, *chosen.values()]))
    tested = in_processes(
        follow, [(train, test, s, sizes, seed) for s in shown for seed in seeds], jobs
    )
    baselines, picked = other_methods(train, test)
    _banking_report.write(
        out,
        validation=validation,
        chosen=chosen,
        tested=dict(zip(shown, grouped(tested, len(seeds)), strict=True)),
        baselines=baselines,
        facts=picked | {"auto": margin_of("auto", train)},
    )


def banking(n_intents: int) -> tuple[Labeled, Labeled]:
    """Training and test part, the first so many intents."""
    bunch = load("banking77_minilm", dtype=np.float32)
    wanted = bunch.target < n_intents
    parts = (wanted & bunch.train, wanted & ~bunch.train)
    train, test = ((np.ascontiguousarray(bunch.data[p]), bunch.target[p]) for p in parts)
    return train, test


def tried_settings() -> list[Setting]:
    """What is tried on the held-out questions; less of d-AROMA, which takes the longest."""
    settings = []
    for name, average in product(LEARNERS, ("last", "survival")):
        usual = Setting(name, average=average)
        settings += [replace(usual, margin=margin) for margin in MARGINS]
        settings += [replace(usual, step=step) for step in STEPS[name][1:]]
        for negatives, step in product(("half semi-hard", "semi-hard"), STEPS[name]):
            settings.append(replace(usual, step=step, negatives=negatives, form="current"))
    return settings


def shown_settings() -> list[Setting]:
    """What the table of the test part shows, whatever it does: first each paper's own."""
    settings = []
    for name in LEARNERS:
        paper = Setting(name, "1", start="identity" if name == "OASIS" else "zero")
        other = replace(paper, start="zero" if name == "OASIS" else "identity")
        last, averaged = Setting(name), Setting(name, average="survival")
        settings += [
            paper,
            other,
            replace(averaged, margin="1"),
            replace(last, margin="0.3"),
            replace(last, margin="0.1"),
            last,
            replace(last, average="uniform"),
            averaged,
            *(replace(averaged, step=step) for step in MORE_STEPS[name]),
            *(
                replace(setting, negatives=negatives, form=form)
                for form, setting in (("identity", last), ("current", last), ("current", averaged))
                for negatives in ("half semi-hard", "semi-hard")
            ),
            replace(last, negatives="hardest", form="identity"),
        ]
    return settings


def grouped(results: list[Any], n: int) -> list[list[Any]]:
    """The results of each setting, seed by seed."""
    return [results[i : i + n] for i in range(0, len(results), n)]


def on_held_out(train: Labeled, setting: Setting, sizes: tuple[int, ...], seed: int) -> Curve:
    """Change against the cosine among the held-out questions."""
    kept, held = held_out(train, seed)
    before = measures(plain(held[0]), *held)
    return {n: after - before for n, after in follow(kept, held, setting, sizes, seed).items()}


def held_out(train: Labeled, seed: int) -> tuple[Labeled, Labeled]:
    """Four fifths to learn from and one fifth to choose by."""
    X, y = train
    kept, held = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=seed)
    return (X[kept], y[kept]), (X[held], y[held])


def follow(
    train: Labeled, test: Labeled, setting: Setting, sizes: tuple[int, ...], seed: int
) -> Curve:
    """Learn from triplets of `train`; the measures among `test` at each number of triplets."""
    learner = made(setting, train)
    random = np.random.RandomState(seed)
    hardest = hardest_negatives(*train) if setting.negatives == "hardest" else None
    seen, curve = 0, {}
    for upto in sorted({*sizes, *range(REDRAW, max(sizes), REDRAW)}):
        form = learner.metric_ if seen and setting.form == "current" else None
        part = PARTS.get(setting.negatives, "random")
        told = Triplets.from_labels(
            *train, upto - seen, negatives=part, form=form, random_state=random
        )
        if hardest is not None:
            told = Triplets(told.X, told.anchor, told.positive, hardest[told.anchor])
        learner.partial_fit(told)
        seen = upto
        if seen in sizes:
            curve[seen] = measures(learner.metric_, *test)
    return curve


def made(setting: Setting, train: Labeled) -> OASIS | DiagonalAROMA | FactoredAROMA:
    """The learner of a setting."""
    margin = "auto" if setting.margin == "auto" else margin_of(setting.margin, train)
    options: dict[str, Any] = dict(margin=margin, init=setting.start, average=setting.average)
    if setting.learner == "OASIS":
        return OASIS(setting.step, **options)
    kind = DiagonalAROMA if setting.learner == "d-AROMA" else FactoredAROMA
    return kind(setting.step, **options)


def hardest_negatives(X: Array, y: Array) -> Array:
    """For each row the closest of another class."""
    found = [
        np.argmax(np.where(y[rows, None] == y, -np.inf, S), axis=1)
        for rows, S in plain(X).blocks(X, X)
    ]
    return np.concatenate(found)


def measures(form: Form, X: Array, y: Array) -> Array:
    """Precision@1, precision@10 and mAP, every row a query against the others."""
    blocks = form.blocks(X, X)
    # A few similarities are equal in float32; the tables take them by their row number.
    means = retrieval_scores(blocks, y, y, ks=(1, 10), exclude_self=True, ties="index").means
    return np.array([means[name] for name in ("precision@1", "precision@10", "map")])


def plain(X: Array) -> Bilinear:
    """The dot product: of rows of unit length, the cosine."""
    return Bilinear(np.eye(X.shape[1], dtype=X.dtype))


def margin_of(name: str, train: Labeled) -> float:
    """The margin as a number; "auto" is the one for a start at the identity."""
    number, automatic, _ = name.partition("auto")
    factor = float(number or 1)
    if not automatic:
        return factor
    return factor * OASIS().fit(Triplets.from_labels(*train, 1, random_state=0)).margin_


def choices(validation: dict[Setting, list[Curve]]) -> dict[tuple[str, str], Setting]:
    """(learner, negatives) → the safe setting of the best mAP; without one, the least unsafe."""

    def worth(setting: Setting) -> tuple[bool, float]:
        change = mean_changes(validation[setting])
        safe = bool(change.min() >= 0)
        return safe, float(change[:, 2].mean() if safe else change.min())

    chosen = {}
    for name in dict.fromkeys(s.learner for s in validation):
        mine = [s for s in validation if s.learner == name]
        for kind, these in (
            ("random", [s for s in mine if s.negatives == "random"]),
            ("any", mine),
        ):
            chosen[name, kind] = max(these, key=worth)
    return chosen


def mean_changes(curves: list[Curve]) -> Array:
    """Means over the seeds, a row for each number of triplets."""
    return np.mean([list(curve.values()) for curve in curves], axis=0)


def other_methods(train: Labeled, test: Labeled) -> tuple[dict[str, Array], dict[str, float]]:
    """The measures of the baselines on the test part, and what was chosen for them."""
    best = max(LOGISTIC_C, key=lambda C: logistic(*held_out(train, 0), C)["dot product"][2])
    A, a = train
    B, b = test
    lda = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto")
    E = unit_rows(lda.fit(A.astype(np.float64), a).transform(B.astype(np.float64)))
    posteriors = logistic(train, test, best)
    baselines = {
        "cosine": measures(plain(B), B, b),
        "shrinkage LDA, cosine": measures(plain(E), E, b),
        "logistic regression, cosine of posteriors": posteriors["cosine"],
        "logistic regression, dot product of posteriors": posteriors["dot product"],
    }
    return baselines, {"C": best}


def logistic(train: Labeled, test: Labeled, C: float) -> dict[str, Array]:
    """Posteriors of a logistic regression, compared in two ways."""
    model = LogisticRegression(C=C, max_iter=2000).fit(train[0].astype(np.float64), train[1])
    E = model.predict_proba(test[0].astype(np.float64))
    rows = {"dot product": E, "cosine": unit_rows(E)}
    return {name: measures(plain(Z), Z, test[1]) for name, Z in rows.items()}


def unit_rows(X: Array) -> Array:
    return X / np.linalg.norm(X, axis=1, keepdims=True)
