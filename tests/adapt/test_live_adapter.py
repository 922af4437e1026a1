"""What an adapter promises: refused input, ids, replay, versions, files."""

from __future__ import annotations

import numpy as np
import pytest

import samewise
from samewise import Bilinear, LiveAdapter
from samewise.adapt import Click, Different, Judged, Same, Thumb
from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.files import container


def taught(world, n=40, **parameters):
    adapter = LiveAdapter(items=world.items, random_state=0, **parameters).fit(world.items)
    for t in range(n):
        q, shown, y = world.judged()
        adapter.feedback(world.items[q], shown, y, user=t % 3, event=f"e{t}")
    return adapter


def written(adapter, path):
    adapter.save(path)
    return path.read_bytes()


def test_the_start_is_served_until_something_is_promoted(world):
    adapter = taught(world, 60)
    Q = world.items[:40]
    np.testing.assert_array_equal(adapter.embed_query(Q), Q)
    np.testing.assert_array_equal(adapter.start.embed_query(Q), Q)
    assert not np.allclose(adapter.live.embed_query(Q), Q, atol=1e-2)


def test_what_was_judged_is_learned(world):
    adapter = LiveAdapter(guard=None, items=world.items, random_state=0).fit(world.items)
    right = {"start": [], "live": []}
    for t in range(400):
        q, shown, y = world.judged()
        if t >= 300:
            for name, found in right.items():
                scores = world.items[shown] @ getattr(adapter, name).embed_query(world.items[q])
                found.append((scores[y > 0][:, None] > scores[y < 0]).mean())
        adapter.feedback(world.items[q], shown, y)
    assert np.mean(right["live"]) > np.mean(right["start"]) + 0.05


BAD = {
    "another dimension": (lambda w: ([1.0, 2.0], [0, 1], [1, -1]), "one vector of 12 numbers"),
    "not finite": (lambda w: (np.full(12, np.nan), [0, 1], [1, -1]), "must be finite"),
    "item not finite": (
        lambda w: (w.items[0], np.full((2, 12), np.inf), [1, -1]),
        "must be finite",
    ),
    "items of another dimension": (
        lambda w: (w.items[0], np.ones((2, 5)), [1, -1]),
        "rows of 12 numbers",
    ),
    "an unknown id": (lambda w: (w.items[0], [0, 400], [1, -1]), "from 0 to 399"),
    "a negative id": (lambda w: (w.items[0], [0, -1], [1, -1]), "from 0 to 399"),
    "an answer of 2": (lambda w: (w.items[0], [0, 1], [1, 2]), r"\+1 \(liked\), -1"),
    "half an answer": (lambda w: (w.items[0], [0, 1], [1, 0.5]), r"\+1 \(liked\), -1"),
    "an answer missing": (lambda w: (w.items[0], [0, 1], [1]), "for each of the 2 shown"),
    "an empty list": (lambda w: (w.items[0], [], []), "at least one"),
    "an item twice": (lambda w: (w.items[0], [3, 3], [1, -1]), "shown once"),
    "a click outside": (lambda w: (Click(w.items[0], [0, 1], [2]),), "from 0 to 1"),
    "teams of another length": (
        lambda w: (Click(w.items[0], [0, 1], [1], teams=[1]),),
        "teams must be",
    ),
    "a candidate outside": (
        lambda w: (Judged(w.items[0], [0, 1], [1, -1], candidate=2),),
        "candidate must be a place",
    ),
    "a thumb for an unknown id": (lambda w: (Thumb(w.items[0], 1000),), "from 0 to 399"),
}


@pytest.mark.parametrize("case", BAD, ids=str)
def test_what_is_refused_leaves_no_trace(world, case, tmp_path):
    adapter = taught(world, 10)
    before = written(adapter, tmp_path / "before")
    make, message = BAD[case]
    with pytest.raises(InvalidInputError, match=message):
        adapter.feedback(*make(world))
    assert written(adapter, tmp_path / "after") == before


@pytest.mark.parametrize("weight", [-1.0, np.nan, "1", 1e9], ids=str)
def test_a_weight_is_a_number(world, weight):
    adapter = taught(world, 1)
    with pytest.raises(InvalidInputError, match="weight must be"):
        adapter.feedback(world.items[0], [1, 2], [1, -1], weight=weight)


def test_ids_need_a_store(world):
    adapter = LiveAdapter(random_state=0).fit(world.items)
    with pytest.raises(InvalidInputError, match="no item store"):
        adapter.feedback(world.items[0], [1, 2], [1, -1])


