"""Saved in the middle of a stream, loaded, and on: the same bits as without the interruption."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import random
import signal
import struct
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

import samewise
from samewise import (
    OASIS,
    POLA,
    Bilinear,
    DiagonalAROMA,
    FactoredAROMA,
    KernelPOLA,
    Mahalanobis,
    Pairs,
    PassiveAggressive,
    Triplets,
)
from samewise.exceptions import FileFormatError
from samewise.files import container
from samewise.files.storable import made
from samewise.forms import Form
from samewise.learners.online.gcosla import GCosLA
from samewise.learners.online.lego import LEGO

MAGIC = b"samewise\x1a\n"
AVERAGES = ["last", "uniform", "survival", ("suffix", 500), ("cutoff", 1), ("decay", 9)]


@pytest.fixture(autouse=True)
def global_random_numbers():
    """Those that a learner without random_state draws from stay as they are elsewhere."""
    before = np.random.get_state()
    yield
    np.random.set_state(before)


# Streams, each the same in every process.


def examples(d, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([0, 1, 2], 30))
    X = rng.normal(size=(90, d))
    X[:, 0] += 1.5 * y
    return X.astype(dtype), y


def thinned(X):
    return sp.csr_array(np.where(np.random.default_rng(1).random(X.shape) < 0.4, X, 0.0))


def padded(X):
    return sp.csr_array(thinned(X) + sp.csr_array(np.eye(1, X.shape[1])[np.zeros(len(X), int)]))


def pairs(d=5, dtype=np.float64, change=np.asarray):
    X, y = examples(d, dtype=dtype)
    drawn = Pairs.from_labels(X, y, n_pairs=240, random_state=0)
    return Pairs(change(X), drawn.left, drawn.right, drawn.y)


def triplets(m=5, n=None, dtype=np.float64, change=np.asarray):
    X, y = examples(m, dtype=dtype)
    drawn = Triplets.from_labels(X, y, n_triplets=240, random_state=0)
    items = None if n is None else change(examples(n, seed=2, dtype=dtype)[0])
    return Triplets(change(X), drawn.anchor, drawn.positive, drawn.negative, items=items)


def kernel_matrix(X):
    return rbf_kernel(X, gamma=0.1)


PAIRS = {
    "dense": pairs,
    "float32": lambda: pairs(dtype=np.float32),
    "sparse": lambda: pairs(change=thinned),
    "sparse, no zero rows": lambda: pairs(change=padded),
    "wide": lambda: pairs(130),
    "kernel matrix": lambda: pairs(change=kernel_matrix),
}
TRIPLETS = {
    "dense": triplets,
    "float32": lambda: triplets(dtype=np.float32),
    "sparse": lambda: triplets(change=thinned),
    "other items": lambda: triplets(5, 3),
    "sparse, other items": lambda: triplets(5, 4, change=thinned),
    "wide": lambda: triplets(130),
    "wide, other items": lambda: triplets(130, 140),
}


def cases():
    """Name → (learner, stream)."""
    found = {}

    def add(learner, stream, name=None):
        streams = TRIPLETS if hasattr(learner, "n_triplets") else PAIRS
        name = f"{name or learner} {stream}".replace("\n", "")
        drawn = "n_triplets" if streams is TRIPLETS else "n_pairs"
        found[name] = (learner.set_params(**{drawn: 60}), streams[stream])

    for psd, average in itertools.product(["each", "end", 6], AVERAGES):
        add(PassiveAggressive("pa1", 0.05, psd=psd, average=average), "dense")
    for psd, stream in itertools.product(["each", "end", 6], ["float32", "sparse", "wide"]):
        add(PassiveAggressive("pals", 0.1, psd=psd, average=("suffix", 4)), stream)
        add(PassiveAggressive("pa2", 0.1, psd=psd, average="survival"), stream)
    start = Mahalanobis(np.diag([1.0, 2.0, 0.0, 1.0, 0.5]))
    add(PassiveAggressive("pa", init=start), "dense", "PassiveAggressive from a form")
    array = np.eye(5, dtype=np.float32)
    add(POLA(0.5, init=array, random_state=3), "dense", "POLA from an array")
    add(PassiveAggressive("pa1", 1e-4, init="identity"), "dense")
    add(POLA(average="uniform", random_state=np.random.RandomState(4)), "wide", "POLA own numbers")
    for stream in ("dense", "sparse", "float32"):
        add(KernelPOLA("rbf", {"gamma": np.float64(0.1)}), stream)
    add(KernelPOLA("poly", {"degree": 2}, relaxation=0.3), "sparse")
    add(KernelPOLA("precomputed"), "kernel matrix")

    for psd, average in itertools.product(["each", "end", 6], AVERAGES):
        add(GCosLA(0.2, None, psd=psd, average=average), "dense")
    for stream in ("float32", "sparse, no zero rows", "wide"):
        add(GCosLA(0.3, 0.1, average=("suffix", 4), random_state=2), stream)
        add(GCosLA(0.1, None, update="thesis"), stream)
    for average in AVERAGES:
        add(LEGO(0.1, average=average), "dense")
    for stream in ("float32", "sparse", "wide"):
        add(LEGO(0.1), stream)

    for psd, average in itertools.product([None, "end", 6], AVERAGES):
        add(OASIS(psd=psd, average=average), "dense")
    for stream in TRIPLETS:
        add(OASIS(average=("suffix", 4)), stream)
        add(DiagonalAROMA(2, average="survival"), stream)
        add(FactoredAROMA(average=("suffix", 4)), stream)
        add(FactoredAROMA(update="mistake", average="uniform"), stream)
    for learner, stream in itertools.product(
        (OASIS(rank=2, psd=4), DiagonalAROMA(rank=2), FactoredAROMA(rank=2)), ("dense", "sparse")
    ):
        add(learner, stream)
    add(DiagonalAROMA(rank=2, average=("cutoff", 2)), "other items")
    add(OASIS(symmetric=True, init=np.ones((5, 5)), margin=0.3), "dense", "OASIS from an array")
    for average in ("last", "uniform", ("cutoff", 1), ("decay", 9)):
        add(DiagonalAROMA(average=average), "dense")
        add(FactoredAROMA(average=average, random_state=np.int64(3)), "dense")
    return found


CASES = cases()


def first_part(name):
    learner, stream = CASES[name]
    learner, told = clone(learner), stream()
    for part in (told[:40], told[40:150]):
        learner.partial_fit(part)
    return learner


def second_part(name, learner):
    """Go on, with drawing from labels where the stream has such."""
    told = CASES[name][1]()
    learner.partial_fit(told[150:])
    if getattr(learner, "n_features_items_", 5) == 5 and learner.n_features_in_ == 5:
        learner.partial_fit(*examples(5, dtype=told.X.dtype))
        assert learner.n_seen_ > len(told)
    return learner


def on_in_another_process(folder):
    for i, name in enumerate(CASES):
        learner = samewise.load(folder / str(i))
        second_part(name, learner).save(folder / f"{i} after")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Every case saved in the middle; a new process loads each, goes on, and saves it again."""
    folder = tmp_path_factory.mktemp("saved")
    for i, name in enumerate(CASES):
        np.random.seed(i)
        first_part(name).save(folder / str(i))
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); "
    code += "import pathlib, test_saved; test_saved.on_in_another_process(pathlib.Path('.'))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


