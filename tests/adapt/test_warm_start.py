"""A start from pairs: what it gains, what is held out, and that it stays through everything."""

from __future__ import annotations

import numpy as np
import pytest

from samewise import LiveAdapter, load
from samewise.adapt.event_reading import ItemStore
from samewise.adapt.item_units import ItemUnits
from samewise.adapt.warm_start import (
    SHARPNESS,
    RelevantPairs,
    WarmStarter,
    _Ranks,
    read_pairs,
)
from samewise.exceptions import FileFormatError, InvalidInputError


class Questions:
    """Items, and questions about them that are off in four directions."""

    def __init__(self, world, seed=0, noise=0.6):
        random = np.random.RandomState(seed)
        self.items = world.items
        self.queries = self.items.copy()
        self.queries[:, :4] += noise * random.randn(len(self.items), 4).astype(np.float32)
        self.relevant = np.arange(len(self.items))

    def adapter(self, **parameters):
        return LiveAdapter(items=self.items, random_state=0, **parameters).fit(self.items)


@pytest.fixture
def questions(make_world):
    return Questions(make_world(n=600, d=16))


def rank_of(vectors, items):
    """The rank of item i for query i, by a plain loop."""
    return np.array([1 + np.sum(items @ q > items[i] @ q) for i, q in enumerate(vectors)])


def test_what_helps_is_served_as_version_one(questions):
    adapter = questions.adapter().warm_start(questions.queries, questions.relevant)
    found = adapter.warm_start_
    assert found.n_passes > 1 and found.served == ("rest", "first")
    assert found.after["MRR"] > found.before["MRR"] + 0.1
    assert adapter.n_events_ == 0 and [v.number for v in adapter.versions_] == [1]
    history = [(c["event"], c["place"], c["version"], c["why"]) for c in adapter.guard_.history]
    assert history == [(0, "rest", 1, "warm start"), (0, "first", 1, "warm start")]
    served, live = adapter.embed_query(questions.queries), adapter.live.embed_query
    np.testing.assert_array_equal(served, live(questions.queries))
    fresh = Questions(type("Same", (), {"items": questions.items}), seed=1)
    before = rank_of(fresh.queries, questions.items)
    after = rank_of(adapter.embed_query(fresh.queries), questions.items)
    assert np.mean(1 / after) > np.mean(1 / before) + 0.1
    assert "served: rest and first." in str(found) and "rest: better, p < 0.001" in str(found)
    assert adapter.rollback() == 0
    np.testing.assert_array_equal(adapter.embed_query(fresh.queries), fresh.queries)


def test_pairs_that_say_nothing_leave_the_start(questions):
    random = np.random.RandomState(5)
    served = 0
    for _ in range(20):
        adapter = LiveAdapter(items=questions.items, random_state=random).fit(questions.items)
        adapter.warm_start(questions.queries, random.permutation(len(questions.items)))
        served += bool(adapter.warm_start_.served)
        if not adapter.warm_start_.n_passes:
            assert "The start is kept" in str(adapter.warm_start_)
            Q = questions.queries
            np.testing.assert_array_equal(adapter.live.embed_query(Q), Q)
    # At 5 % for each of two places; one more for the luck of twenty.
    assert served <= 3


def test_without_a_guard_it_is_where_the_live_form_begins(questions):
    adapter = questions.adapter(guard=None).warm_start(questions.queries, questions.relevant)
    guarded = questions.adapter().warm_start(questions.queries, questions.relevant)
    Q = questions.queries
    np.testing.assert_array_equal(adapter.embed_query(Q), guarded.live.embed_query(Q))


def test_ids_vectors_and_several_are_the_same(questions, tmp_path):
    ids = questions.relevant.tolist()
    vectors = questions.items
    random = np.random.RandomState(0)
    other = [int(k) for k in random.permutation(ids)]
    several = [[a, b] if a != b else [a] for a, b in zip(ids, other, strict=True)]
    kinds = [
        [ids, np.array(ids), vectors, [[i] for i in ids], list(vectors), vectors[:, None]],
        [several, [vectors[entry] for entry in several]],
    ]
    for kind in kinds:
        saved = set()
        for relevant in kind:
            adapter = questions.adapter().warm_start(questions.queries, relevant)
            adapter.save(tmp_path / "adapter")
            saved.add((tmp_path / "adapter").read_bytes())
        assert len(saved) == 1


def test_it_is_kept_in_files_and_replays(questions, world, make_world, tmp_path):
    def begun():
        return questions.adapter().warm_start(questions.queries, questions.relevant)

    world = make_world(n=600, d=16)
    events = [world.judged() for _ in range(60)]

    def hear(adapter, some):
        for k in some:
            q, shown, y = events[k]
            adapter.feedback(questions.items[q], shown, y, user="a" if k % 2 else "b", event=k)
        return adapter

    def saved(adapter):
        adapter.save(tmp_path / "adapter")
        return (tmp_path / "adapter").read_bytes()

    whole = saved(hear(begun(), range(60)))
    half = hear(begun(), range(30))
    half.save(tmp_path / "half")
    loaded = load(tmp_path / "half")
    loaded.items = questions.items
    assert saved(hear(loaded, range(30, 60))) == whole
    assert str(loaded.warm_start_) == str(half.warm_start_)
    forgetful = hear(begun(), range(60))
    assert forgetful.forget(users=["a"]) == 30
    without = hear(begun(), range(0, 60, 2))
    without.log_.seen = dict(forgetful.log_.seen)
    assert saved(forgetful) == saved(without)
    forgetful.reset()
    assert saved(forgetful) == saved(begun())
    fitted = forgetful.fit(questions.items)
    assert fitted.warm_start_ is None and not fitted.versions_