def test_a_store_may_be_a_function(world, tmp_path):
    def find(ids):
        return [world.items[int(id[1:])] for id in ids]

    by_name = LiveAdapter(items=find, random_state=0).fit(world.items)
    by_row = LiveAdapter(items=world.items, random_state=0).fit(world.items)
    for _ in range(5):
        q, shown, y = world.judged()
        by_name.feedback(world.items[q], [f"i{row}" for row in shown], y)
        by_row.feedback(world.items[q], shown, y)
    Q = world.items[:9]
    np.testing.assert_array_equal(by_name.live.embed_query(Q), by_row.live.embed_query(Q))
    with pytest.raises(InvalidInputError, match="gave no vectors"):
        by_name.feedback(world.items[0], ["i1", "i999"], [1, -1])


def test_an_event_counts_once(world, tmp_path):
    adapter = taught(world, 10)
    before = written(adapter, tmp_path / "before")
    q, shown, y = world.judged()
    assert not adapter.feedback(world.items[q], shown, y, event="e3")
    assert written(adapter, tmp_path / "after") == before
    assert adapter.feedback(world.items[q], shown, y, event="new")


def test_a_loaded_adapter_continues_as_the_saved_one(world, tmp_path):
    adapter = taught(world, 60, memory=25, half_life=50.0)
    adapter.promote()
    for _ in range(40):
        q, shown, y = world.judged()
        adapter.feedback(world.items[q], shown, y)
    adapter.save(tmp_path / "adapter")
    loaded = samewise.load(tmp_path / "adapter")
    loaded.items = world.items
    assert written(loaded, tmp_path / "again") == (tmp_path / "adapter").read_bytes()
    for _ in range(60):
        q, shown, y = world.judged()
        adapter.feedback(world.items[q], shown, y)
        loaded.feedback(world.items[q], shown, y)
    adapter.slots(world.items[0])
    loaded.slots(world.items[0])
    assert written(adapter, tmp_path / "a") == written(loaded, tmp_path / "b")


def test_a_changed_file_is_refused(world, tmp_path):
    adapter = taught(world, 3)
    state = adapter.state()
    state.values["course"]["memory"]["count"] = 7
    arrays = {name: np.asarray(values) for name, values in state.arrays.items()}
    container.write(tmp_path / "f", "LiveAdapter", arrays, state.values, owner="LiveAdapter")
    with pytest.raises(FileFormatError, match="memory of events"):
        samewise.load(tmp_path / "f")


def test_forgetting_is_as_if_it_had_never_been_said(make_world, tmp_path):
    world = make_world()
    adapter = taught(world, 30)
    assert adapter.forget(users=[1], events=["e2"]) == 11
    other, world = None, make_world()
    other = LiveAdapter(items=world.items, random_state=0).fit(world.items)
    for t in range(30):
        q, shown, y = world.judged()
        if t % 3 != 1 and t != 2:
            other.feedback(world.items[q], shown, y, user=t % 3, event=f"e{t}")
    assert adapter.n_events_ == other.n_events_ == 19
    Q = world.items[:50]
    np.testing.assert_array_equal(adapter.live.embed_query(Q), other.live.embed_query(Q))
    # What was forgotten is not learned when it is said again.
    assert not adapter.feedback(world.items[0], [1, 2], [1, -1], event="e2")


def test_names_may_be_those_of_numpy(world, tmp_path):
    plain, numpy = (LiveAdapter(items=world.items, random_state=0).fit(world.items) for _ in "12")
    for t, user in enumerate(np.array(["ann", "bob", "ann", "bob"])):
        q, shown, y = world.judged()
        plain.feedback(world.items[q], shown, y, user=str(user), event=t)
        numpy.feedback(world.items[q], shown, y, user=user, event=np.int64(t))
    assert written(plain, tmp_path / "plain") == written(numpy, tmp_path / "numpy")
    assert not numpy.feedback(world.items[q], shown, y, event=3)
    # One name, or several of an array.
    assert numpy.forget("ann") == 2 == plain.forget(users=["ann"])
    assert numpy.forget(events=np.array([1])) == 1 == plain.forget(events=1)
    assert written(plain, tmp_path / "plain") == written(numpy, tmp_path / "numpy")
    for given in (b"ann", 1.5, [1.5], [True], None):
        with pytest.raises(InvalidInputError, match=r"names|named"):
            numpy.forget(given)


def test_forgetting_needs_the_log(world):
    adapter = taught(world, 3, log=False)
    with pytest.raises(InvalidInputError, match="log=True"):
        adapter.forget(users=[1])


