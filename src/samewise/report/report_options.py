"""What a report can be given beside its examples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from samewise._typing import Matrix
from samewise.report.page import Section


@dataclass(frozen=True, eq=False)
class ReportOptions:
    """What a report says beside its numbers, how it shows rows, and how it measures.

    Attributes
    ----------
    title : str or None
        The heading; by default it names what was learned.
    about : iterable of str
        Sentences about the data and how the metric was learned.
    sections : iterable of Section
        More to show, after what is gained.
    shown : (rows, test rows) or None
        The examples as hard cases show them, where X and X_test are scaled.
    ids : (ids, test ids) or None
        What to call the examples; row numbers by default.
    feature_names : sequence of str or None
        Names of the features.
    image_shape : (height, width), (height, width, 3) or None
        Examples are images of this shape, and hard cases show them.
    n_neighbors : int
        Neighbors that decide.
    ks : iterable of int
        Ranks whose precision is in the table.
    n_pairs : int
        Pairs sampled from each part for verification.
    parameters : mapping or None
        Listed with the parameters of the learners.
    command : str or None
        The command that made the report.
    random_state : int, RandomState instance or None
        Seed for reproducible pairs.
    """

    title: str | None = None
    about: Iterable[str] = ()
    sections: Iterable[Section] = ()
    shown: tuple[Matrix, Matrix] | None = None
    ids: tuple[Sequence[Any], Sequence[Any]] | None = None
    feature_names: Sequence[str] | None = None
    image_shape: tuple[int, ...] | None = None
    n_neighbors: int = 3
    ks: Iterable[int] = (1, 5, 10)
    n_pairs: int = 10_000
    parameters: Mapping[str, Any] | None = None
    command: str | None = None
    random_state: Any = 0