def test_a_changed_report_in_a_file_is_refused(questions, tmp_path):
    adapter = questions.adapter().warm_start(questions.queries, questions.relevant)
    D, found = adapter._warm
    for wrong in ({"served": ("last",)}, {"n_passes": -1}, {"before": {"MRR": 0.1}}):
        adapter._warm = D, type(found)(**(vars(found) | wrong))
        adapter.save(tmp_path / "adapter")
        with pytest.raises(FileFormatError):
            load(tmp_path / "adapter")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda q, r: (q[:10], r[:10]), "at least 20 queries"),
        (lambda q, r: (q, r[:-1]), "an entry for each of the 600 queries. Got 599"),
        (lambda q, r: (q, 7), "an entry for each of the 600 queries. Got something else"),
        (lambda q, r: (q[:, :5], r), "must have the 16 features"),
        (lambda q, r: (np.where(q > 0.9, np.nan, q), r), "finite"),
        (lambda q, r: (1e9 * q, r), "at most 1e\\+06 in size"),
        (lambda q, r: (q, r + 1), "integers from 0 to 599"),
        (lambda q, r: (q, [[]] * 600), "a row for each vector"),
        (lambda q, r: (q, q[:, :5]), "must have the 16 features"),
        (lambda q, r: (q, [[1, 1]] * 600), "Each item may be shown once"),
    ],
)
def test_what_is_refused_leaves_no_trace(questions, change, message, tmp_path):
    adapter = questions.adapter().warm_start(questions.queries, questions.relevant)
    adapter.save(tmp_path / "before")
    with pytest.raises(InvalidInputError, match=message):
        adapter.warm_start(*change(questions.queries, questions.relevant))
    adapter.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


def test_it_comes_before_the_first_event(questions):
    adapter = questions.adapter()
    adapter.feedback(questions.queries[0], [0, 1], [1, -1])
    with pytest.raises(InvalidInputError, match="before the first event"):
        adapter.warm_start(questions.queries, questions.relevant)
    adapter.reset()
    assert adapter.warm_start(questions.queries, questions.relevant).warm_start_.n_passes


def test_without_a_store_relevant_items_are_ranked_among_each_other(questions):
    adapter = LiveAdapter(random_state=0).fit(questions.items)
    adapter.warm_start(questions.queries, questions.items)
    assert adapter.warm_start_.served


# Against plain loops


def test_ranks_are_those_of_a_plain_loop(questions):
    items, random = questions.items, np.random.RandomState(1)
    # The first ten queries are items themselves, which are not ranked among their answers.
    Q = np.concatenate([items[:10], questions.queries[10:40]])
    several = [random.choice(600, 3, replace=False) + 0 for _ in Q]
    pairs = read_pairs(Q, [list(map(int, entry)) for entry in several], ItemStore(items, 16))
    found = _Ranks(pairs, items).of(Q)
    for i, (q, mine) in enumerate(zip(Q, several, strict=True)):
        scores = items @ q
        best = scores[mine].max()
        limit = best + 1e-6 * np.linalg.norm(q)
        above = [j for j in range(600) if scores[j] > limit and not (i < 10 and j == i)]
        assert found[i] == 1 + len(above)


def test_directions_are_those_of_a_plain_loop(questions):
    items, random = questions.items, np.random.RandomState(2)
    units = ItemUnits.of(items, np.random.RandomState(0))
    starter = WarmStarter(units, None, ItemStore(items, 16), random)
    E, own = questions.queries[:7], items[:7]
    against, others = items[:40], random.rand(7, 40) < 0.9
    found = starter._directions(E, own, against, others)
    near = units.mean_similarity + units.gap
    for i in range(7):
        kept = [j for j in range(40) if others[i, j] and own[i] @ against[j] < near]
        rows = np.array([own[i], *against[kept]], dtype=np.float64)
        w = np.exp(SHARPNESS / units.gap * (rows @ E[i] - own[i] @ E[i]))
        w /= w.sum()
        np.testing.assert_allclose(found[i], own[i] - w @ rows, atol=1e-5)
    assert (found != 0).any()


def test_a_part_has_the_pairs_of_its_queries():
    pairs = RelevantPairs(np.eye(3), np.arange(8.0).reshape(4, 2), np.array([0, 1, 1, 2]))
    part = pairs.part(np.array([1, 2]))
    assert part.of.tolist() == [0, 0, 1] and part.items[:, 0].tolist() == [2.0, 4.0, 6.0]