def test_versions_are_served_and_rolled_back(world):
    adapter = taught(world, 30)
    Q = world.items[:20]
    first = adapter.live.embed_query(Q)
    assert adapter.promote() == 1
    q, shown, y = world.judged()
    adapter.feedback(world.items[q], shown, y)
    np.testing.assert_array_equal(adapter.embed_query(Q), adapter.embed_query(Q, "first"))
    np.testing.assert_allclose(adapter.embed_query(Q), first, atol=1e-5)
    assert adapter.promote() == 2
    assert [version.event for version in adapter.versions_] == [30, 31]
    assert adapter.rollback() == 1
    np.testing.assert_allclose(adapter.embed_query(Q), first, atol=1e-5)
    assert adapter.rollback() == 0
    np.testing.assert_array_equal(adapter.embed_query(Q), Q)
    with pytest.raises(InvalidInputError, match="nothing to roll back"):
        adapter.rollback()
    with pytest.raises(InvalidInputError, match=r"one of \[0, 1, 2\]"):
        adapter.promote(7)
    adapter.promote(2)
    adapter.reset()
    assert adapter.n_events_ == 0 and adapter.versions_ == ()
    np.testing.assert_array_equal(adapter.live.embed_query(Q), Q)


def test_a_version_keeps_its_events_when_the_memory_is_full(world):
    adapter = taught(world, 30, memory=20)
    Q = world.items[:50]
    adapter.promote()
    frozen = adapter.embed_query(Q)
    for _ in range(100):
        q, shown, y = world.judged()
        adapter.feedback(world.items[q], shown, y)
    np.testing.assert_allclose(adapter.embed_query(Q), frozen, atol=1e-5)
    assert len(adapter._fitted.memory._of_slot) <= 64
    adapter.promote(0)
    assert adapter._fitted.memory.count == 130


def test_a_memory_has_no_more_room_than_it_needs(world):
    adapter = taught(world, 420, memory=400, log=False, guard=1e-9)
    vectors = adapter._fitted.memory._events[0]
    assert vectors.shape == (400, 2, 12) and vectors.dtype == np.float32
    # The events of a version stay beside those of the live form.
    adapter.promote()
    for row in range(100):
        adapter.feedback(world.items[row], [row + 1, row + 2], [1, -1])
    assert len(adapter._fitted.memory._of_slot) == 800


def test_another_start(world):
    W = np.eye(12) + 0.1 * np.random.RandomState(1).randn(12, 12)
    adapter = taught(world, 20, initial=Bilinear(W))
    Q = world.items[:5]
    np.testing.assert_allclose(adapter.embed_query(Q), Q @ W, atol=1e-5)
    with pytest.raises(InvalidInputError, match="a form of 12 features"):
        LiveAdapter(initial=Bilinear(np.eye(3))).fit(world.items)


def test_slots_and_ranks(world):
    adapter = taught(world, 80)
    q = world.items[5]
    shown = adapter.slots(q, k=8, explored=2)
    served, live = adapter.rank(q, k=400), adapter.live.rank(q, k=400)
    np.testing.assert_array_equal(shown.rows[:5], served[:5])
    assert shown.rows[5] == next(row for row in live if row not in served[:5])
    assert shown.candidate == 5 and len(set(shown.rows.tolist())) == 8
    others = 100 - np.isin(served[:100], shown.rows[:6]).sum()
    np.testing.assert_allclose(shown.propensity, [1] * 6 + [2 / others] * 2)
    np.testing.assert_array_equal(adapter.rerank(q, world.items), served)
    with pytest.raises(InvalidInputError, match="explored must be"):
        adapter.slots(q, k=5, explored=4)


def test_the_first_place_is_served_apart(world):
    adapter = taught(world, 80)
    course = adapter._fitted
    course.serve(("rest",), course.freeze(), "promote")
    for q in world.items[:20]:
        order = adapter.rank(q, k=400)
        assert order[0] == np.argmax(world.items @ q)
        below = adapter.live.rank(q, k=400)
        np.testing.assert_array_equal(order[1:], below[below != order[0]])


def test_expansion_keeps_the_first_place(world):
    adapter = LiveAdapter(items=world.items, expand=True, random_state=0).fit(world.items)
    q = world.items[3]
    scores = world.items @ q
    best = np.argsort(-scores, kind="stable")
    again = np.argsort(-(world.items @ (q + world.items[best[:5]].mean(axis=0))), kind="stable")
    np.testing.assert_array_equal(adapter.rank(q, k=9), [best[0], *again[again != best[0]][:8]])


def test_interleaving_is_fair_and_its_clicks_are_bets(world):
    adapter = taught(world, 1)
    firsts = []
    for _ in range(200):
        shown, teams = adapter.interleave([1, 2, 3, 4], [3, 5, 1, 6], k=4)
        assert len(set(shown)) == 4 and abs(2 * teams.sum() - 4) <= 1
        firsts.append(shown[0])
    assert 70 <= firsts.count(1) <= 130
    for _ in range(5):
        adapter.feedback(Click(world.items[0], [1, 3], [1], teams=[0, 1]))
    bets = adapter._fitted.guard.bets
    assert bets[0, 2] == 5 and bets[1, 2] == 0
    # The most usual click of all: nothing was skipped, and nothing is learned.
    before = adapter.live.embed_query(world.items)
    adapter.feedback(Click(world.items[0], [1, 3], [0], teams=[0, 1]))
    np.testing.assert_array_equal(adapter.live.embed_query(world.items), before)
    assert bets[0, 1] == 1 + 5 + 1 and bets[0, 2] == 4


