"""The test examples that gained and lost most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from samewise._typing import Indices, Matrix
from samewise.decide import KNNClassifier
from samewise.plots.images import as_images, value_limits
from samewise.protocols import Measured
from samewise.report.drawings import Subject
from samewise.report.page import Html, escaped, folded, image, paragraph, table
from samewise.report.sentences import percent

SHOWN, NEIGHBORS, FEATURES = 6, 5, 8
"""Cases of each kind, neighbors of each case, and features of a row that are shown."""
LOOKED_AT = 20 * SHOWN
"""Cases of each kind that are looked at for neighbors which show what changed."""


@dataclass(frozen=True, eq=False)
class ShownRows:
    """How examples are shown: as images, or by name and with values of some features.

    Attributes
    ----------
    stored, asked : array or CSR matrix
        Training and test rows, as they were before any scaling.
    labels, wanted : arrays
        Their classes.
    stored_ids, asked_ids : sequences of str
    feature_names : sequence of str
    image_shape : tuple of int, or None
    """

    stored: Matrix
    asked: Matrix
    labels: NDArray[Any]
    wanted: NDArray[Any]
    stored_ids: Sequence[str]
    asked_ids: Sequence[str]
    feature_names: Sequence[str]
    image_shape: tuple[int, ...] | None

    @cached_property
    def limits(self) -> tuple[float, float]:
        """The least and the largest value of the stored rows."""
        return value_limits(self.stored)


def most_changed(before: Measured, after: Measured) -> tuple[Indices, Indices]:
    """Test examples that got better and worse, most changed first.

    A decision that became right (or wrong) counts more than any change of the average precision
    of the example as a query, which orders the others.

    Examples
    --------
    >>> import numpy as np
    >>> def measured(correct, precision):
    ...     return Measured("", 0.0, 0.0, {}, 0.0, 0.0, np.array(correct), np.array(precision))
    >>> before = measured([False, True, True], [0.5, 0.9, 0.2])
    >>> most_changed(before, measured([True, False, True], [0.6, 0.1, 0.8]))
    (array([0, 2]), array([1]))
    """
    decisions = after.correct.astype(float) - before.correct
    change = 2 * decisions + np.nan_to_num(after.average_precision - before.average_precision)
    order = np.argsort(-change, kind="stable")
    better, worse = order[change[order] > 0], order[::-1][change[order[::-1]] < 0]
    return better, worse


def visible_change(before: NDArray[np.bool_], after: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How much better the neighbors shown are: right ones count, the nearer the more.

    Parameters
    ----------
    before, after : arrays of bool of shape (n, k)
        Which neighbors are of the right class, nearest first.

    Examples
    --------
    >>> right = np.array([[True, False], [False, True], [False, False]])
    >>> visible_change(right[[0, 0, 2]], right[[0, 1, 1]])
    array([ 0, -1,  1])
    """
    weights = np.arange(before.shape[1], 0, -1)
    return np.asarray((after.astype(np.int64) - before) @ weights, dtype=np.int64)


def hard_cases(
    subject: Subject, measured: tuple[Measured, Measured], shown: ShownRows
) -> list[Html]:
    """Cases of both kinds with their neighbors before and after: under the first two forms."""
    before, after = measured
    changed = most_changed(before, after)
    rows = [kind[:LOOKED_AT] for kind in changed]
    cases = np.concatenate(rows)
    if not len(cases):
        return [paragraph(f"{after.name} changes nothing for any test example.")]
    X, y, X_test, _ = subject.parts
    k = min(NEIGHBORS, X.shape[0])
    nearest = {
        name: KNNClassifier(form, k).fit(X, y).kneighbors(X_test[cases], k, False)
        for name, form in list(subject.forms.items())[:2]
    }
    seen = visible_change(
        *(shown.labels[near] == shown.wanted[cases, None] for near in nearest.values())
    )
    seen[len(rows[0]) :] *= -1
    better, worse = (
        at[seen[at] > 0][:SHOWN] for at in np.split(np.arange(len(cases)), [len(rows[0])])
    )
    parts = [
        paragraph(
            f"Of {len(before.correct):,} test examples {len(changed[0]):,} got better with "
            f"{after.name} and {len(changed[1]):,} worse, in their decision or else in average "
            "precision. These are the most changed of either kind whose nearest training examples "
            f"show it: the {k} under {before.name} and under {after.name}, nearest first, with "
            "more or nearer ones of the right class, or fewer or farther ones. A neighbor of "
            "another class has a dashed frame and a cross."
        )
    ]
    for title, places in (("Better", better), ("Worse", worse)):
        if not len(places):
            continue
        parts.append(Html(f"<h3>{title} with {escaped(after.name)}</h3>"))
        drawn = ""
        for n in places:
            near = {name: found[n] for name, found in nearest.items()}
            drawn += _case(int(cases[n]), near, measured, shown)
        parts.append(Html(f'<div class="cases">{drawn}</div>'))
    return parts


def _case(
    i: int, nearest: dict[str, Indices], measured: tuple[Measured, Measured], shown: ShownRows
) -> str:
    label = str(shown.wanted[i])
    precision = " → ".join(percent(float(m.average_precision[i])) for m in measured)
    lines = "".join(
        f'<div class="line"><span class="by">{escaped(name)}</span>'
        + "".join(_neighbor(int(row), label, shown) for row in rows)
        + "</div>"
        for name, rows in nearest.items()
    )
    title = (
        f"<h4>{escaped(shown.asked_ids[i])}, class {escaped(label)}</h4>"
        f'<div class="by">average precision {escaped(precision)}</div>'
    )
    if shown.image_shape is None:
        return f'<article class="case">{title}{lines}{_values(i, nearest, shown)}</article>'
    pixels = _pixels(shown.asked[i : i + 1], shown)
    asked = image(pixels, alt=f"Test image of class {label}", kind="asked")
    return f'<article class="case pictured">{asked}<div>{title}{lines}</div></article>'


def _neighbor(row: int, wanted: str, shown: ShownRows) -> str:
    label = str(shown.labels[row])
    wrong = label != wanted
    if shown.image_shape is None:
        said = f'<span class="item{" wrong" if wrong else ""}">'
        return f"{said}{escaped(shown.stored_ids[row])} ({escaped(label)})</span>"
    alt = f"{label}, wrong" if wrong else label
    picture = image(_pixels(shown.stored[row : row + 1], shown), alt=alt)
    return f'<span class="item seen{" wrong" if wrong else ""}">{picture}</span>'


def _pixels(row: Matrix, shown: ShownRows) -> Any:
    assert shown.image_shape is not None
    least, most = shown.limits
    return (as_images(row, shown.image_shape)[0] - least) / (most - least)


def _values(i: int, nearest: dict[str, Indices], shown: ShownRows) -> str:
    """The example beside the nearest of each form, in the features where these differ most."""
    rows = [shown.asked[i : i + 1], *(shown.stored[[found[0]]] for found in nearest.values())]
    values = np.concatenate([row.toarray() if sp.issparse(row) else row for row in rows])
    order = np.argsort(-np.ptp(values, axis=0), kind="stable")[:FEATURES]
    lines = [[shown.feature_names[j], *(f"{v:.4g}" for v in values[:, j])] for j in order]
    columns = ["feature", "this one", *(f"nearest, {name}" for name in nearest)]
    caption = "The features in which these rows differ most."
    return folded("values", table(columns, lines, caption=caption))
