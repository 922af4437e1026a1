"""The report: measure, draw, and write one file."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

from samewise._typing import Matrix
from samewise.exceptions import InvalidInputError
from samewise.files.writing import write_atomically
from samewise.forms import Form
from samewise.learners import Cosine, Euclidean
from samewise.plots.images import check_image_shape
from samewise.protocols import Gain, Measured, evaluate, gain
from samewise.report.cases import Shown, hard_cases
from samewise.report.drawings import Subject, drawings
from samewise.report.making import making, version
from samewise.report.page import Section, page, paragraph, require_matplotlib
from samewise.report.results import results, tiles, what_was_learned

__all__ = ["Report", "write_report"]

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
    *,
    title: str | None = None,
    about: Iterable[str] = (),
    sections: Iterable[Section] = (),
    shown: tuple[Matrix, Matrix] | None = None,
    ids: tuple[Sequence[Any], Sequence[Any]] | None = None,
    feature_names: Sequence[str] | None = None,
    image_shape: tuple[int, ...] | None = None,
    n_neighbors: int = 3,
    ks: Iterable[int] = (1, 5, 10),
    n_pairs: int = 10_000,
    parameters: Mapping[str, Any] | None = None,
    command: str | None = None,
    random_state: Any = 0,
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
    title : str, optional
    about : iterable of str
        Sentences about the data and how the metric was learned.
    sections : iterable of Section
        More to show, after what is gained.
    shown : (rows, test rows), optional
        The examples as hard cases show them, where X and X_test are scaled.
    ids : (ids, test ids), optional
        What to call the examples; row numbers by default.
    feature_names : sequence of str, optional
    image_shape : (height, width) or (height, width, 3), optional
        Examples are images of this shape, and hard cases show them.
    n_neighbors, n_pairs, random_state
        As for `samewise.protocols.evaluate`.
    ks : iterable of int
        Ranks whose precision is in the table.
    parameters : mapping, optional
        Listed with the parameters of the learners.
    command : str, optional
        The command that made the report.

    Returns
    -------
    Report
        The numbers.

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
    require_matplotlib()
    start = time.perf_counter()
    named = _named(learned)
    X, labels = _labeled(X, y, "X", "y")
    X_test, wanted = _labeled(X_test, y_test, "X_test", "y_test")
    display = _shown((X, X_test), (labels, wanted), shown, ids, feature_names, image_shape)
    ks = sorted(set(ks))
    forms: dict[str, Form] = {
        "Euclidean": Euclidean().fit(X).metric_,
        "cosine": Cosine().fit(X).metric_,
    } | {name: getattr(one, "metric_", one) for name, one in named.items()}
    measured = [
        evaluate(
            form,
            X,
            labels,
            X_test,
            wanted,
            name=name,
            n_neighbors=n_neighbors,
            ks=sorted({*ks, *_CURVE}),
            n_pairs=n_pairs,
            random_state=random_state,
        )
        for name, form in forms.items()
    ]
    by_name = {m.name: m for m in measured}
    gains = [
        gain(by_name[baseline], by_name[name])
        for name in named
        for baseline in ("Euclidean", "cosine")
    ]
    first = next(iter(named))
    # What a distance is learned from is the Euclidean one, and a similarity from the cosine.
    before = "Euclidean" if forms[first].is_distance else "cosine"
    compared = {before: forms[before]} | {name: forms[name] for name in named}
    subject = Subject(
        compared,
        {name: one for name, one in named.items() if not isinstance(one, Form)},
        X,
        labels,
        X_test,
        wanted,
        None if feature_names is None else list(map(str, feature_names)),
        random_state,
    )
    pair = by_name[before], by_name[first]
    parts = [
        Section("What it gains", results(measured, gains, pair, ks, n_neighbors)),
        *sections,
        Section("Pictures", drawings(subject, measured)),
        Section(
            "Hard cases",
            hard_cases({name: forms[name] for name in (before, first)}, pair, X, X_test, display),
        ),
    ]
    seconds = time.perf_counter() - start
    parts.append(
        Section(
            "How it was made",
            making(named, parameters, command, n_neighbors, n_pairs, seconds),
        )
    )
    title = f"What {' and '.join(named)} learned" if title is None else title
    lead = [paragraph(sentence) for sentence in about]
    lead += [what_was_learned(named, forms, X, labels, wanted), tiles(*pair, n_neighbors)]
    written = f"Written by samewise {version('samewise')}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC."
    text = page(title, lead, parts, written)
    write_atomically(path, [text.encode("utf-8")])
    return Report(measured, gains, seconds)


def _named(learned: Any) -> dict[str, Any]:
    named = learned if isinstance(learned, Mapping) else {_name_of(learned): learned}
    if not named:
        raise InvalidInputError("A report needs at least one form or learner. Got none.")
    for name, one in named.items():
        if not isinstance(name, str) or name in ("", "Euclidean", "cosine"):
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


def _labeled(X: Any, y: Any, *names: str) -> tuple[Matrix, Any]:
    try:
        X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name=names[0])
    except ValueError as error:
        raise InvalidInputError(str(error)) from error
    labels = np.asarray(y)
    if labels.shape != (X.shape[0],):
        raise InvalidInputError(
            f"{names[1]} must have one label for each of the {X.shape[0]} rows of {names[0]}. "
            f"Got shape {labels.shape}."
        )
    return X, labels


def _shown(
    given: tuple[Matrix, Matrix],
    labels: tuple[NDArray[Any], NDArray[Any]],
    shown: tuple[Matrix, Matrix] | None,
    ids: tuple[Sequence[Any], Sequence[Any]] | None,
    feature_names: Sequence[str] | None,
    image_shape: tuple[int, ...] | None,
) -> Shown:
    rows = given if shown is None else shown
    called = [
        [f"row {i}" for i in range(given[part].shape[0])]
        if ids is None
        else list(map(str, ids[part]))
        for part in range(2)
    ]
    for part, as_shown, names in zip(given, rows, called, strict=True):
        if as_shown.shape[0] != part.shape[0] or len(names) != part.shape[0]:
            raise InvalidInputError(
                f"shown and ids must have an entry for each example. Got {as_shown.shape[0]} rows "
                f"and {len(names)} ids for {part.shape[0]} examples."
            )
    d = rows[0].shape[1]
    if feature_names is None:
        feature_names = [f"feature {j}" for j in range(d)]
    elif len(feature_names) != d:
        raise InvalidInputError(
            f"feature_names must name the {d} features. Got {len(feature_names)} names."
        )
    if image_shape is not None:
        image_shape = check_image_shape(image_shape, d)
    return Shown(*rows, *labels, called[0], called[1], list(map(str, feature_names)), image_shape)