def test_clicks_and_thumbs_teach_but_do_not_test(world):
    adapter = LiveAdapter(items=world.items, random_state=0).fit(world.items)
    for event in (
        Click(world.items[0], [5, 6, 7, 8], [2]),
        Thumb(world.items[1], 9),
        Same(world.items[1], world.items[10], against=world.items[11:14]),
        Different(world.items[2], 12),
    ):
        before = adapter.live.embed_query(world.items[:3])
        assert adapter.feedback(event)
        assert not np.array_equal(adapter.live.embed_query(world.items[:3]), before)
    assert not adapter._fitted.guard.bets.any()
    grades = [heard.grades.tolist() for heard in adapter.log_]
    assert grades[0] == [-1, -1, 1, 0]
    assert grades[3][0] == -1 and set(grades[3][1:]) == {1}


def test_without_a_guard_the_live_form_is_served(world):
    adapter = taught(world, 20, guard=None)
    Q = world.items[:3]
    np.testing.assert_array_equal(adapter.embed_query(Q), adapter.live.embed_query(Q))
    with pytest.raises(InvalidInputError, match="guard=None"):
        adapter.promote()


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (np.ones((1, 4)), "at least two"),
        (np.ones((50, 4)), "as similar to any other"),
        (np.full((50, 4), np.nan), "finite"),
        (np.ones(4), "a row for each vector"),
    ],
)
def test_items_without_units_are_refused(items, message):
    with pytest.raises(InvalidInputError, match=message):
        LiveAdapter().fit(items)


def test_wrong_parameters_are_refused(world):
    for parameters in ({"guard": 2.0}, {"margin": 0.0}, {"memory": -1}, {"half_life": 0.0}):
        with pytest.raises(ValueError, match=f"{next(iter(parameters))!r} parameter"):
            LiveAdapter(**parameters).fit(world.items)


def test_the_linear_part_is_a_matrix(world):
    W = np.eye(12) + 0.1 * np.random.RandomState(1).randn(12, 12)
    Q = world.items[:40]
    for parameters in ({}, {"initial": Bilinear(W)}):
        adapter = taught(world, 40, memory=0, **parameters)
        for form in (adapter.start, adapter.live, adapter.served):
            matrix, bias = form.to_matrix()
            np.testing.assert_allclose(Q @ matrix + bias, form.embed_query(Q), atol=1e-5)
    with pytest.raises(InvalidInputError, match="'rest' or 'first'"):
        adapter.live.to_matrix("second")


def test_new_answers_end_old_ones_that_say_the_opposite(world, tmp_path):
    """The live form follows at once; a version goes on as it was, also from a file."""
    adapter = LiveAdapter(items=world.items, random_state=0).fit(world.items)
    q, shown, y = world.judged()
    adapter.feedback(world.items[q], shown, y)
    version = adapter.promote()
    served = adapter.embed_query(world.items)
    # Half the weight does not end the old list.
    adapter.feedback(world.items[q], shown, -y, weight=0.5)
    assert len(adapter.live.to_numpy().queries) == 2
    adapter.feedback(world.items[q], shown, -y)
    adapter.save(tmp_path / "adapter")
    for each in (adapter, samewise.load(tmp_path / "adapter")):
        assert each.versions_[-1].number == version
        np.testing.assert_array_equal(each.embed_query(world.items), served)
        mapped = each.live.to_numpy()
        assert len(mapped.queries) == 2 and len(each.served.to_numpy().queries) == 1
        scores = world.items[shown] @ mapped(world.items[q])
        assert scores[y > 0].max() < scores[y < 0].max()


def test_changed_preferences_win(make_world):
    """After as many new lists as old ones; with no contradictions they would win later."""
    world = make_world(n=300)
    adapter = LiveAdapter(guard=None, items=world.items, random_state=0).fit(world.items)
    right = []
    for t in range(600):
        q, shown, y = world.judged()
        y = y if t < 300 else -y
        scores = world.items[shown] @ adapter.live.embed_query(world.items[q])
        right.append((scores[y > 0][:, None] > scores[y < 0]).mean())
        adapter.feedback(world.items[q], shown, y)
    assert np.mean(right[200:300]) > 0.8
    assert np.mean(right[300:320]) < 0.4
    assert np.mean(right[500:]) > 0.7