def public(learner):
    """Everything a learner shows."""
    names = [name for name in dir(learner) if name[0] != "_" and name[-1] == "_"]
    return {name: getattr(learner, name) for name in names}


def assert_same(one, other):
    shown, also = public(one), public(other)
    assert shown.keys() == also.keys() and len(shown) > 8
    for name, value in shown.items():
        if isinstance(value, dict):
            for field in value:
                np.testing.assert_array_equal(value[field], also[name][field])
        elif isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, also[name])
            assert value.dtype == also[name].dtype
        else:
            assert value == also[name], name


@pytest.mark.parametrize("i", range(len(CASES)), ids=list(CASES))
def test_it_goes_on_as_if_nothing_had_happened(i, folder, tmp_path):
    name = list(CASES)[i]
    np.random.seed(i)
    learner = first_part(name)
    here = samewise.load(folder / str(i))
    here.save(tmp_path / "here")
    assert (tmp_path / "here").read_bytes() == (folder / str(i)).read_bytes()
    uninterrupted = second_part(name, learner)
    assert_same(second_part(name, here), uninterrupted)
    # The file holds all there is: where the files are the same, so are the learners.
    uninterrupted.save(tmp_path / "uninterrupted")
    here.save(tmp_path / "here")
    content = (tmp_path / "uninterrupted").read_bytes()
    assert (tmp_path / "here").read_bytes() == content
    assert (folder / f"{i} after").read_bytes() == content
    assert uninterrupted.n_updates_ > 20


