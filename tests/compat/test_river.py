"""River's own checks, and that what is learned along a stream is what its loop would be."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import numpy as np
import pytest

from samewise import POLA
from samewise.compat.river_stream import StreamMetric
from samewise.exceptions import InvalidInputError

EXAMPLES = [
    ({"a": float(a), "b": float(b), "c": float(c)}, "far" if a > 0 else "near")
    for a, b, c in np.random.default_rng(0).normal(size=(120, 3)) * [1, 3, 3]
]


def test_the_nearest_are_those_of_a_loop_over_the_window():
    stream, kept = StreamMetric(None, window=20, every=10), []
    for x, y in EXAMPLES:
        if kept:
            labels, distances = stream.nearest(x, 4)
            M = stream.root @ stream.root
            found = []
            for other, label in kept:
                v = np.array([other[name] - x[name] for name in "abc"])
                found.append((np.sqrt(v @ M @ v), label))
            found = sorted(found, key=lambda each: each[0])[:4]
            np.testing.assert_allclose(distances, [D for D, _ in found], rtol=1e-7, atol=1e-7)
            assert labels == [label for _, label in found]
        stream.learn(x, y)
        kept = [*kept, (x, y)][-20:]
        assert len(stream) == len(kept)
    # Only a tells the classes apart.
    M = stream.root @ stream.root
    assert M[0, 0] > 2 * max(M[1, 1], M[2, 2])


def test_new_features_get_columns_and_leave_the_others():
    stream = StreamMetric(POLA(), window=30, every=10)
    for x, y in EXAMPLES[:60]:
        stream.learn(x, y)
    before = stream.root.copy()
    stream.learn({"d": 2.0, "a": 1.0}, "far")
    assert stream.columns == {"a": 0, "b": 1, "c": 2, "d": 3}
    np.testing.assert_array_equal(stream.root[:3, :3], before)
    np.testing.assert_array_equal(stream.root[3], [0, 0, 0, 1])
    assert stream.nearest({"a": 1.0, "d": 2.0, "unknown": 7.0}, 1)[1][0] == pytest.approx(0)
    for x, y in EXAMPLES[60:]:
        stream.learn({**x, "d": 0.0}, y)
    assert stream.root.shape == (4, 4)


def test_what_is_refused_changes_nothing():
    stream = StreamMetric(None, window=30, every=10)
    stream.learn(*EXAMPLES[0])
    for value in ("red", None, np.nan, np.inf):
        with pytest.raises(InvalidInputError, match="Features must be finite numbers"):
            stream.learn({"a": 1.0, "e": value}, "far")
        assert len(stream) == 1 and "e" not in stream.columns
    for window, every in ((1, 10), (10, 0)):
        with pytest.raises(InvalidInputError, match="window must be at least 2 and every"):
            StreamMetric(None, window, every)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "river", None)
    for name in [name for name in sys.modules if name.startswith("samewise.compat.river")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=r"pip install 'samewise\[river\]'"):
        __import__("samewise.compat.river")


def checks():
    if find_spec("river") is None:
        return []
    from river.checks import yield_checks

    from samewise.compat.river import MetricKNN, MetricTransformer

    return [
        pytest.param(model, check, id=f"{type(model).__name__}:{check.__name__}")
        for model in (MetricKNN(window=100), MetricTransformer(window=100))
        for check in yield_checks(model)
    ]


@pytest.mark.parametrize("model, check", checks())
def test_rivers_own_checks(model, check):
    check(model.clone())


def test_image_segments():
    pytest.importorskip("river")
    from river import datasets, evaluate, metrics, preprocessing

    from samewise.compat.river import MetricKNN

    plain, learned = (
        evaluate.progressive_val_score(
            stream, preprocessing.StandardScaler() | model, metrics.Accuracy()
        ).get()
        for model in (MetricKNN(every=10**9), MetricKNN())
        for stream in [datasets.ImageSegments().take(900)]
    )
    assert learned > plain + 0.01


def test_mapped_features_have_the_learned_distance():
    pytest.importorskip("river")
    from samewise.compat.river import MetricTransformer

    model = MetricTransformer(window=50, every=20)
    assert model.transform_one({"a": 2}) == {"a": 2.0}
    for x, y in EXAMPLES:
        model.learn_one(x, y)
    one, two = (model.transform_one(x) for x, _ in EXAMPLES[:2])
    assert list(one) == ["a", "b", "c"]
    _, distances = model._stream.nearest(EXAMPLES[0][0], 50)
    D = np.sqrt(sum((one[name] - two[name]) ** 2 for name in one))
    v = np.array([EXAMPLES[0][0][name] - EXAMPLES[1][0][name] for name in "abc"])
    assert D == pytest.approx(np.linalg.norm(model._stream.root @ v))
    assert np.all(np.diff(distances) >= 0)
