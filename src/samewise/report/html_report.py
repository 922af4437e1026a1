"""The report: measure, draw, and write one file."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from numpy.typing import ArrayLike

from samewise._typing import Matrix
from samewise.exceptions import InvalidInputError
from samewise.files.writing import write_atomically
from samewise.forms import Form
from samewise.learners import Cosine, Euclidean
from samewise.plots._axes import require_matplotlib
from samewise.plots.images import check_image_shape
from samewise.protocols import Measured, gain, measure
from samewise.protocols.row_splits import Parts
from samewise.report.cases import ShownRows, hard_cases
from samewise.report.drawings import Subject, drawings
from samewise.report.page import Section, page, paragraph
from samewise.report.provenance import provenance, version
from samewise.report.report_options import ReportOptions
from samewise.report.results import results, tiles, what_was_learned
from samewise.scores import Gain
from samewise.supervision.supervision_checks import labeled_rows

_BASELINES = {"Euclidean": Euclidean, "cosine": Cosine}
"""What everything that was learned is compared with."""
_CURVE = (1, 2, 5, 10, 20, 50)
"""Where precision is measured for the curve, besides the ks of the table."""


@dataclass(frozen=True, eq=False)
class Report:
    """The numbers of a report.

    Attributes
    ----------
    measured : list of Measured
        Euclidean, cosine, then what was learned.
    gains : list of Gain
        Of each learned metric, over Euclidean and over cosine.
    seconds : float
        What measuring and drawing took.
    """

    measured: list[Measured]
    gains: list[Gain]
    seconds: float


def write_report(
    path: str | os.PathLike[str],
    learned: Any,
    X: Matrix,
    y: ArrayLike,
    X_test: Matrix,
    y_test: ArrayLike,
    options: ReportOptions | None = None,
) -> Report:
    """Write one HTML file about what was learned: what it gains, pictures, and hard cases.

    The file needs nothing beside it and no network, and is readable on a phone and in the dark.

    Parameters
    ----------
    path : str or path
        Where to write. An older file is replaced whole or not at all.
    learned : Form, fitted learner, or dict of str to these
        By name, if there is more than one; hard cases are those of the first. A learner also
        shows its learning curve and parameters.
    X : array or CSR matrix of shape (n, d)
        Training examples: what neighbors are found among.
    y : array of shape (n,)
        Their labels.
    X_test : array or CSR matrix of shape (n_test, d)
        Examples that had no part in learning.
    y_test : array of shape (n_test,)
        Their labels.
    options : ReportOptions, default=None
        What the report says beside its numbers, how it shows rows, and how it measures.

    Returns
    -------
    Report
        The numbers.

    See Also
    --------
    evaluate : The numbers without the file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.datasets import load_wine
    >>> from samewise import LDA, write_report
    >>> X, y = load_wine(return_X_y=True)
    >>> learner = LDA().fit(X[::2], y[::2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "report.html"
    ...     report = write_report(path, learner, X[::2], y[::2], X[1::2], y[1::2])
    ...     "<h1>What LDA learned</h1>" in path.read_text(encoding="utf-8")
    True
    >>> [gain.mark for gain in report.gains]
    ['≫', '≫']
    """
    require_matplotlib("A report")
    start = time.perf_counter()
    options = options or ReportOptions()
    named = _named(learned)
    parts = *labeled_rows(X, y), *labeled_rows(X_test, y_test, ("X_test", "y_test"))
    display = _shown(parts, options)
    subject = _subject(named, parts, options, display.asked_ids)
    measured = _measured(subject, options)
    by_name = {m.name: m for m in measured}
    gains = [gain(by_name[plain], by_name[name]) for name in named for plain in _BASELINES]
    # The first form is the one before; hard cases are those of the first that was learned.
    before, first = list(subject.forms)[:2]
    pair = by_name[before], by_name[first]
    ks = sorted(set(options.ks))
    sections = [
        Section("What it gains", results(measured, gains, pair, ks, options.n_neighbors)),
        *options.sections,
        Section("Pictures", drawings(subject, measured)),
        Section("Hard cases", hard_cases(subject, pair, display)),
    ]
    seconds = time.perf_counter() - start
    sections.append(Section("How it was made", provenance(named, options, seconds)))
    title = f"What {' and '.join(named)} learned" if options.title is None else options.title
    lead = [paragraph(sentence) for sentence in options.about]
    lead += [what_was_learned(named, subject), tiles(*pair, options.n_neighbors)]
    written = f"Written by samewise {version('samewise')}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC."
    write_atomically(path, [page(title, lead, sections, written).encode("utf-8")])
    return Report(measured, gains, seconds)


def _named(learned: Any) -> dict[str, Any]:
    named = learned if isinstance(learned, Mapping) else {_name_of(learned): learned}
    if not named:
        raise InvalidInputError("A report needs at least one form or learner. Got none.")
    for name, one in named.items():
        if not isinstance(name, str) or name in ("", *_BASELINES):
            raise InvalidInputError(
                f"What was learned must have a name other than 'Euclidean' and 'cosine', which are "
                f"measured anyway. Got {name!r}."
            )
        if not isinstance(getattr(one, "metric_", one), Form):
            raise InvalidInputError(
                f"A report is about a Form, or a fitted learner with a metric_. Got "
                f"{type(one).__name__}."
            )
    return dict(named)


def _name_of(one: Any) -> str:
    return "learned" if isinstance(one, Form) else type(one).__name__


def _subject(
    named: dict[str, Any], parts: Parts, options: ReportOptions, ids: Sequence[str]
) -> Subject:
    """The form to begin with and those that were learned, with the examples."""
    forms = {name: getattr(one, "metric_", one) for name, one in named.items()}
    # What a distance is learned from is the Euclidean one, and a similarity from the cosine.
    before = "Euclidean" if next(iter(forms.values())).is_distance else "cosine"
    names = options.feature_names
    return Subject(
        {before: _BASELINES[before]().fit(parts[0]).metric_} | forms,
        {name: one for name, one in named.items() if not isinstance(one, Form)},
        *parts,
        None if names is None else list(map(str, names)),
        options.random_state,
        ids,
    )


def _measured(subject: Subject, options: ReportOptions) -> list[Measured]:
    """The baselines, then what was learned."""
    plain = {name: learner().fit(subject.X).metric_ for name, learner in _BASELINES.items()}
    return [
        measure(
            form,
            *subject.parts,
            name=name,
            n_neighbors=options.n_neighbors,
            ks=sorted({*options.ks, *_CURVE}),
            n_pairs=options.n_pairs,
            random_state=options.random_state,
        )
        for name, form in (plain | subject.forms).items()
    ]


def _shown(parts: Parts, options: ReportOptions) -> ShownRows:
    """How examples are shown in hard cases."""
    given = parts[0], parts[2]
    rows = given if options.shown is None else options.shown
    ids = options.ids or [[f"row {i}" for i in range(part.shape[0])] for part in given]
    called = [list(map(str, of_part)) for of_part in ids]
    for part, as_shown, called_so in zip(given, rows, called, strict=True):
        if as_shown.shape[0] != part.shape[0] or len(called_so) != part.shape[0]:
            raise InvalidInputError(
                f"shown and ids must have an entry for each example. Got {as_shown.shape[0]} rows "
                f"and {len(called_so)} ids for {part.shape[0]} examples."
            )
    d = rows[0].shape[1]
    feature_names = options.feature_names
    if feature_names is None:
        feature_names = [f"feature {j}" for j in range(d)]
    if len(feature_names) != d:
        raise InvalidInputError(
            f"feature_names must name the {d} features. Got {len(feature_names)} names."
        )
    shape = None if options.image_shape is None else check_image_shape(options.image_shape, d)
    names = list(map(str, feature_names))
    return ShownRows(*rows, parts[1], parts[3], called[0], called[1], names, shape)