def test_the_cone_is_met_in_both_its_regimes():
    calm = {
        (mover.psd, mover.cone.calm, mover.cone.P is None)
        for mover in (first_part(name)._online.mover for name in CASES if name.startswith("P"))
    }
    assert {("each", True, True), ("each", False, False)} <= calm


# Parameters, names and random numbers


@pytest.fixture
def path(tmp_path):
    return tmp_path / "learner.samewise"


def again(learner, path):
    learner.save(path)
    return samewise.load(path)


@pytest.mark.parametrize("name", ["PassiveAggressive from a form", "POLA from an array"])
def test_the_parameters_come_back(name, path):
    learner = first_part(f"{name} dense")
    loaded = again(learner, path)
    wanted, found = learner.get_params(), loaded.get_params()
    init, also = wanted.pop("init"), found.pop("init")
    assert wanted == found
    assert type(init) is type(also)
    if isinstance(init, Mahalanobis):
        assert also == init
        with pytest.raises(ValueError, match="read-only"):
            also.matrix[0, 0] = 1.0
    else:
        np.testing.assert_array_equal(also, init)
        assert also.dtype == init.dtype
    fresh = clone(loaded).partial_fit(pairs()[:50])
    assert fresh.metric_ == clone(learner).partial_fit(pairs()[:50]).metric_


def test_parameters_of_numpy_come_back_as_pythons(path):
    given = {"C": np.float32(0.1), "n_passes": np.int64(2), "shuffle": np.bool_(True)}
    learner = OASIS(**given, average=["suffix", np.int64(3)], random_state=np.int64(5))
    loaded = again(learner.fit(triplets()), path)
    assert loaded.C == np.float32(0.1) and type(loaded.C) is float
    assert loaded.n_passes == 2 and type(loaded.n_passes) is int
    assert loaded.shuffle is True and loaded.average == ("suffix", 3) and loaded.random_state == 5
    assert loaded.fit(triplets()).metric_ == learner.fit(triplets()).metric_


def test_parameters_set_after_learning_do_not_change_what_goes_on(path):
    learner = OASIS(C=0.01, rank=3).fit(triplets()).set_params(C=1.0, rank=None, average="uniform")
    loaded = again(learner, path)
    assert loaded.C == 1.0 and loaded.rank is None
    assert loaded.partial_fit(triplets()).metric_ == learner.partial_fit(triplets()).metric_
    assert loaded.fit(triplets()).metric_ == learner.fit(triplets()).metric_


def test_the_names_of_features_come_back(path):
    X, y = examples(5)
    # Some 2 MB of names: more than a header holds.
    names = [f"größe {i}" + "x" * 400_000 * (i % 2) for i in range(4)] + ['"\n']
    frame = pd.DataFrame(X, columns=names)
    learner = PassiveAggressive(n_pairs=50, random_state=0).fit(frame, y)
    loaded = again(learner, path)
    np.testing.assert_array_equal(loaded.feature_names_in_, names)
    assert loaded.feature_names_in_.dtype == object
    loaded.partial_fit(frame, y)
    with pytest.raises(ValueError, match="feature names"):
        loaded.partial_fit(frame[names[::-1]], y)


def test_the_validation_curve_comes_back(path):
    X, y = examples(5)
    learner = OASIS(validation_fraction=0.3, n_triplets=3000, evaluate_every=300, random_state=0)
    loaded = again(learner.fit(X, y), path)
    assert loaded.validation_curve_ == learner.validation_curve_
    assert [tuple(map(type, point)) for point in loaded.validation_curve_[:1]] == [(int, float)]
    assert loaded.partial_fit(X, y).metric_ == learner.partial_fit(X, y).metric_


