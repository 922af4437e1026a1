"""River's estimators over a metric that is learned along a stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from river import base

from samewise.compat.river_stream import StreamMetric


class MetricTransformer(base.SupervisedTransformer):
    """Features mapped so that their Euclidean distance is one that is learned from labels.

    Parameters
    ----------
    learner : learner of pairs, default=None
        Has `init` and `partial_fit`, as `PassiveAggressive` (the default), `POLA` and `LEGO`.
    window : int, default=1000
        How many of the latest examples are kept, to make pairs with the next.
    every : int, default=50
        After so many pairs, two for each example, they are learned from.

    Notes
    -----
    The map is M^½, which has a column for each feature and changes little when M does, so that
    features keep their names. Features should be of a similar scale, as after a `StandardScaler`.

    Examples
    --------
    >>> from river import datasets, preprocessing  # doctest: +SKIP
    >>> from samewise.compat.river import MetricTransformer  # doctest: +SKIP
    >>> model = preprocessing.StandardScaler() | MetricTransformer()  # doctest: +SKIP
    >>> for x, y in datasets.ImageSegments().take(300):  # doctest: +SKIP
    ...     model.learn_one(x, y)
    """

    def __init__(self, learner: Any = None, window: int = 1000, every: int = 50) -> None:
        self.learner = learner
        self.window = window
        self.every = every
        self._stream = StreamMetric(learner, window, every)

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Learn from an example.

        Parameters
        ----------
        x : dict
            Features, numbers.
        y : label
            Its class.
        """
        self._stream.learn(x, y)

    def transform_one(self, x: dict[Any, Any]) -> dict[Any, float]:
        """Map features.

        Parameters
        ----------
        x : dict
            Features, numbers. Those that were never learned from stay as they are.

        Returns
        -------
        dict
            A value for each feature that was learned from or is given.
        """
        z = self._stream.embed(x)
        known = self._stream.columns
        return {name: float(z[place]) for name, place in known.items()} | {
            name: float(value) for name, value in x.items() if name not in known
        }


class MetricKNN(base.Classifier):
    """k-nearest neighbors among the latest examples, by a distance that is learned from them.

    Parameters
    ----------
    n_neighbors : int, default=3
        Number k of neighbors.
    learner : learner of pairs, default=None
        Has `init` and `partial_fit`, as `PassiveAggressive` (the default), `POLA` and `LEGO`.
    window : int, default=1000
        How many of the latest examples are kept.
    every : int, default=50
        After so many pairs, two for each example, they are learned from.
    weighted : bool, default=True
        Whether a neighbor's vote is weighted by the inverse of its distance.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing  # doctest: +SKIP
    >>> from samewise.compat.river import MetricKNN  # doctest: +SKIP
    >>> model = preprocessing.StandardScaler() | MetricKNN()  # doctest: +SKIP
    >>> stream = datasets.ImageSegments()  # doctest: +SKIP
    >>> evaluate.progressive_val_score(stream, model, metrics.Accuracy())  # doctest: +SKIP
    """

    def __init__(
        self,
        n_neighbors: int = 3,
        learner: Any = None,
        window: int = 1000,
        every: int = 50,
        weighted: bool = True,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.learner = learner
        self.window = window
        self.every = every
        self.weighted = weighted
        self._stream = StreamMetric(learner, window, every)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"window": 100}

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Learn from an example.

        Parameters
        ----------
        x : dict
            Features, numbers.
        y : label
            Its class.
        """
        self._stream.learn(x, y)

    def predict_proba_one(self, x: dict[Any, Any]) -> dict[Any, float]:
        """The part of the votes of the nearest examples that each class has.

        Parameters
        ----------
        x : dict
            Features, numbers.

        Returns
        -------
        dict
            For every label that was seen; empty before anything was learned.
        """
        labels, distances = self._stream.nearest(x, self.n_neighbors)
        votes = dict.fromkeys(self._stream.seen, 0.0)
        for label, distance in zip(labels, distances, strict=True):
            votes[label] += 1 / max(float(distance), 1e-12) if self.weighted else 1.0
        total = sum(votes.values())
        return {label: vote / total for label, vote in votes.items()}
