"""River's interface to a distance that is learned along a stream of dicts with labels.

It needs the package river: ``pip install 'samewise[river]'``.

Examples
--------
>>> from river import datasets, evaluate, metrics, preprocessing  # doctest: +SKIP
>>> from samewise.compat.river import MetricKNN  # doctest: +SKIP
>>> model = preprocessing.StandardScaler() | MetricKNN()  # doctest: +SKIP
>>> stream = datasets.ImageSegments()  # doctest: +SKIP
>>> evaluate.progressive_val_score(stream, model, metrics.Accuracy())  # doctest: +SKIP
"""

try:
    import river  # noqa: F401
except ImportError as error:
    raise ImportError(
        "samewise.compat.river needs the package river: pip install 'samewise[river]'."
    ) from error

from samewise.compat.river.estimators import MetricKNN, MetricTransformer

__all__ = ["MetricKNN", "MetricTransformer"]