def test_a_given_random_state_is_still_the_learners_own(path):
    numbers = np.random.RandomState(0)
    X, y = examples(5)
    learner = OASIS(n_triplets=40, random_state=numbers).fit(X, y)
    loaded = again(learner, path)
    assert loaded.random_state is loaded._random and loaded.random_state is not numbers
    numbers.standard_normal()  # Whoever shares it moves the saved learner, not the loaded one.
    one = loaded.partial_fit(X, y).metric_
    assert one != learner.partial_fit(X, y).metric_
    assert samewise.load(path).partial_fit(X, y).metric_ == one
    # Where another one was set since, both are saved.
    learner.set_params(random_state=np.random.RandomState(7))
    loaded = again(learner, path)
    assert loaded.random_state.randint(2**31) == np.random.RandomState(7).randint(2**31)
    assert loaded.partial_fit(X, y).metric_ == learner.partial_fit(X, y).metric_


def test_loading_does_not_touch_the_global_random_numbers(path):
    learner = OASIS().partial_fit(triplets())
    np.random.seed(0)
    again(learner, path)
    found = np.random.randint(2**31)
    np.random.seed(0)
    assert found == np.random.randint(2**31)


# What cannot be saved


def test_what_has_learned_nothing_cannot_be_saved(path):
    for learner in (OASIS(), POLA(), KernelPOLA(), DiagonalAROMA()):
        with pytest.raises(NotFittedError):
            learner.save(path)
    assert not path.exists()


class Mine(OASIS):
    pass


def test_what_cannot_be_saved_says_so_and_leaves_the_old_file(path):
    told = pairs()[:50]
    POLA().fit(told).save(path)
    content = path.read_bytes()
    other = np.random.RandomState(np.random.PCG64(0))
    for learner, text in (
        (KernelPOLA(lambda a, b: float(a @ b)).fit(told), "whose kernel is a callable cannot be"),
        (KernelPOLA("sigmoid", {"coef0": 1.0}), "files hold finite numbers"),
        (POLA(), "Got a RandomState of PCG64; give random_state a seed"),
        (Mine().fit(triplets()), "Mine is a class of your own"),
        (POLA(), "The 'relaxation' parameter of POLA must be"),
    ):
        if not hasattr(learner, "_online"):
            learner.fit(told)
        if "files hold" in text:
            learner.kernel_params["coef0"] = float("inf")
        if "PCG64" in text:
            learner.random_state = other
        if "relaxation" in text:
            learner.relaxation = -1.0
        with pytest.raises(ValueError, match=text):
            learner.save(path)
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == [path.name]


WRITER = """
import sys
import numpy as np
from samewise import OASIS
pair = [OASIS(init=np.eye(d)).fit(np.ones((1, 3, d))) for d in (100, 150)]
pair[0].save(sys.argv[1])
print("ready", flush=True)
while True:
    for learner in pair:
        learner.save(sys.argv[1])
"""


def test_a_killed_writer_leaves_a_whole_learner(path):
    chance = random.Random(0)
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.readline() == "ready\n"
        for _ in range(20):
            time.sleep(chance.uniform(0.0, 0.02))
            assert samewise.load(path).n_features_in_ in (100, 150)
        os.kill(writer.pid, signal.SIGKILL)
    assert writer.returncode == -signal.SIGKILL
    assert samewise.load(path).n_features_in_ in (100, 150)


# Files that are damaged or lie


def saved(learner, path):
    learner.save(path)
    content = path.read_bytes()
    start = len(MAGIC) + 40
    length = struct.unpack("<Q32s", content[len(MAGIC) : start])[0]
    return json.loads(content[start : start + length]), content[start + length :]


def forged(header, arrays, path):
    """Write what a header says and the arrays it names, with checksums that are right."""
    payload, table = b"", []
    for name, array in arrays.items():
        shape = list(array.shape)
        entry = {"name": name, "dtype": array.dtype.name, "shape": shape, "offset": len(payload)}
        table.append(entry)
        payload += array.tobytes() + bytes(-array.nbytes % 8)
    sums = {"payload_bytes": len(payload), "payload_sha256": hashlib.sha256(payload).hexdigest()}
    text = json.dumps({**header, "arrays": table, **sums}).encode()
    prefix = struct.pack("<Q32s", len(text), hashlib.sha256(text).digest())
    path.write_bytes(MAGIC + prefix + text + payload)


