"""Words and numbers of the demo: the table, the code to copy, comparisons."""

from __future__ import annotations

from demo.study import (
    DRAWS,
    FROM_LABELS,
    FROM_PAIRS,
    HELD_OUT,
    N_NEIGHBORS,
    PER_CLASS,
    PORTION,
    WARM_UP,
    Row,
    Study,
)
from samewise.report.sentences import change, percent

COLUMNS = (
    "metric",
    f"{N_NEIGHBORS}-NN error",
    f"1-NN error, {PER_CLASS} per class",
    "verification error",
    "training time",
)


def cells(row: Row) -> tuple[str, ...]:
    """A line of the table, in the order of `COLUMNS`."""
    seconds = row.training_seconds
    return (
        row.metric,
        percent(row.knn_error),
        f"{percent(row.few_error)} ± {100 * row.few_spread:.1f}",
        percent(row.verification_error),
        "none" if seconds is None else f"{seconds:.2f} s",
    )


def plain_table(study: Study) -> str:
    """The table for a terminal."""
    lines = [COLUMNS, *map(cells, study.table)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = [
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
        for line in lines
    ]
    return "\n".join([padded[0], "-" * len(padded[0]), *padded[1:]])


def findings(study: Study) -> list[str]:
    """What the table says, from Euclidean to learned from pairs, in plain sentences."""
    before, after = study.row("Euclidean"), study.row(FROM_PAIRS)
    lmnn = study.row(FROM_LABELS)
    n = len(study.split.y_test)
    wrong = [round(row.knn_error * n) for row in (before, after, lmnn)]
    return [
        "Are these two the same digit? The error on pairs of images never seen in training "
        f"{change(before.verification_error, after.verification_error)}.",
        f"With only {PER_CLASS} stored examples of each digit, the error of the nearest neighbor "
        f"{change(before.few_error, after.few_error)}; LMNN's is {percent(lmnn.few_error)}.",
        f"With all {len(study.split.y_train)} training images stored, {N_NEIGHBORS}-NN gets "
        f"{wrong[0]} of {n} test images wrong under the Euclidean distance, {wrong[1]} under the "
        f"one learned from pairs and {wrong[2]} under LMNN's. {_remark(*wrong)}",
    ]


def _remark(before: int, *after: int) -> str:
    if max(after) < before:
        return "Learning helps here too."
    if min(after) <= before:
        return "Here learning hardly matters."
    return (
        "Learning does not help here, it costs: with so many images stored, the Euclidean distance "
        "leaves little to gain."
    )


def conditions(study: Study) -> list[str]:
    """How the numbers were obtained."""
    n_train, n_test = len(study.split.y_train), len(study.split.y_test)
    return [
        f"Data: scikit-learn's digits, pixels scaled to [0, 1], {n_train} images for training "
        f"and {n_test} for testing.",
        f"Stream: {study.n_pairs:,} pairs of training images, half of them of the same digit, "
        f"learned in portions of {PORTION} and each shown once. The learner sees pixels and "
        "“same” or “not the same”, never which digit it is.",
        f"C = {study.C:.3g} was chosen by tune_C on the first {min(WARM_UP, study.n_pairs):,} "
        f"pairs of the stream ({study.tuning_seconds:.1f} s, with compilation if it was needed). "
        "The test images had no part in any choice.",
        f"{N_NEIGHBORS}-NN error: test images, all training images stored. 1-NN error: "
        f"{PER_CLASS} training images of each digit stored, mean and standard deviation over "
        f"{DRAWS} random stores, the same for every metric. The metric itself has learned from "
        "pairs of all training images.",
        f"Verification error: {HELD_OUT:,} pairs of test images, half of them of the same digit. "
        "The learner of pairs uses its own threshold; the others were calibrated by Verifier on "
        "the pairs of the stream. Pairs and thresholds are others than in the table at the top, "
        "and so are the errors, a little.",
    ]


def code(study: Study) -> str:
    """What to copy to get the line of the table that was learned from pairs."""
    k = N_NEIGHBORS
    return f"""\
from samewise import KNNClassifier, Pairs, PassiveAggressive, Verifier, tune_C
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X / 16, y, test_size=0.5, stratify=y, random_state=0)
stream = Pairs.from_labels(X, y, n_pairs={study.n_pairs}, random_state=0)
learner = PassiveAggressive("pa1", average="uniform")
learner.set_params(C=tune_C(learner, stream[:{WARM_UP}]).C)
for start in range(0, len(stream), {PORTION}):
    learner.partial_fit(stream[start : start + {PORTION}])
held_out = Pairs.from_labels(X_test, y_test, n_pairs={HELD_OUT}, random_state=1)
print("verification error", 1 - Verifier(learner).fit().score(held_out))
print("{k}-NN error", 1 - KNNClassifier(learner, {k}).fit(X, y).score(X_test, y_test))
"""
