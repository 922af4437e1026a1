"""Live adapters: whatever users say, an event is learned from or refused, and nothing half done."""

from __future__ import annotations

import copy
import json
import pickle
from functools import cache, partial
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from samewise import (
    Bilinear,
    Judgements,
    LiveAdapter,
    LowRankBilinear,
    Mahalanobis,
    evaluate_feedback,
    load,
)
from samewise.adapt import Click, Different, Judged, RankedList, Same, Thumb
from samewise.adapt.event_lines import EventReader, NamedVectors
from samewise.adapt.replay import LogReplay
from tests.hostile.outcomes import Refusal, attempt, bits, check_finite, saved
from tests.hostile.strategies import malformed, n_rows, rows, texts, weights

D, N = 4, 40
ODD_IDS = (-1, N, 10**20, 2**63, "a", "0", "", None, True, 1.0, 0.5, np.nan, (), b"x", np.int8(3))


@cache
def store():
    """Items of unit length."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)).astype(np.float32)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


class Named:
    """A store that is asked, and sometimes answers wrongly."""

    def __init__(self, kind):
        self.kind = kind

    def __repr__(self):
        return f"Named({self.kind!r})"

    def __call__(self, ids):
        found = store()[[hash(id) % N for id in ids]]
        match self.kind:
            case "missing":
                return {}[ids[0]]
            case "nothing":
                return None
            case "too few":
                return found[1:]
            case "flat":
                return found.ravel()
            case "infinite":
                return found * np.inf
            case "huge":
                return found.astype(float) * 1e300
            case "texts":
                return found.astype(str).tolist()
            case "complex":
                return found * 1j
        return found


stores = st.sampled_from(["array", "double", "half", None, "rows", "right"]) | st.sampled_from(
    ["missing", "nothing", "too few", "flat", "infinite", "huge", "texts", "complex"]
)


def item_store(kind):
    arrays = {"array": store(), "double": store().astype(float), "half": store().astype("f2")}
    arrays |= {"rows": store()[:7], None: None}
    return arrays[kind] if kind in arrays else Named(kind)


def fitted(kind="array", **options):
    """An adapter that is fitted on the items; it takes random numbers of its own."""
    made = LiveAdapter(**options, random_state=np.random.RandomState(0)).fit(store())
    made.items = item_store(kind)
    return made


initials = st.sampled_from(
    [None, Bilinear(2 * np.eye(D)), LowRankBilinear(np.eye(D, 2), np.eye(D, 2))]
)
parameters = st.fixed_dictionaries(
    {},
    optional={
        "guard": st.sampled_from([None, 0.05, 0.999, 1e-300]),
        "margin": st.sampled_from([1e-300, 0.3, 1e6, 5]),
        "memory": st.sampled_from([0, 1, 2, 3]),
        "half_life": st.sampled_from([None, 1, 2.5, 1e300]),
        "expand": st.booleans(),
        "initial": initials,
        "log": st.booleans(),
    },
)
odd_parameters = st.fixed_dictionaries(
    {},
    optional={
        "guard": st.sampled_from([0, 1, -1.0, np.nan, "x"]),
        "margin": st.sampled_from([0, -1.0, np.nan, 1e300, None]),
        "memory": st.sampled_from([-1, 1.5, 10**8, None, True]),
        "half_life": st.sampled_from([0, np.inf, np.nan, "x"]),
        "initial": st.sampled_from([Mahalanobis.identity(D), Bilinear(np.eye(D - 1)), "x"])
        | st.just(Bilinear(1e300 * np.eye(D))),
        "items": st.sampled_from([[], [[1, 2]], "x", 3, np.eye(3), np.full((2, D), np.nan)]),
        "random_state": st.sampled_from(["x", -1, 2**40]),
    },
)

# Events

LAYOUTS = ("C", "Fortran", "float32", "float16", "list", "objects", "read-only", "CSR")
LAYOUTS += ("other byte order", "reversed")


def vectors(n, wild=True):
    d = st.just(D) | st.integers(1, D + 1) if wild else st.just(D)
    kinds = ("ordinary", "integers", "zeros", "twins", "huge", "large", "subnormal", "small")
    return rows(n, d, kinds if wild else kinds[:4], LAYOUTS if wild else LAYOUTS[:3])


@st.composite
def one_vector(draw, wild=True):
    """A query: a row of some matrix, or what is none."""
    X = draw(vectors(st.just(2), wild))
    odd = [None, 3, "x", [], [[]], np.zeros((0, D)), np.zeros((1, 1, D)), np.zeros(D, "M8[s]")]
    if wild and draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from([*odd, np.ma.masked_all(D), np.ones(D, dtype=bool)]))
    return X[0] if isinstance(X, list) else X[[0]] if not isinstance(X, np.ndarray) else X[0]


@st.composite
def shown_items(draw, n, by_ids=None, wild=True):
    """Items of a list: ids or vectors."""
    if draw(st.booleans()) if by_ids is None else by_ids:
        ids = draw(st.lists(st.integers(0, N - 1), min_size=n, max_size=n, unique=True))
        if wild and n and draw(st.integers(0, 4)) == 0:
            ids[draw(st.integers(0, n - 1))] = draw(st.sampled_from(ODD_IDS))
        return draw(st.sampled_from([list, list, list, tuple, partial(np.array, dtype=object)]))(
            ids
        )
    X = draw(vectors(st.just(max(n, 1)), wild))
    return X[:n]


def places(n):
    return st.lists(st.integers(-1, n) | st.sampled_from([0, 0.5, 2**40]), max_size=3)


@st.composite
def events(draw, wild=True):
    """What a user said."""
    kind = draw(st.sampled_from(["judged", "click", "thumb", "ranked", "same", "different"]))
    query = draw(one_vector(wild))
    n = draw(st.integers(0 if wild else 1, 5))
    if kind in ("thumb", "same", "different"):
        item = draw(st.integers(0, N - 1) | st.sampled_from(ODD_IDS) | one_vector(wild))
        against = draw(st.none() | shown_items(n, wild=wild))
        if kind == "thumb":
            up = draw(st.booleans() | st.sampled_from([None, 1, "up", np.nan]))
            return Thumb(query, item, up, against)
        return (Same if kind == "same" else Different)(query, item, against)
    shown = draw(shown_items(n, wild=wild))
    if kind == "ranked":
        return RankedList(query, shown)
    if kind == "click":
        clicked = draw(places(n) | st.sampled_from([None, 0, "x", np.array([], dtype=int)]))
        teams = draw(st.none() | st.lists(st.integers(0, 1), min_size=n, max_size=n) | places(n))
        return Click(query, shown, clicked, teams)
    grades = st.sampled_from([1, -1, 0] * 5 + [1.0, -1.0, 0.5, 2, np.nan, None, True, "x", 2**70])
    if not wild:
        grades = st.sampled_from([1, -1, 0])
    size = n if not wild else draw(st.integers(max(n - 1, 0), n))
    y = draw(st.lists(grades, min_size=size, max_size=n))
    candidate = draw(st.none() | st.integers(-1 if wild else 0, n if wild else n - 1))
    return Judged(query, shown, y, candidate)


names = st.sampled_from([None, None, "a", "b", 1, 1.5, True, (), "\ud800", 2**70])
options = st.fixed_dictionaries(
    {},
    optional={
        "weight": st.sampled_from([0, 1, 2.5, 1e6, 1e-300, -1, np.nan, np.inf, "x", None, 10**400]),
        "user": names,
        "event": names,
    },
)

k = st.integers(-1, 12) | st.sampled_from([None, 2.5, 2**70, True])
which_items = st.none() | st.integers(0, 5).flatmap(shown_items)
uses = st.one_of(
    st.tuples(st.just("embed_query"), one_vector() | vectors(st.integers(1, 3))),
    st.tuples(st.just("rank"), one_vector(), which_items, k),
    st.tuples(st.just("rerank"), one_vector(), which_items),
    st.tuples(st.just("slots"), one_vector(), which_items, k, k),
    st.tuples(st.just("interleave"), *[st.lists(st.sampled_from("abcd"), max_size=3)] * 2, k),
)
collections = st.lists(names, max_size=2) | st.sampled_from(["a", None, 3, {}, [[]]])
steps = st.one_of(
    st.tuples(st.just("feedback"), events()).map(lambda step: (step, {})),
    st.tuples(st.tuples(st.just("feedback"), events(wild=False)), options),
    st.tuples(st.tuples(st.just("feedback"), events()), options),
    uses.map(lambda step: (step, {})),
    st.tuples(
        st.sampled_from([("promote",), ("rollback",), ("reset",)])
        | st.tuples(st.just("promote"), st.sampled_from([0, 1, 2, -1, True, "x", 1.0]))
        | st.tuples(st.just("forget"), collections, collections),
        st.just({}),
    ),
)


def outcome_bits(outcome):
    """Bits of whatever a call returned, to compare those of two adapters."""
    if isinstance(outcome, Refusal):
        return type(outcome.error), str(outcome.error)
    return bits(tuple(vars(outcome).values()) if hasattr(outcome, "why") else outcome)


def check_result(outcome):
    if isinstance(outcome, np.ndarray):
        check_finite(outcome)


@given(items=vectors(st.integers(1, 9)) | malformed(), given=parameters, odd=odd_parameters)
def test_any_items(items, given, odd, tmp_path):
    adapter = LiveAdapter(**(given | odd))
    before = bits(items), bits(sorted(vars(adapter).items()))
    outcome = attempt(lambda: adapter.fit(items), items, given, odd)
    assert bits(items) == before[0]
    if isinstance(outcome, Refusal):
        assert bits(sorted(vars(adapter).items())) == before[1], "a refused fit left something"
        return
    for form in (adapter.start, adapter.live, adapter.served):
        check_result(attempt(lambda form=form: form.embed_query(items), items, given, odd))
    kept = saved(adapter, tmp_path)
    assert saved(load(tmp_path / "file"), tmp_path) == kept


@given(kind=stores, given=parameters, course=st.lists(steps, max_size=10))
def test_a_course(kind, given, course, tmp_path):
    adapter = fitted(kind, **given)
    for (call, *arguments), options in course:
        before, numbers = saved(adapter, tmp_path), bits(arguments)
        # One that is loaded before each step says and learns the same.
        restored = load(tmp_path / "file")
        restored.items = adapter.items
        outcomes = [
            attempt(
                partial(getattr(each, call), *arguments, **options), kind, given, call, arguments
            )
            for each in (adapter, restored)
        ]
        assert bits(arguments) == numbers, "the input was changed"
        assert outcome_bits(outcomes[0]) == outcome_bits(outcomes[1])
        after = saved(adapter, tmp_path)
        assert saved(restored, tmp_path) == after
        if isinstance(outcomes[0], Refusal):
            assert after == before, "a refused call changed something"
        check_result(outcomes[0])
    check_finite(adapter.live.embed_query(store()))
    check_finite(adapter.served.embed_query(store(), "first"))


pairs_of = st.sampled_from(["ids", "vectors", "lists of ids", "lists of vectors", "mixed", "odd"])


@st.composite
def relevant_items(draw, n):
    """For each query a relevant item, or several."""
    kind = draw(pairs_of)
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    ids = rng.integers(0, N, n)
    if kind == "vectors":
        return draw(vectors(st.just(n)))
    if kind == "odd":
        return draw(st.sampled_from([None, 3, "x" * n, [], [[]] * n, [None] * n, [3.5] * n]))
    found = {
        "ids": lambda i: int(i),
        "lists of ids": lambda i: [int(i), int(i + 1) % N],
        "lists of vectors": lambda i: store()[[i, (i + 1) % N]],
        "mixed": lambda i: int(i) if i % 2 else [int(i)],
    }[kind]
    entries = [found(i) for i in ids]
    if entries and draw(st.booleans()):
        entries[draw(st.integers(0, n - 1))] = draw(st.sampled_from([*ODD_IDS, [], [0, 0]]))
    return entries


@pytest.mark.parametrize("call", ["warm_start", "headroom"])
@given(data=st.data())
def test_any_pairs_to_begin_with(call, data, tmp_path):
    kind, given = data.draw(stores), data.draw(parameters)
    adapter = fitted(kind, **given)
    n = data.draw(st.sampled_from([20, 24, 24, 3]))
    queries, relevant = data.draw(vectors(st.just(n))), data.draw(relevant_items(n))
    before = saved(adapter, tmp_path), bits([queries, relevant])
    outcome = attempt(
        lambda: getattr(adapter, call)(queries, relevant), kind, given, queries, relevant
    )
    assert bits([queries, relevant]) == before[1]
    if isinstance(outcome, Refusal) or call == "headroom":
        assert saved(adapter, tmp_path) == before[0], "what learns nothing changed something"
        if call == "headroom" and not isinstance(outcome, Refusal):
            check_finite([*outcome.start.values(), *outcome.attainable.values()])
        return
    check_finite(adapter.live.embed_query(store()))
    found = adapter.warm_start_
    check_finite([*found.before.values(), *found.after.values()])
    kept = saved(adapter, tmp_path)
    assert saved(load(tmp_path / "file"), tmp_path) == kept


@given(
    given=parameters,
    course=st.lists(events(wild=False), max_size=5),
    queries=vectors(st.integers(1, 4)),
    place=st.sampled_from(["rest", "first", "first", "x", None]),
    memory=st.sampled_from([True, True, False, 1, None]),
)
def test_exported_maps(given, course, queries, place, memory, tmp_path):
    adapter = fitted(**given)
    for event in course:
        attempt(lambda event=event: adapter.feedback(event), given, course)
    attempt(adapter.promote)
    for form in (adapter.start, adapter.live, adapter.served):
        shown = given, course, place, memory
        mapped = attempt(lambda form=form: form.to_numpy(place, memory=memory), *shown)
        if isinstance(mapped, Refusal):
            continue
        matrix, bias = form.to_matrix(place)
        check_finite([matrix, bias, mapped.queries, mapped.directions, mapped.weights])
        linear = form.to_numpy(place, memory=False)
        np.testing.assert_array_equal(linear(store()), store() @ matrix + bias)
        found = attempt(lambda mapped=mapped: mapped(queries), *shown, queries)
        check_result(found)
        if not isinstance(found, Refusal):
            again = [pickle.loads(pickle.dumps(mapped)), copy.deepcopy(mapped)]
            assert all(bits(each(queries)) == bits(found) for each in again)
        if given.get("memory") == 0:
            # Otherwise a form looks at the nearest of the remembered lists.
            E, near = form.embed_query(store(), place), mapped(store())
            np.testing.assert_allclose(near, E, rtol=1e-4, atol=1e-4 * (1 + np.abs(E).max()))
        check_result(attempt(lambda form=form: form.to_items(place), *shown))
        for name in ("safetensors", "onnx"):
            if find_spec(name):
                path = tmp_path / name
                attempt(
                    partial(getattr(form, f"to_{name}"), path, place, memory=memory),
                    *shown,
                )
                assert path.stat().st_size
    assert (
        sorted(each.name for each in tmp_path.iterdir())
        == [name for name in ("onnx", "safetensors") if find_spec(name)]
        or not (tmp_path / "onnx").exists()
    )


@st.composite
def compared(draw):
    """What may be one of two forms."""
    adapter = fitted(**draw(parameters))
    for event in draw(st.lists(events(wild=False), max_size=3)):
        attempt(lambda event=event: adapter.feedback(event), event)
    made = [adapter, adapter.start, adapter.live, adapter.served, LiveAdapter(), adapter.live]
    made += [Mahalanobis.identity(D), Bilinear(np.eye(D)), Bilinear(np.eye(D - 1)), None, "x"]
    return draw(st.sampled_from(made))


@given(data=st.data())
def test_forms_compared_by_any_events(data, tmp_path):
    forms = data.draw(compared()), data.draw(compared())
    said = data.draw(
        st.lists(events(wild=False), max_size=4)
        | st.lists(events(), max_size=2)
        | judgements()
        | st.sampled_from([None, "x", [None], 3, np.zeros(3), iter([])])
    )
    how = {
        "items": item_store(data.draw(stores)),
        "level": data.draw(st.sampled_from([0.05, 0.05, 0.0, 1.0, np.nan, "x"])),
        "prequential": data.draw(st.sampled_from([False, True, None])),
    }
    before = [saved(f, tmp_path) for f in forms if isinstance(f, LiveAdapter) and f._course]
    outcome = attempt(lambda: evaluate_feedback(*forms, said, **how), forms, said, how)
    after = [saved(f, tmp_path) for f in forms if isinstance(f, LiveAdapter) and f._course]
    assert after == before, "a comparison changed what it compared"
    if not isinstance(outcome, Refusal):
        assert str(outcome)
        for found in outcome.measures.values():
            check_finite([found.a, found.b, found.difference, *found.interval])
            assert 0 <= found.a <= 1 and 0 <= found.b <= 1


# Lists as row numbers


@st.composite
def judgements(draw, wild=False):
    """Arguments of Judgements, or the container if they are not wild."""
    n, d = st.integers(2, 8), st.just(D) if not wild else st.integers(1, 4)
    X = draw(rows(n, d) | malformed(n, d)) if wild else draw(rows(n, d, ("ordinary",), ("C",), ()))
    items = draw(st.none() | rows(n, d)) if wild else None
    size = n_rows(X if items is None else items)
    lists, k = draw(st.integers(0 if wild else 1, 3)), draw(st.integers(0 if wild else 1, 4))
    k = k if wild else min(k, size)
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    query = rng.integers(0, n_rows(X), lists)
    shown = np.array([rng.permutation(max(size, k))[:k] for _ in range(lists)]).reshape(lists, k)
    y = rng.integers(-1, 2, (lists, k))
    weight = None
    if not wild:
        return Judgements(X, query, shown, y)
    if lists and k and draw(st.booleans()):
        odd = draw(st.sampled_from([-1, size, 2**40, 0]))
        draw(st.sampled_from([query, shown[:, 0]]))[0] = odd
        y = y.astype(draw(st.sampled_from([int, float, object, str])))
        if y.dtype.kind in "fO":
            y[0, 0] = draw(st.sampled_from([0.5, np.nan, 2.0]))
        weight = draw(weights(lists))
    return X, query, shown, y, items, weight


@given(given=judgements(wild=True))
def test_any_judgements(given):
    before = bits(given)
    made = attempt(lambda: Judgements(*given), given)
    assert bits(given) == before
    if isinstance(made, Refusal):
        return
    for member in ("query", "shown"):
        at = getattr(made, member)
        assert np.all((at >= 0) & (at < (made.items if member == "shown" else made.X).shape[0]))
    half = made[::2]
    assert type(half) is Judgements and len(half) == (len(made) + 1) // 2
    triplets = attempt(made.triplets, given)
    if not isinstance(triplets, Refusal):
        count = sum(int((row > 0).sum() * (row < 0).sum()) for row in made.y)
        assert len(triplets) == count
        if triplets.sample_weight is not None:
            check_finite(triplets.sample_weight)


# Lines of a log

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts | st.integers(0, N - 1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=5,
)
ids_of_items = st.integers(0, N - 1) | st.sampled_from(["0", "7", -1, N, 10**400, None, "x", True])
vector = st.lists(st.sampled_from([0, 1, -1, 0.5, 2.5]), min_size=D, max_size=D)
fields = st.fixed_dictionaries(
    {"query": vector | vector | ids_of_items | values},
    optional={
        "shown": st.lists(ids_of_items, max_size=4) | st.just([0, 1, 2]) | values,
        "y": st.lists(st.sampled_from([1, -1, 0]), max_size=4) | st.just([1, -1, 0]) | values,
        "clicked": st.lists(st.integers(-1, 4), max_size=2) | values,
        "teams": st.just([0, 1, 1]) | values,
        "candidate": st.integers(-1, 3) | values,
        "ranking": st.lists(ids_of_items, max_size=4) | values,
        "thumb": st.sampled_from(["up", "down", True, 3]) | values,
        "same": st.booleans() | values,
        "item": ids_of_items | vector | values,
        "against": st.lists(ids_of_items, max_size=3) | values,
        "weight": st.sampled_from([0, 1, 2.5, -1, "x", 1e400]) | values,
        "user": st.sampled_from(["a", 3]) | values,
        "event": st.sampled_from(["a", "b", 3]) | values,
    },
)
plain = st.fixed_dictionaries(
    {"query": vector, "shown": st.just([3, 1, 2]), "y": st.just([1, -1, 0])},
    optional={"event": st.sampled_from(["a", "b", 3]), "user": st.sampled_from(["u", 1])},
)
odd_lines = st.sampled_from(
    ["", "{", "[" * 9999, "3", "null", "\u2028", '{"query": 1, "query": 2}']
)
odd_lines |= st.sampled_from(['{"y": NaN}', '{"query": 1e999}', "\ufeff{}", '"\ud800"', "\0"])
lines = st.lists(
    (fields | plain | plain).map(json.dumps).map(lambda text: text.encode())
    | odd_lines.map(lambda text: text.encode(errors="surrogatepass"))
    | st.binary(max_size=9),
    max_size=8,
)


@given(lines=lines, named=st.booleans(), given=parameters, cut=st.integers(0, 8))
def test_lines_of_any_log(lines, named, given, cut, tmp_path):
    ids = [str(i) for i in range(N)] if named else None
    reader = EventReader(NamedVectors("items", store(), ids), NamedVectors("queries", store()))
    said = []
    replay = LogReplay(fitted(**given), {"a": "b"})
    for i, line in enumerate(lines):
        if i == cut:
            replay.save(tmp_path / "checkpoint")
        attempt(lambda line=line: replay.take(line, "log", reader, said.append), lines, given)
    assert all("log:" in sentence and "\n" not in sentence for sentence in said)
    assert len(said) == replay.counts["skipped"]
    for portion in replay.portions:
        check_finite(list(portion["first_liked"].values()))
    if cut < len(lines):
        # One that was stopped there and goes on ends with the same bytes.
        again = load(tmp_path / "checkpoint")
        again.adapter.items = store()
        for line in lines[:cut]:
            again.skip(line)
        again.check_prefix()
        for line in lines[cut:]:
            again.take(line, "log", reader, [].append)
        assert saved(again, tmp_path) == saved(replay, tmp_path)
