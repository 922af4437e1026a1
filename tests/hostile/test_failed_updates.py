"""An update that fails changes nothing, also if it fails halfway.

Nothing is what a file would hold, what `metric_` shows, the counters, and the random numbers.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import samewise
from samewise import (
    LEGO,
    OASIS,
    POLA,
    DiagonalAROMA,
    FactoredAROMA,
    GCosLA,
    KernelPOLA,
    Pairs,
    PassiveAggressive,
    Triplets,
)
from samewise.catalog import LEARNERS
from samewise.engine.online import Online
from samewise.exceptions import InvalidInputError

CASES = {
    "PassiveAggressive": PassiveAggressive,
    "PassiveAggressive blocked": lambda: PassiveAggressive("pa2", psd="end", path="blocked"),
    "PassiveAggressive 7": lambda: PassiveAggressive("pals", psd=7, average="uniform"),
    "POLA": POLA,
    "KernelPOLA": KernelPOLA,
    "KernelPOLA poly": lambda: KernelPOLA("poly"),
    "LEGO": LEGO,
    "GCosLA": GCosLA,
    "GCosLA thesis": lambda: GCosLA(step_margin=None, update="thesis"),
    "OASIS": OASIS,
    "OASIS suffix": lambda: OASIS(average=("suffix", 3), psd=5),
    "OASIS rank": lambda: OASIS(rank=3),
    "DiagonalAROMA": DiagonalAROMA,
    "DiagonalAROMA survival": lambda: DiagonalAROMA(average="survival"),
    "FactoredAROMA": FactoredAROMA,
    "FactoredAROMA mistake": lambda: FactoredAROMA(update="mistake", average="uniform"),
}
N, D = 60, 8
ROWS = np.random.default_rng(0).normal(size=(N, D))
LABELS = np.arange(N) % 3
PAIRS = Pairs.from_labels(ROWS, LABELS, 1200, random_state=0)
TRIPLETS = Triplets.from_labels(ROWS, LABELS, 1200, random_state=0)


LEARNS_FROM = {entry.name: entry.learns_from for entry in LEARNERS}

# A kernel need not be tiny where rows are.
LINEAR = [name for name in CASES if not name.startswith("KernelPOLA")]


@pytest.fixture(params=CASES)
def make(request):
    return CASES[request.param]


@pytest.fixture(params=LINEAR)
def make_linear(request):
    return CASES[request.param]


def test_every_online_learner_is_here():
    online = {entry.name for entry in LEARNERS if entry.family == "online"}
    assert {name.split()[0] for name in CASES} == online


def stream(learner, X=ROWS):
    """The supervision that it takes, over these rows."""
    if isinstance(learner, OASIS | DiagonalAROMA | FactoredAROMA):
        return Triplets(X, TRIPLETS.anchor, TRIPLETS.positive, TRIPLETS.negative)
    return Pairs(X, PAIRS.left, PAIRS.right, PAIRS.y)


def learned(learner, path):
    """All that there is to see of it."""
    learner.save(path)
    form = learner.metric_
    seen = form.matrix if hasattr(form, "matrix") else form.components
    curves = {name: values.tobytes() for name, values in learner.history_.items()}
    return path.read_bytes(), np.array(seen).tobytes(), curves


def refuse(learner, given, tmp_path, said=None, error=InvalidInputError):
    before = learned(learner, tmp_path / "learner")
    with pytest.raises(error, match=said):
        learner.partial_fit(given)
    assert learned(learner, tmp_path / "learner") == before


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("factor", [1e-100, 1e-160, 1e-300])
def test_rows_half_of_which_are_tiny(make_linear, factor, sparse, tmp_path):
    learner = make_linear()
    X = ROWS.copy()
    X[N // 2 :] *= factor
    learner.fit(stream(learner)[:100])
    given = stream(learner, sp.csr_array(X) if sparse else X)
    tiny = np.any([getattr(given, name) >= N // 2 for name in given._members], axis=0)
    given = given[np.concatenate([np.flatnonzero(~tiny)[:20], np.flatnonzero(tiny)])]
    refuse(learner, given, tmp_path, "sizes from .* scale the features")
    # One at a time: those before the refused one are learned, and that one is not.
    with pytest.raises(InvalidInputError, match="sizes from"):
        learner.partial_fit(given[i : i + 1] for i in range(len(given)))
    seen = learner.n_seen_ - 100
    assert 0 < seen < len(given)
    refuse(learner, given[seen : seen + 1], tmp_path, "sizes from")
    expected = make_linear().fit(stream(learner)[:100])
    for i in range(seen):
        expected.partial_fit(given[i : i + 1])
    assert learned(learner, tmp_path / "a") == learned(expected, tmp_path / "b")


def test_a_first_portion_that_is_refused_leaves_nothing(make):
    learner = make()
    X = ROWS.copy()
    X[:, :] *= np.where(np.arange(N) < N // 2, 1.0, 1e-200)[:, None]
    if isinstance(learner, KernelPOLA):
        X[:, :] = 1e60
        X *= np.arange(1, N + 1)[:, None]
        learner.set_params(kernel="poly", kernel_params={"degree": 9})
    before = set(vars(learner))
    for learn in (learner.fit, learner.partial_fit):
        with np.errstate(over="ignore", invalid="ignore"), pytest.raises(InvalidInputError):
            learn(stream(learner, X))
        assert set(vars(learner)) == before


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("sparse", [False, True])
def test_values_that_change_after_they_were_checked(make, bad, sparse, tmp_path):
    learner = make()
    X = sp.csr_array(ROWS) if sparse else ROWS.copy()
    given = stream(learner, X)
    learner.fit(given)
    (X.data if sparse else X.ravel())[3 * D + 1] = bad
    said = "NaN|infinit"
    refuse(learner, given, tmp_path, said, ValueError)
    refuse(learner, given[:100], tmp_path, said, ValueError)


def test_weights_that_change_after_they_were_checked(tmp_path):
    weight = np.ones(len(PAIRS))
    pairs = Pairs(PAIRS.X, PAIRS.left, PAIRS.right, PAIRS.y, weight)
    learner = PassiveAggressive().fit(pairs)
    weight[700] = np.nan
    refuse(learner, pairs, tmp_path, "An example or its weight is NaN or infinite")


BATCH_OF_PAIRS = [
    entry.name
    for entry in LEARNERS
    if entry.family != "online" and {"pairs", "chunklets"} & {*entry.learns_from}
]


@pytest.mark.parametrize("name", BATCH_OF_PAIRS)
@pytest.mark.parametrize("sparse", [False, True])
def test_values_that_change_before_a_batch_learns(name, sparse):
    learner = getattr(samewise, name)()
    X = sp.csr_array(ROWS) if sparse else ROWS.copy()
    pairs = Pairs(X, PAIRS.left, PAIRS.right, PAIRS.y)
    # Of one learner, similar pairs alone make chunklets.
    pairs = pairs if "pairs" in LEARNS_FROM[name] else pairs[pairs.y > 0][:5]
    (X.data if sparse else X.ravel())[3 * D + 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN|[Ss]parse"):
        learner.fit(pairs)
    assert not hasattr(learner, "metric_")


@pytest.mark.parametrize("name", [n for n in BATCH_OF_PAIRS if "pairs" in LEARNS_FROM[n]])
def test_weights_that_change_before_a_batch_learns(name):
    weight = np.ones(len(PAIRS))
    pairs = Pairs(PAIRS.X, PAIRS.left, PAIRS.right, PAIRS.y, weight)
    weight[700] = np.nan
    with pytest.raises(InvalidInputError, match="sample_weight must be finite"):
        getattr(samewise, name)().fit(pairs)


@pytest.mark.parametrize("size", [1e10, 1e60])
def test_one_huge_value_is_learned_from_or_refused(make, size, tmp_path):
    learner = make()
    X = ROWS.copy()
    X[7, 3] = size
    given = stream(learner, X)
    before = learned(learner.fit(stream(learner)), tmp_path / "learner")
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            learner.partial_fit(given)
    except InvalidInputError:
        assert learned(learner, tmp_path / "learner") == before
    # And it goes on, in either case.
    learner.partial_fit(stream(learner)[:50])
    learner.save(tmp_path / "learner")
    assert samewise.load(tmp_path / "learner").n_seen_ == learner.n_seen_


def test_lego_fitted_to_one_huge_value():
    X = ROWS.copy()
    X[7, 3] = 1e10
    learner = LEGO().fit(PAIRS)
    try:
        learner.fit(stream(learner, X))
    except InvalidInputError:
        assert learner.n_seen_ == len(PAIRS)
    assert np.isfinite(learner.metric_.matrix).all()


def test_a_step_that_leaves_the_range_is_taken_back(tmp_path):
    # Steps as the thesis prints them grow with every pair of so different sizes.
    X = ROWS.copy()
    X[N // 2 :] *= 1e-60
    learner = GCosLA(step_margin=None, update="thesis").fit(PAIRS)
    for given in (stream(learner, X), stream(learner, X)[:100]):
        refuse(learner, given, tmp_path, "left the range of float64")


def test_differences_of_sizes_that_a_cone_must_settle_otherwise():
    # The search for an eigenvalue divided by zero here.
    for seed in range(12):
        rng = np.random.RandomState(seed)
        X = rng.randn(80, 20) * 10.0 ** rng.uniform(-14, 14, (80, 1))
        left, right = rng.randint(0, 80, (2, 600))
        pairs = Pairs(X, left, right, rng.choice([-1, 1], 600))
        learner = PassiveAggressive("pals").fit(pairs)
        values = np.linalg.eigvalsh(learner._online.mover.store.matrix)
        assert values[0] >= -1e-9 * values[-1]


# Errors from elsewhere


class FailingError(Exception):
    """Not an error of samewise."""


@pytest.mark.parametrize("error", [FailingError, MemoryError, KeyboardInterrupt])
def test_any_error_in_a_later_portion(make, error, tmp_path, monkeypatch):
    learner = make().fit(stream(make())[:300])
    large = stream(learner)[np.tile(np.arange(1200), 8)]
    learn, calls = Online._learn, []

    def fail(self, directions):
        calls.append(len(directions))
        if len(calls) == 2:
            learn(self, directions.rows(0, len(directions) // 2))
            raise error
        return learn(self, directions)

    monkeypatch.setattr(Online, "_learn", fail)
    refuse(learner, large, tmp_path, error=error)
    assert len(calls) == 2


def test_random_numbers_are_put_back(make_linear):
    X = ROWS.copy()
    X[::2] *= 1e-200
    random = np.random.RandomState(3)
    learner = make_linear().set_params(random_state=random).fit(ROWS, LABELS)
    numbers = random.get_state()[1].copy(), random.get_state()[2]
    for learn in (learner.partial_fit, learner.set_params(shuffle=True, n_passes=2).fit):
        with pytest.raises(InvalidInputError):
            learn(X, LABELS)
        after = random.get_state()
        assert np.array_equal(after[1], numbers[0]) and after[2] == numbers[1]


def test_a_kernel_that_fails_in_a_later_block(tmp_path):
    calls = []

    def kernel(a, b):
        calls.append(1)
        if len(calls) == 60_000:
            raise FailingError
        return float(a @ b)

    learner = KernelPOLA(lambda a, b: float(a @ b)).fit(PAIRS[:100])
    before = vars(learner)["_span"].state().arrays["basis"].copy(), learner.n_seen_
    learner.kernel = kernel
    with pytest.raises(FailingError):
        learner.partial_fit(PAIRS[:300])
    assert learner.n_seen_ == before[1]
    np.testing.assert_array_equal(learner._span.basis, before[0])
    learner.kernel = lambda a, b: float(a @ b)
    learner.partial_fit(PAIRS[:10])


@pytest.mark.parametrize("name", [name for name in LINEAR if name != "GCosLA thesis"])
def test_a_stream_of_ordinary_examples_copies_nothing(name, monkeypatch):
    """A copy takes as long as an example of as many dimensions: it must be the exception."""
    learner = CASES[name]()
    given = stream(learner)
    learner.fit(given[:100])
    held = []
    monkeypatch.setattr(Online, "hold", lambda self: held.append(1))
    for i in range(100, 110):
        learner.partial_fit(given[i : i + 1])
    learner.partial_fit(given[100:200])
    assert not held