def parts(header, payload):
    return {
        entry["name"]: np.frombuffer(
            payload,
            entry["dtype"],
            int(np.prod(entry["shape"])),
            entry["offset"],
        ).reshape(entry["shape"])
        for entry in header["arrays"]
    }


VICTIMS = {
    "PassiveAggressive": PassiveAggressive(psd="each", average=("suffix", 3), init=np.eye(5)),
    "POLA": POLA(average="uniform", init=Mahalanobis.identity(5)),
    "KernelPOLA": KernelPOLA("rbf", {"gamma": 0.1}),
    "GCosLA": GCosLA(average=("suffix", 3)),
    "LEGO": LEGO(0.1),
    "OASIS": OASIS(rank=2, psd=3),
    "DiagonalAROMA": DiagonalAROMA(average="uniform"),
    "FactoredAROMA": FactoredAROMA(average=("suffix", 3)),
}


@pytest.fixture(params=VICTIMS)
def victim(request):
    learner = VICTIMS[request.param]
    told = triplets(change=thinned) if hasattr(learner, "n_triplets") else pairs(change=padded)
    return clone(learner).fit(told[:60])


def test_a_file_that_is_cut_or_damaged_is_refused(victim, path):
    victim.save(path)
    content = path.read_bytes()
    chance = random.Random(0)
    for _ in range(60):
        place = chance.randrange(len(content))
        path.write_bytes(content[:place])
        with pytest.raises(FileFormatError, match="is truncated"):
            samewise.load(path)
        damaged = bytearray(content)
        damaged[place] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError):
            samewise.load(path)


def test_a_newer_format_says_so(victim, path):
    header, payload = saved(victim, path)
    forged({**header, "format": 2}, parts(header, payload), path)
    with pytest.raises(FileFormatError, match="has format 2: written by a newer version; upgrade"):
        samewise.load(path)


def test_a_form_is_asked_for_and_a_learner_found(victim, path):
    victim.save(path)
    text = rf"holds a {type(victim).__name__}, not a form; samewise\.load reads"
    with pytest.raises(FileFormatError, match=text):
        made(container.read(path), Form, wanted="form")
    victim.metric_.save(path)
    assert samewise.load(path) == victim.metric_


def places(values, path=()):
    for name, value in values.items():
        yield (*path, name)
        if isinstance(value, dict):
            yield from places(value, (*path, name))


def put(values, place, value):
    """A copy of nested dicts with one value changed; or gone, where it is `put` itself."""
    values = json.loads(json.dumps(values))
    inner = values
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    if value is put:
        del inner[place[-1]]
    return values


# Places where another value is another learner, but no lie.
FREE = {"parameters", "random"}


@pytest.mark.parametrize(
    "value",
    [None, -1, 1e308, "x", [1], {}, 2**70, put],
    ids=lambda value: "gone" if value is put else str(value),
)
def test_no_value_can_be_anything(victim, path, value):
    header, payload = saved(victim, path)
    arrays = parts(header, payload)
    refused = 0
    for place in places(header["params"]):
        before = header["params"]
        for name in place:
            before = before[name]
        forged({**header, "params": put(header["params"], place, value)}, arrays, path)
        try:
            loaded = samewise.load(path)
        except FileFormatError:
            refused += 1
        else:
            harmless = place[0] in FREE or value is None or isinstance(before, float)
            harmless |= before == value or place[-1] in ("since", "cap", "least_b")
            assert harmless, place
            assert type(loaded) is type(victim)
    assert refused > 20


def test_no_number_can_be_added_to_a_state(victim, path):
    header, payload = saved(victim, path)
    arrays = parts(header, payload)
    groups = [p for p in [(), *places(header["params"])] if p[-1:] != ("kernel_params",)]
    for place in groups:
        inner = header["params"]
        for name in place:
            inner = inner[name]
        if isinstance(inner, dict):
            forged({**header, "params": put(header["params"], (*place, "more"), 1)}, arrays, path)
            with pytest.raises(FileFormatError, match=r"more does not belong there|unexpected"):
                samewise.load(path)
    forged(header, {**arrays, "learned.online.more": np.ones(1)}, path)
    with pytest.raises(FileFormatError, match=r"learned\.online\.more does not belong there"):
        samewise.load(path)


