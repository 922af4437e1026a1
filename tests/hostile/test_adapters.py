"""What hostile events, items and files found in the live adapter, each with its smallest input."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import samewise
from samewise import Bilinear, LiveAdapter, evaluate_feedback
from samewise.adapt import Click, Judged, RankedList, Thumb
from samewise.exceptions import InvalidInputError

D = 4
ITEMS = np.random.default_rng(0).normal(size=(40, D)).astype(np.float32)
ITEMS /= np.linalg.norm(ITEMS, axis=1, keepdims=True)


@pytest.fixture
def adapter():
    return LiveAdapter(items=ITEMS, random_state=0).fit(ITEMS)


def refused(call, said, adapter=None, folder=None):
    """A sentence, and nothing has changed."""
    if adapter is None:
        with pytest.raises(InvalidInputError, match=said):
            call()
        return
    adapter.save(folder / "before")
    with pytest.raises(InvalidInputError, match=said) as found:
        call()
    assert str(found.value).endswith(".")
    adapter.save(folder / "after")
    assert (folder / "before").read_bytes() == (folder / "after").read_bytes()


@pytest.mark.parametrize("size", [1e7, 1e300])
def test_a_start_that_is_too_large(size):
    adapter = LiveAdapter(initial=Bilinear(size * np.eye(D)))
    refused(lambda: adapter.fit(ITEMS), "initial must have values of at most 1e")
    assert adapter._course is None


@pytest.mark.parametrize("size", [1e7, 1e30, 1e300])
def test_vectors_that_are_too_large(adapter, size, tmp_path):
    big = size * ITEMS[:3].astype(np.float64)
    for event in (
        Judged(big[0], [1, 2], [1, -1]),
        Judged(ITEMS[0], big, [1, -1, 0]),
        RankedList(ITEMS[0], big),
        Click(big[0], [1, 2], [1]),
        Thumb(ITEMS[0], big[0], against=[1]),
    ):
        refused(lambda event=event: adapter.feedback(event), "at most 1e", adapter, tmp_path)


RAGGED = [[1.0, 2.0], [3.0]]


@pytest.mark.parametrize(
    "event",
    [
        Judged(RAGGED, [1, 2], [1, -1]),
        Judged(ITEMS[0], [1, 2], RAGGED),
        Judged(ITEMS[0], sp.csr_array(ITEMS[:2]), [1, -1]),
        Click(ITEMS[0], [1, 2], RAGGED),
        Click(ITEMS[0], [1, 2], [1], RAGGED),
        Thumb(ITEMS[0], RAGGED, against=[1]),
    ],
    ids=["query", "y", "shown", "clicked", "teams", "item"],
)
def test_what_is_no_array(adapter, event, tmp_path):
    refused(lambda: adapter.feedback(event), "array", adapter, tmp_path)


@pytest.mark.parametrize(
    "y", [[-(2**63), 1], np.array([2**64 - 1, 1], dtype=np.uint64), [2**62, 1]]
)
def test_answers_that_wrap_are_no_answers(adapter, y, tmp_path):
    refused(lambda: adapter.feedback(ITEMS[0], [1, 2], y), "must be .1 .liked", adapter, tmp_path)


def test_unsigned_answers_are_answers(adapter):
    assert adapter.feedback(ITEMS[0], [1, 2], np.array([1, 0], dtype=np.uint8))


@pytest.mark.parametrize("found", [1j * ITEMS[:2], ITEMS[:2].astype(str), ITEMS[:2].astype("O")])
def test_a_store_whose_answers_are_no_numbers(adapter, found, tmp_path):
    adapter.items = lambda ids: found
    said = "items gave no vectors for the ids"
    refused(lambda: adapter.feedback(ITEMS[0], [1, 2], [1, -1]), said, adapter, tmp_path)


def test_a_store_with_what_is_not_finite(adapter, tmp_path):
    bad = ITEMS.copy()
    bad[7, 1] = np.nan
    adapter.items = bad
    said = "finite"
    for call in (
        lambda: adapter.rank(ITEMS[0]),
        lambda: adapter.slots(ITEMS[0]),
        lambda: adapter.feedback(ITEMS[0], [7, 1], [1, -1]),
        lambda: adapter.headroom(ITEMS[:24], np.arange(24) + 10),
        lambda: adapter.warm_start(ITEMS[:24], np.arange(24) + 10),
    ):
        refused(call, said, adapter, tmp_path)


@pytest.mark.parametrize("expand", [False, True])
@pytest.mark.parametrize("value", [np.inf, 3e38])
def test_stored_items_whose_products_overflow_are_refused_without_a_warning(
    expand, value, tmp_path
):
    adapter = LiveAdapter(items=ITEMS, expand=expand, random_state=0).fit(ITEMS)
    query, items = np.array([1.0, 1.0, 9.0, 9.0], dtype=np.float32), ITEMS.copy()
    items[1] = [value, -value, value, -value]
    adapter.items = items
    refused(lambda: adapter.rank(query), "Items must be finite", adapter, tmp_path)
    adapter.items = lambda ids: items[ids]
    refused(lambda: adapter.rerank(query, [3, 1, 2]), "Items must be finite", adapter, tmp_path)


def test_a_list_as_store_is_read_once(adapter):
    adapter.items = ITEMS.astype(float).tolist()
    first = adapter._items()
    assert adapter.rank(ITEMS[3])[0] == 3
    assert adapter._items() is first


@pytest.mark.parametrize("half_life", [3, np.int64(3), 3.0])
def test_an_integer_half_life_is_saved_like_any_other(half_life, tmp_path):
    adapter = LiveAdapter(items=ITEMS, half_life=half_life, margin=1, random_state=0).fit(ITEMS)
    adapter.save(tmp_path / "one")
    samewise.load(tmp_path / "one").save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_margin_that_leaves_the_range():
    with pytest.raises(ValueError, match="The 'margin' parameter of LiveAdapter must be"):
        LiveAdapter(margin=1e300).fit(ITEMS)


def test_lists_to_show_of_odd_sizes(adapter, tmp_path):
    for call, said in (
        (lambda: adapter.interleave(["a"], ["b"], None), "k must be an integer of at least 1"),
        (lambda: adapter.interleave(None, ["b"]), "A ranking must be a sequence of items"),
        (lambda: adapter.slots(ITEMS[0], k=None), "k must be an integer from 2 to 40"),
        (lambda: adapter.rank(ITEMS[0], RAGGED), "array"),
        (lambda: adapter.rank(ITEMS[0], sp.csr_array(ITEMS)), "dense array"),
        (lambda: adapter.embed_query(RAGGED), "array"),
    ):
        refused(call, said, adapter, tmp_path)


@pytest.mark.parametrize("relevant", [sp.csr_array(ITEMS[:24]), None, 3, "x"])
def test_relevant_items_that_are_none(adapter, relevant, tmp_path):
    for call in (adapter.warm_start, adapter.headroom):
        refused(lambda call=call: call(ITEMS[:24], relevant), "relevant", adapter, tmp_path)


@pytest.mark.parametrize("given", [b"alice", None, 3.0, True, [None, 1.5], [[]]])
def test_whom_to_forget_is_a_name_or_several(adapter, given, tmp_path):
    adapter.feedback(ITEMS[0], [1, 2], [1, -1], user="alice")
    if given == [None, 1.5]:
        refused(lambda: adapter.forget(given), "named by", adapter, tmp_path)
        return
    refused(lambda: adapter.forget(users=given), "users must|named by", adapter, tmp_path)
    refused(lambda: adapter.forget(events=given), "events must|named by", adapter, tmp_path)
    # The letters of a name are not the name.
    assert adapter.forget(users=list("alice")) == 0
    assert adapter.forget(users="alice") == 1


@pytest.mark.parametrize("level", ["x", None, 0.0, 1.0, np.nan])
def test_a_level_is_a_number(adapter, level):
    events = [Judged(ITEMS[0], [1, 2], [1, -1])]
    with pytest.raises(InvalidInputError, match="level must be between 0 and 1"):
        evaluate_feedback(adapter.start, adapter.live, events, level=level)


def test_a_forged_state_maps_no_query_out_of_range(adapter, tmp_path):
    adapter.feedback(ITEMS[0], [1, 2], [1, -1])
    adapter._course.linear._scalars[0] = 1e308
    adapter.save(tmp_path / "forged")
    forged = samewise.load(tmp_path / "forged")
    for call in (
        lambda: forged.live.embed_query(ITEMS),
        lambda: forged.live.embed_query(ITEMS[0]),
        lambda: forged.live.to_matrix(),
        lambda: forged.live.rank(ITEMS[0], ITEMS),
    ):
        refused(call, "out of the range of float32|must be finite")


def test_a_forged_weight_is_refused(adapter, tmp_path):
    adapter.feedback(ITEMS[0], [1, 2], [1, -1])
    adapter._course.memory.events[3][0] = 1e308
    adapter.save(tmp_path / "forged")
    with pytest.raises(samewise.exceptions.FileFormatError, match="do not make a memory"):
        samewise.load(tmp_path / "forged")


def test_forged_parameters_are_refused(adapter, tmp_path):
    adapter.guard = False
    adapter.save(tmp_path / "forged")
    with pytest.raises(samewise.exceptions.FileFormatError, match="'guard' parameter"):
        samewise.load(tmp_path / "forged")


def test_the_same_query_many_times_has_no_headroom(adapter, tmp_path):
    said = "headroom needs queries that differ"
    refused(lambda: adapter.headroom(np.zeros((24, D)), range(24)), said, adapter, tmp_path)


def test_true_as_a_count_is_one(adapter):
    slots = adapter.slots(ITEMS[0], k=3, explored=True)
    assert slots.why == ("served", "live", "explored")


def test_masked_vectors_are_refused(adapter, tmp_path):
    masked = np.ma.masked_greater(ITEMS[0], 0.2)
    said = "masked array"
    refused(lambda: adapter.feedback(masked, [1, 2], [1, -1]), said, adapter, tmp_path)
    refused(lambda: adapter.embed_query(masked), said, adapter, tmp_path)
    refused(lambda: adapter.fit(np.ma.masked_greater(ITEMS, 0.2)), said)


@pytest.mark.parametrize("size", [0.0, 1e-310, 1e-20, 1e-5])
def test_relevant_items_without_length(adapter, size, tmp_path):
    said = "The relevant items are zero, or far shorter"
    relevant = size * ITEMS[:24].astype(np.float64)
    refused(lambda: adapter.warm_start(ITEMS[:24], relevant), said, adapter, tmp_path)
