"""Compiling in advance: one small run of everything whose loops are compiled."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp

from samewise._typing import Matrix
from samewise.catalog import LEARNERS, WHERE
from samewise.decide import KNNClassifier
from samewise.files.state import Saved
from samewise.files.storable import restored, stored
from samewise.kernels.compile_clock import CLOCK
from samewise.scores import retrieval_scores
from samewise.search import Index
from samewise.supervision import Pairs, Triplets

_WIDE = 160
"""Features beyond which the engine goes by blocks."""


def warm_up(watch: Callable[[str], object] | None = None) -> float:
    """Compile all loops now, once, so that nothing compiles at its first use.

    What is compiled is kept in a folder of the user's cache directory (below NUMBA_CACHE_DIR if it
    is set), which is named by the version of samewise and a hash of its loops. Where everything is
    there already it only runs.

    Parameters
    ----------
    watch : callable, default=None
        Called with a line of text about what is done.

    Returns
    -------
    float
        Seconds of wall time spent on compiling.

    Examples
    --------
    >>> import samewise
    >>> samewise.warm_up() >= 0.0  # doctest: +SKIP
    True
    """
    before = CLOCK.seconds
    with warnings.catch_warnings():
        # Data this small are no use to anyone, as the learners say.
        warnings.simplefilter("ignore")
        for what, run in _runs():
            if watch is not None:
                watch(what)
            run()
    return CLOCK.seconds - before


def _runs() -> Iterator[tuple[str, Callable[[], object]]]:
    # What a service and the embeddings of users need comes first.
    yield "LiveAdapter", _adapter
    for entry in LEARNERS:
        if entry.learns_from != ("rows",):
            yield entry.name, partial(_learner, entry.name)
    yield "learners of many features", _wide
    yield "learners of sparse rows", _sparse
    yield "classifiers and search", _classifiers
    yield "filters", _filters


def _examples(d: int = 5) -> tuple[Matrix, Any]:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    return rng.normal(size=(60, d)) + 0.5 * y[:, None], y


def _named(name: str) -> Any:
    return getattr(import_module(WHERE[name]), name)


def _learner(name: str) -> None:
    X, y = _examples()
    cls = _named(name)
    settings = {"max_iter": 3} if "max_iter" in cls().get_params() else {}
    for rows in (X, X.astype(np.float32)):
        learner = cls(**settings).fit(rows, rows[:, 0] if name == "MLKR" else y)
        if name == "PassiveAggressive":
            # A short portion goes one example at a time.
            pairs = Pairs.from_labels(rows, y, n_pairs=3, random_state=0)
            learner.set_params(psd="end").fit(pairs)


def _adapter() -> None:
    # Imported where they are needed, as filters below: commands that learn load this module too.
    from samewise.adapt import Click, LiveAdapter, Thumb
    from samewise.adapt.item_units import single
    from samewise.adapt.own_memory import OwnMemory

    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        items: Any = rng.normal(size=(400, 16)).astype(dtype)
        items /= np.linalg.norm(items, axis=1, keepdims=True)
        adapter = LiveAdapter(items=items, memory=40, random_state=0).fit(items)
        for i in range(60):
            shown = adapter.slots(items[i]).rows
            adapter.feedback(items[i], shown, np.resize([1, -1, 0], len(shown)), user=i % 3)
        adapter.feedback(Thumb(items[0], 1, True))
        adapter.feedback(Click(items[0], [3, 4, 5], [1]))
        adapter.rank(items[0], k=10)
        adapter.embed_query(items[:20])
        own = OwnMemory(adapter._fitted, 4)
        own.hear(single(items[0]), single(items[1:3]), np.array([1, -1]), 1.0)
        adapter.promote()
        adapter.forget(users=[1])
        state = stored(adapter)
        restored(Saved(state.arrays, state.values), LiveAdapter)
        adapter = LiveAdapter(items=items, random_state=0).fit(items)
        adapter.warm_start(items[:60], range(60))


def _wide() -> None:
    X, y = _examples(_WIDE)
    for rows in (X, X.astype(np.float32)):
        _streams(rows, y)


def _sparse() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    S = sp.random_array((60, 400), density=0.01, format="csr", rng=rng)
    for rows in (S, S.astype(np.float32)):
        _streams(rows, y)


def _streams(rows: Matrix, y: Any) -> None:
    pairs = Pairs.from_labels(rows, y, n_pairs=300, random_state=0)
    for psd in ("each", "end"):
        _named("PassiveAggressive")(psd=psd).fit(pairs)
    triplets = Triplets.from_labels(rows, y, n_triplets=300, random_state=0)
    for name in ("OASIS", "FactoredAROMA", "DiagonalAROMA"):
        _named(name)(average="uniform").fit(triplets)


def _classifiers() -> None:
    X, y = _examples()
    for rows in (X, X.astype(np.float32)):
        model = KNNClassifier(_named("LMNN")(max_iter=3), rule="energy").fit(rows, y)
        model.predict(rows)
        many = np.tile(rows, (40, 1))
        Index(None, many, route="blocked").query(rows, 3)
        form = _named("Mahalanobis").identity(rows.shape[1])
        retrieval_scores(form.blocks(rows, rows), y, y)


def _filters() -> None:
    from samewise.filtering import (
        BatchTopicFilter,
        Filter,
        NearestFilter,
        PAUMFilter,
        PerceptronFilter,
        PolaFilter,
        TopicFilter,
    )

    texts = ["cocoa beans were dear", "gold ore", "rain and snow", "an ounce of gold", "beans"]
    topics = {"cocoa": "cocoa beans", "gold": "gold"}
    kinds: tuple[type[Filter], ...] = (
        TopicFilter,
        PerceptronFilter,
        PAUMFilter,
        NearestFilter,
    )
    for cls in kinds:
        one = cls().fit(topics)
        for name, text in enumerate(texts):
            for decision in one.observe(text, str(name)):
                one.feedback(str(name), decision.topic, bool(name % 2))
    BatchTopicFilter().fit(topics).decide(texts)
    vectors = PolaFilter().fit({"north": [0.0, 1.0]})
    for name in range(6):
        near = name % 2 == 0
        vectors.observe(np.array([0.1, 1.0] if near else [1.0, 0.0]), str(name))
        vectors.feedback(str(name), "north", near)