def emptied(array):
    return np.empty((2**31 - 1, 0) if array.ndim == 2 else 0, array.dtype)


def with_nan(array):
    return np.full_like(array, np.nan if array.dtype.kind == "f" else -5)


def one_more(array):
    return np.concatenate([array, array[:1]])


def flat(array):
    return array.reshape(-1, 1) if array.ndim == 1 else array.ravel()


def as_bool(array):
    return array.astype(bool)


@pytest.mark.parametrize("change", [None, emptied, with_nan, one_more, flat, as_bool])
def test_no_array_can_be_anything(victim, path, change):
    header, payload = saved(victim, path)
    arrays = parts(header, payload)
    for name, array in arrays.items():
        if array.size == 0 and change in (None, emptied, with_nan):
            continue
        # A form can be made of its components alone; and a queue holds any number of μ.
        if name.startswith("parameters.init") and (array.dtype.kind, change) != ("f", with_nan):
            continue
        if name == "learned.online.mover.cone.P" and change is None:
            continue
        if name == "learned.online.mover.cone.recent" and change in (emptied, one_more):
            continue
        other = {k: v for k, v in arrays.items() if k != name}
        if change is not None:
            other = {k: change(v) if k == name else v for k, v in arrays.items()}
        forged(header, other, path)
        with pytest.raises(FileFormatError, match=f"do not make a {type(victim).__name__}"):
            samewise.load(path)


@pytest.mark.parametrize("name", ["Mine", "OnlineLearner", "os.system", "", 3, None, ["OASIS"]])
def test_only_known_classes_are_made(path, name):
    header, payload = saved(OASIS().fit(triplets()), path)
    forged({**header, "kind": name}, parts(header, payload), path)
    text = "holds an object of the unknown class" if isinstance(name, str) else "of the wrong type"
    with pytest.raises(FileFormatError, match=text):
        samewise.load(path)


def test_no_learner_passes_for_another(victim, path):
    header, payload = saved(victim, path)
    for name in VICTIMS:
        if name != type(victim).__name__:
            forged({**header, "kind": name}, parts(header, payload), path)
            with pytest.raises(FileFormatError, match=f"do not make a {name}"):
                samewise.load(path)


@pytest.mark.parametrize(
    ("learner", "place", "value", "text"),
    [
        ("OASIS", ("learned", "n_features_in_"), 4, "must be an array of the shape"),
        (
            "OASIS",
            ("learned", "online", "mover", "psd"),
            "each",
            "psd each needs a symmetric float64",
        ),
        ("OASIS", ("parameters", "C"), -1.0, "The 'C' parameter of OASIS must be"),
        ("OASIS", ("learned", "margin_"), 0, "margin_ must be positive"),
        ("OASIS", ("learned", "online", "mover", "cap"), -1.0, "a finite number, at least 0"),
        ("OASIS", ("learned", "online", "mover", "relax"), True, "a finite number, at least 0"),
        ("OASIS", ("random", "pos"), 625, "pos must be an integer from 0 to 624"),
        ("DiagonalAROMA", ("learned", "online", "average", "kind"), "suffix", "'average' param"),
        (
            "DiagonalAROMA",
            ("learned", "n_features_items_"),
            4,
            "does not have the features of the data",
        ),
        (
            "POLA",
            ("learned", "online", "mover", "path"),
            "fast",
            "path must be one of 'auto', 'compiled'",
        ),
        ("POLA", ("learned", "online", "history", "rounds"), 7, "mistakes must be an integer"),
        ("POLA", ("learned", "n_features_in_"), 6, "does not have the features of the data"),
        ("KernelPOLA", ("parameters", "kernel"), "os.system", "The 'kernel' parameter of"),
        ("KernelPOLA", ("parameters", "kernel_params"), {"surprise": 1}, "unexpected keyword"),
        ("KernelPOLA", ("learned", "online", "mover", "psd"), "end", "psd must be each"),
    ],
)
def test_what_is_wrong_is_named(learner, place, value, text, path):
    learner = VICTIMS[learner]
    told = triplets() if hasattr(learner, "n_triplets") else pairs()
    header, payload = saved(clone(learner).fit(told), path)
    forged({**header, "params": put(header["params"], place, value)}, parts(header, payload), path)
    with pytest.raises(FileFormatError, match=text):
        samewise.load(path)


