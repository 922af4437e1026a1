"""The pictures of a report, with what they show in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise import plots
from samewise._typing import Indices, Matrix
from samewise.decide import Verifier
from samewise.forms import Form, GeneralizedCosine, Mahalanobis, MultiMetric
from samewise.plots._axes import plain
from samewise.plots.curves import windows
from samewise.plots.matrices import eigenvalue_shares
from samewise.plots.plane import crowded
from samewise.protocols import Measured
from samewise.protocols.measuring import has_both_kinds, sampled_pairs
from samewise.protocols.row_splits import Parts
from samewise.report.page import Html, named_marks, picture, side_by_side
from samewise.report.sentences import percent

POINTS, PAIRS, ENTRIES, WINDOWS = 800, 5000, 100, 40
"""Most test examples in a picture, most pairs, most features of a matrix, stretches of a curve."""


@dataclass(frozen=True, eq=False)
class Subject:
    """What the pictures are about: forms by name (the first is the one before), and examples."""

    forms: dict[str, Form]
    learners: dict[str, Any]
    X: Matrix
    y: NDArray[Any]
    X_test: Matrix
    y_test: NDArray[Any]
    feature_names: Sequence[str] | None
    random_state: Any
    ids: Sequence[str]

    @property
    def parts(self) -> Parts:
        """X, y, X_test and y_test."""
        return self.X, self.y, self.X_test, self.y_test

    def sampled_rows(self, n: int) -> Indices:
        """Test examples, evenly from their order, at most n of them."""
        return np.linspace(0, len(self.y_test) - 1, min(n, len(self.y_test))).round().astype(int)

    def sample(self, n: int) -> tuple[Matrix, NDArray[Any]]:
        """The rows and labels of these."""
        rows = self.sampled_rows(n)
        return self.X_test[rows], self.y_test[rows]


def drawings(subject: Subject, measured: Sequence[Measured]) -> list[Html]:
    """All pictures that can be drawn of these forms."""
    after = _margins, _planes, _ellipses, _spectra, _matrix, _curves
    made = [*_histograms(subject), _precisions(measured)]
    for draw in after:
        made += draw(subject)
    return [side_by_side(made)]


def _histograms(subject: Subject) -> Iterator[Html]:
    """Before and after on the same pairs, where pairs of both kinds exist."""
    if not (has_both_kinds(subject.y) and has_both_kinds(subject.y_test)):
        return
    known = sampled_pairs(subject.X, subject.y, PAIRS, subject.random_state)
    unseen = sampled_pairs(subject.X_test, subject.y_test, PAIRS, subject.random_state)
    for name, form in subject.forms.items():
        if form.needs_labels:
            continue
        verifier = Verifier(form, criterion="balanced_accuracy").fit(known)
        wrong = float(np.mean(verifier.predict(unseen) != unseen.y))
        yield picture(
            partial(plots.pair_histograms, form, unseen, threshold=verifier.threshold_),
            alt=f"Histograms of similar and dissimilar pairs under {name}; {percent(wrong)} "
            "of them are on the wrong side of the threshold.",
            caption=f"{name}: {len(unseen):,} pairs of test examples. The threshold is the "
            f"best one for pairs of training examples; {percent(wrong)} of these pairs are on "
            "its wrong side.",
        )


def _precisions(measured: Sequence[Measured]) -> Html:
    curves = {plain(m.name): m.precision for m in measured}
    k = max(measured[0].precision)
    ends = ", ".join(f"{m.name} {percent(m.precision[k])}" for m in measured)
    return picture(
        partial(plots.precision_curves, curves),
        alt=f"Precision of the first k found examples for each metric; at k = {k}: {ends}.",
        caption="Each test example is a query to the training examples: how many of the first k "
        f"are of its class. At k = {k}: {ends}.",
    )


def _margins(subject: Subject) -> Iterator[Html]:
    X, y = subject.sample(2 * POINTS)
    forms = {name: form for name, form in subject.forms.items() if not form.needs_labels}
    sizes = np.unique(y, return_counts=True)[1]
    if len(sizes) < 2 or sizes.max() < 2 or len(forms) < 2:
        return

    def draw(ax: Any) -> None:
        for name, form in forms.items():
            plots.margin_histogram(form, X, y, label=plain(name), ax=ax)

    yield picture(
        draw,
        alt=f"Histograms of margins under {', '.join(forms)}.",
        caption=f"Margins of {len(y):,} test examples: how much closer is the nearest other "
        "one of the same class than the nearest of any other class? Left of the line, it is "
        "not.",
    )


def _curves(subject: Subject) -> Iterator[Html]:
    for name, learner in subject.learners.items():
        history = getattr(learner, "history_", None)
        if not isinstance(history, dict) or not len(history.get("loss", ())):
            continue
        if "rounds" in history:
            _, errors = windows(history, "mistakes", WINDOWS)
            first, last = percent(float(errors[0])), percent(float(errors[-1]))
            yield picture(
                partial(plots.predictive_error_curve, learner, n_windows=WINDOWS),
                alt=f"The error of {name} along the stream, from {first} to {last}.",
                caption=f"{name}: every example is judged when it arrives, before it is "
                f"learned from. The stream of {int(history['rounds'][-1]):,} is cut into "
                f"{len(errors)} stretches; {first} of the first are judged wrongly, {last} "
                "of the last.",
            )
        loss = history["loss"]
        online = "rounds" in history
        ends = windows(history, "loss", WINDOWS)[1][[0, -1]] if online else loss[[0, -1]]
        what = "mean hinge loss along the stream" if online else "loss after each iteration"
        yield picture(
            partial(plots.learning_curve, learner, n_windows=WINDOWS),
            alt=f"The {what} of {name}, from {ends[0]:.4g} to {ends[1]:.4g}.",
            caption=f"{name}: {what}, from {ends[0]:.4g} to {ends[1]:.4g}.",
        )


def _spectra(subject: Subject) -> Iterator[Html]:
    forms = {name: f for name, f in subject.forms.items() if isinstance(f, _ONE_MATRIX)}
    if len(forms) < 2:
        return
    described = []
    for form_name, form in forms.items():
        half = int(np.searchsorted(np.cumsum(eigenvalue_shares(form)), 0.5)) + 1
        described.append(f"{form_name} {half}")

    def draw(ax: Any) -> None:
        for name, form in forms.items():
            plots.spectrum(form, label=plain(name), ax=ax)

    yield picture(
        draw,
        alt=f"Spectra of {', '.join(forms)}.",
        caption="How strongly each direction of the features counts. Directions that carry "
        f"half of the weight: {', '.join(described)}, of {form.n_features_in}.",
    )


def _matrix(subject: Subject) -> Iterator[Html]:
    name, form = list(subject.forms.items())[1]
    if getattr(form, "matrix", None) is None:
        return
    if not 1 < form.n_features_in == form.n_features_items <= ENTRIES:
        return
    yield picture(
        partial(plots.matrix_heatmap, form, feature_names=subject.feature_names),
        alt=f"The matrix of {name} as a heat map.",
        caption=f"The matrix of {name}, features by features; lighter is larger.",
        size=(5.2, 4.4),
    )


def _planes(subject: Subject) -> Iterator[Html]:
    X, y = subject.sample(POINTS)
    if len(y) < 3:
        return
    room = ", where there is room" if crowded(y) else ""
    called = [
        f"{subject.ids[row]}, class {subject.y_test[row]}" for row in subject.sampled_rows(POINTS)
    ]
    names = {
        f"class-{n}": [called[i] for i in np.flatnonzero(y == c)]
        for n, c in enumerate(np.unique(y))
    }
    for name, form in subject.forms.items():
        if hasattr(form, "embed"):
            drawn = picture(
                partial(plots.projection, form, X, y),
                alt=f"Scatter plot of test examples in the two main directions under {name}, each "
                "class with its own marker and its name at its median or near it.",
                caption=f"{name}: {len(y):,} test examples in the two directions in which they "
                "vary most under it. Class names are at the medians of the classes or near them"
                f"{room}. Point at an example to see which row it is.",
                size=(5.2, 4.4),
            )
            yield named_marks(drawn, names)


def _ellipses(subject: Subject) -> Iterator[Html]:
    X, y = subject.sample(POINTS)
    for name, form in subject.forms.items():
        if isinstance(form, MultiMetric) and X.shape[1] > 1 and _known_classes(form, y):
            yield picture(
                partial(plots.class_ellipses, form, X, y),
                alt=f"The metrics of {name} as ellipses over the two main directions of the data.",
                caption=f"{name}: what each of its metrics makes of a circle, around the mean of "
                "the examples it belongs to. Long is where differences count.",
                size=(5.2, 4.4),
            )


_ONE_MATRIX = (Mahalanobis, GeneralizedCosine)


def _known_classes(form: MultiMetric, y: NDArray[Any]) -> bool:
    return form.classes is None or bool(np.isin(y, form.classes).all())