@pytest.mark.parametrize(
    ("learner", "array", "change", "text"),
    [
        ("DiagonalAROMA", "mover.Sigma", lambda S: S + 1, "Sigma must be from 0 to 1"),
        ("DiagonalAROMA", "average.M.W", lambda W: W.astype("float32"), "M must be like the"),
        ("FactoredAROMA", "mover.Lambda.lower", lambda T: -T, "must be covariances of W"),
        ("FactoredAROMA", "mover.Omega.lower", lambda T: T + 2 * np.eye(5), "must be covariances"),
        ("FactoredAROMA", "average.sizes", lambda n: n + 1, "sizes do not part the updates"),
        ("FactoredAROMA", "average.changes", lambda c: c.astype("float32"), "of the type float64"),
        ("POLA", "mover.store.lower", np.transpose, "lower must be a lower triangle"),
        ("POLA", "history.points", lambda p: p[:, ::-1], "points are no running totals"),
    ],
)
def test_arrays_that_make_no_sense_are_named(learner, array, change, text, path):
    learner = VICTIMS[learner]
    told = triplets() if hasattr(learner, "n_triplets") else pairs()
    header, payload = saved(clone(learner).fit(told), path)
    arrays = parts(header, payload)
    name = f"learned.online.{array}"
    arrays[name] = np.ascontiguousarray(change(arrays[name]))
    forged(header, arrays, path)
    with pytest.raises(FileFormatError, match=text):
        samewise.load(path)


def test_sparse_rows_out_of_range_are_refused(path):
    header, payload = saved(KernelPOLA("linear").fit(pairs(change=thinned)), path)
    arrays = parts(header, payload)
    for name in ("learned._span.left.indices", "learned._span.right.indptr"):
        for value in (-1, 2**62):
            wrong = arrays[name].copy()
            wrong[1] = value
            forged(header, {**arrays, name: wrong}, path)
            with pytest.raises(FileFormatError, match="do not make a KernelPOLA"):
                samewise.load(path)


@pytest.mark.parametrize("value", [-1, 60])
def test_numbers_of_rows_out_of_range_are_refused(value, path):
    told = pairs()
    K = rbf_kernel(told.X)[:60, :60]
    told = Pairs(K, told.left % 60, told.right % 60, told.y)
    header, payload = saved(KernelPOLA("precomputed").fit(told), path)
    arrays = parts(header, payload)
    name = "learned._span.left.rows"
    wrong = arrays[name].copy()
    wrong[1] = value
    forged(header, {**arrays, name: wrong}, path)
    with pytest.raises(FileFormatError, match="rows must be numbers of rows"):
        samewise.load(path)


def test_variances_that_have_shrunk_to_nothing_are_no_lie(path):
    header, payload = saved(clone(VICTIMS["DiagonalAROMA"]).fit(triplets()), path)
    arrays = parts(header, payload)
    name = "learned.online.mover.Sigma"
    bounds = np.where(arrays[name] > np.median(arrays[name]), 1.0, 0.0)
    forged(header, {**arrays, name: bounds}, path)
    np.testing.assert_array_equal(samewise.load(path).variance_, bounds)
    assert {*bounds.ravel()} == {0.0, 1.0}


def test_a_width_that_is_only_claimed_costs_nothing(path):
    header, payload = saved(KernelPOLA("linear").fit(pairs(change=thinned)), path)
    params = put(header["params"], ("learned", "n_features_in_"), 2**53)
    forged({**header, "params": params}, parts(header, payload), path)
    tracemalloc.start()
    assert samewise.load(path).n_features_in_ == 2**53
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * path.stat().st_size


def test_loading_a_form_imports_nothing_that_learns(path):
    Bilinear(np.eye(2)).save(path)
    code = (
        "import sys, samewise\n"
        f"form = samewise.load({str(path)!r})\n"
        "parts = ('learners', 'engine', 'supervision', 'search', 'decide', 'protocols')\n"
        "print(form, [part for part in parts if f'samewise.{part}' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "Bilinear(shape=(2, 2)) []"
