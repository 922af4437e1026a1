"""Learners that learn at once, saved whole: the same again, and nothing but the same."""

from __future__ import annotations

import random
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

import samewise
from samewise import LMNN, KernelLMNN, Mahalanobis, MultiMetricLMNN, Pairs, learners
from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.files.storable import Storable
from samewise.learners.batch.hier import HIER
from samewise.learners.batch.itml import ITML
from samewise.learners.batch.lsml import LSML
from samewise.learners.batch.mcml import MCML
from samewise.learners.batch.mlkr import MLKR
from samewise.learners.batch.mmc import MMC
from samewise.learners.batch.nca import NCA
from samewise.learners.batch.scml import SCML
from samewise.learners.batch.sdml import SDML
from samewise.learners.batch.snn import SNN
from samewise.learners.closed.classical import LDA, PCA, Cosine, Covariance, Euclidean
from samewise.learners.closed.igml import IGML, KIGML
from samewise.learners.closed.lfda import LFDA
from samewise.learners.closed.rca import KRCA, RCA
from samewise.learners.neighbors.rbs import RBS
from samewise.learners.neighbors.relief import Relief
from samewise.learners.neighbors.sila import SiLA
from samewise.learners.neighbors.srbs import SRBS
from samewise.learners.online.online_learner import OnlineLearner
from tests.learners.test_saved import forged, parts, places, put, saved

BATCH = {
    name: getattr(learners, name)
    for name in learners.__all__
    if not issubclass(getattr(learners, name), OnlineLearner)
}
PARENTS = {0: "a", 1: "a", "a": "b", 2: "b"}
L = np.eye(5)[:3]

CASES = {
    "Cosine": (Cosine(), np.asarray),
    "Covariance": (Covariance(shrinkage=0.1), np.asarray),
    "Euclidean": (Euclidean(), np.asarray),
    "PCA": (PCA(2, whiten=True), np.asarray),
    "LDA": (LDA(shrinkage="auto"), np.asarray),
    "LFDA": (LFDA(2, embedding_type="orthonormalized"), np.float32),
    "RCA": (RCA(random_state=0), np.asarray),
    "IGML": (IGML(), np.float32),
    "KRCA": (KRCA("rbf", {"gamma": 0.1}, n_landmarks=20, random_state=0), np.asarray),
    "KIGML": (KIGML("poly", {"degree": 2}), sp.csr_array),
    "KIGML precomputed": (KIGML("precomputed"), lambda X: rbf_kernel(X, gamma=0.1)),
    "RBS": (RBS(psd="end"), np.asarray),
    "Relief": (Relief(discrete=[0, 2]), np.asarray),
    "Relief full": (Relief(structure="full", n_draws=30, random_state=1), np.float32),
    "Relief similarity": (Relief(form="similarity", psd=None), np.asarray),
    "SRBS": (SRBS(max_iter=20, tol=1.0), np.asarray),
    "SiLA": (SiLA(n_passes=2, warm_start=True), np.asarray),
    "SiLA decay": (SiLA(average=("decay", 9), warm_start=True), np.asarray),
    "SiLA cutoff": (SiLA(average=("cutoff", 2), warm_start=True), np.asarray),
    "SiLA suffix": (SiLA(average=("suffix", 4), psd="each", warm_start=True), np.asarray),
    "SiLA diagonal": (
        SiLA(structure="diagonal", normalizer=None, warm_start=True, shuffle=True, random_state=0),
        sp.csr_array,
    ),
    "ITML": (ITML(prior=Mahalanobis.identity(5), n_pairs=60, random_state=0), np.asarray),
    "ITML bounds": (
        ITML(prior=2 * np.eye(5), bounds=[0.1, 9.0], tol=1.0, warm_start=True, random_state=0),
        np.float32,
    ),
    "MMC": (MMC("diagonal", random_state=np.random.RandomState(3), warm_start=True), np.asarray),
    "SDML": (SDML(sparsity=0.05, tol=1e-8, warm_start=True, random_state=0), np.asarray),
    "SDML given": (SDML(0.001, prior=2 * np.eye(5), random_state=0), np.float32),
    "LSML": (LSML(prior="covariance", warm_start=True, random_state=0), sp.csr_array),
    "SCML": (SCML(n_basis=30, warm_start=True, random_state=0), np.asarray),
    "SCML given": (SCML(basis=L.tolist(), random_state=0), np.float32),
    "NCA": (NCA(init=L, tol=1.0, warm_start=True), np.asarray),
    "NCA held out": (NCA(2, validation_fraction=0.3, tol=0.1, random_state=0), np.float32),
    "MCML": (MCML(init=L.tolist(), tol=0.1, warm_start=True), np.asarray),
    "MLKR": (MLKR(init=L, tol=0.1, warm_start=True), np.asarray),
    "MLKR two": (MLKR(2, init="pca", tol=0.1), np.float32),
    "LMNN": (LMNN(2, n_components=2, tol=0.01, warm_start=True, random_state=0), np.asarray),
    "LMNN convex": (LMNN(2, solver="M", tol=0.1), np.float32),
    "LMNN targets": (LMNN(2, targets="same class", tol=0.01), np.asarray),
    "KernelLMNN": (
        KernelLMNN("rbf", {"gamma": 0.1}, tol=0.01, warm_start=True, random_state=0),
        sp.csr_array,
    ),
    "MultiMetricLMNN": (MultiMetricLMNN(2, tol=0.1, warm_start=True, random_state=0), np.asarray),
    "MultiMetricLMNN from maps": (
        MultiMetricLMNN(2, tol=0.1, init=np.stack([L, L, L]), random_state=0),
        np.asarray,
    ),
    "MultiMetricLMNN clusters": (
        MultiMetricLMNN(2, tol=0.1, n_clusters=2, random_state=0),
        np.asarray,
    ),
    "SNN": (SNN(2, max_iter=20, tol=1e-2, warm_start=True, random_state=0), np.float32),
    "HIER": (HIER(PARENTS), np.asarray),
    "HIER matrix": (HIER(np.eye(3)), sp.csr_array),
}


def told(name, labeled):
    X, y = labeled
    if "same class" in str(CASES[name][0].get_params().get("targets")):
        order = np.argsort(y, kind="stable")
        same = np.array([[j for j in order if y[j] == c and j != i][:2] for i, c in enumerate(y)])
        return CASES[name][0].set_params(targets=same), CASES[name][1](X), y
    return clone(CASES[name][0]), CASES[name][1](X), y


@pytest.fixture(scope="module", params=CASES)
def fitted(request, labeled):
    learner, X, y = told(request.param, labeled)
    return learner.fit(X, y), X, y


ONE_EACH = list({type(learner): name for name, (learner, _) in CASES.items()}.values())


@pytest.fixture(scope="module", params=ONE_EACH)
def victim(request, labeled):
    learner, X, y = told(request.param, labeled)
    return learner.fit(X, y)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "learner.samewise"


def assert_same(one, other):
    """The same attributes, bit for bit."""
    assert vars(one).keys() == vars(other).keys()
    shown = {name for name in dir(one) if name[-1] == "_" and name[0] != "_" and hasattr(one, name)}
    for name in shown | set(one.get_params(deep=False)):
        value, also = getattr(one, name), getattr(other, name)
        if isinstance(value, dict):
            assert value.keys() == also.keys()
            for key in value:
                np.testing.assert_array_equal(value[key], also[key])
        elif isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, also)
            assert value.dtype == also.dtype and value.shape == also.shape
        elif isinstance(value, np.random.RandomState):
            assert value.get_state()[2] == also.get_state()[2]
        elif isinstance(value, list):
            np.testing.assert_array_equal(value, also)
        else:
            assert value == also or (value != value and also != also), name
            assert isinstance(also, type(value)) or isinstance(value, np.generic), name


def test_every_learner_can_be_saved():
    known = {name: getattr(learners, name) for name in learners.__all__}
    assert all(Storable._kinds[name] is cls for name, cls in known.items())
    assert {type(learner).__name__ for learner, _ in CASES.values()} == BATCH.keys()


def test_it_comes_back_whole(fitted, path):
    learner, X, y = fitted
    learner.save(path)
    again = samewise.load(path)
    assert type(again) is type(learner)
    assert_same(learner, again)
    content = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == content
    if hasattr(learner, "transform"):
        np.testing.assert_array_equal(again.transform(X), learner.transform(X))
    if not hasattr(learner.metric_, "classes") or learner.metric_.classes is None:
        np.testing.assert_array_equal(again.metric_.closeness(X), learner.metric_.closeness(X))
    if hasattr(learner, "margins"):
        np.testing.assert_array_equal(again.margins(X, y), learner.margins(X, y))


@pytest.mark.parametrize("name", [n for n, (x, _) in CASES.items() if getattr(x, "warm_start", 0)])
def test_it_goes_on_from_there(name, labeled, path):
    learner, X, y = told(name, labeled)
    if isinstance(learner.get_params().get("random_state"), np.random.RandomState):
        learner.set_params(random_state=5)
    learner.fit(X, y).save(path)
    again, cold = samewise.load(path), clone(learner)
    for each in (learner, again, cold):
        each.fit(X, y)
    assert again.metric_ == learner.metric_
    assert again.metric_ != cold.metric_ or again.n_iter_ != cold.n_iter_


def test_attributes_that_come_and_go(labeled, path):
    X, y = labeled
    names = [f"größe {i}" for i in range(5)]
    frame = pd.DataFrame(X, columns=names)
    learner = LDA().fit(frame, np.array(["b", "a", "ccc"])[y])
    learner.save(path)
    again = samewise.load(path)
    assert again.feature_names_in_.tolist() == names
    assert again.classes_.tolist() == ["a", "b", "ccc"] and again.classes_.dtype == "U3"
    with pytest.raises(ValueError, match="feature names"):
        again.transform(frame[names[::-1]])
    for labels in (
        y.astype(np.int8),
        y.astype(bool),
        y.astype(np.float32),
        np.array(list("abc"), dtype=object)[y],
    ):
        learner.fit(X, labels).save(path)
        loaded = samewise.load(path)
        assert loaded.classes_.dtype == labels.dtype
        np.testing.assert_array_equal(loaded.classes_, learner.classes_)
    rca = RCA().fit(X, chunklets=np.repeat([0, 1, 2, -1], 15))
    rca.save(path)
    assert not hasattr(samewise.load(path), "classes_")
    pairs = Pairs.from_labels(X, y, 40, random_state=0)
    MMC().fit(pairs).save(path)
    assert samewise.load(path).n_features_in_ == 5


# What cannot be saved


class Mine(LDA):
    pass


def test_what_cannot_be_saved_says_so_and_leaves_the_old_file(labeled, path):
    X, y = labeled
    LDA().fit(X, y).save(path)
    content = path.read_bytes()
    stop = NCA(callback=lambda info: True)
    for learner, text in (
        (stop, "A NCA whose callback is a callable cannot be saved. .* set it to None"),
        (KIGML(lambda a, b: float(a @ b)), "A KIGML whose kernel is a callable cannot be saved"),
        (RBS(normalizer="cosine"), "The 'n_neighbors' parameter of RBS must be"),
        (
            MultiMetricLMNN(2, tol=0.1, init=LMNN(2, tol=0.1)),
            "whose init is a LMNN cannot be saved",
        ),
        (Mine(), "Mine is a class of your own"),
        (PCA(), "files hold finite numbers"),
    ):
        learner.fit(X, y)
        if isinstance(learner, RBS):
            learner.n_neighbors = 0
        if isinstance(learner, PCA):
            learner.n_components = learner.whiten = None
            learner._parameter_constraints = {"whiten": [object], "n_components": [None]}
            learner.whiten = {1, 2}
        with pytest.raises(InvalidInputError if "param" not in text else ValueError, match=text):
            learner.save(path)
    stop.set_params(callback=None).save(path)
    assert samewise.load(path).metric_ == stop.metric_
    path.write_bytes(content)
    for cls in BATCH.values():
        with pytest.raises(NotFittedError):
            cls().save(path)
    dates = np.array(["2001-01-01", "2002-01-01"], dtype="datetime64[D]")
    lda = LDA().fit(X, y)
    lda.classes_ = dates
    with pytest.raises(InvalidInputError, match="neither numbers nor texts cannot be saved"):
        lda.save(path)
    assert path.read_bytes() == content


# Files that are damaged or lie


def test_a_file_that_is_cut_or_damaged_is_refused(victim, path):
    victim.save(path)
    content = path.read_bytes()
    chance = random.Random(0)
    for _ in range(20):
        place = chance.randrange(len(content))
        path.write_bytes(content[:place])
        with pytest.raises(FileFormatError, match="is truncated"):
            samewise.load(path)
        damaged = bytearray(content)
        damaged[place] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError):
            samewise.load(path)


# Where another value is another learner, but no lie.
FREE = {"loss_", "loss_std_", "anchor_loss_", "gap_", "objective_", "margin_", "n_active_"}
FREE |= {"threshold_", "balance_", "n_basis_", "b", "total", "age", "loss", "intercept"}


@pytest.mark.parametrize(
    "value",
    [None, -1, 1e308, "x", [1], {}, 2**70, put],
    ids=lambda value: "gone" if value is put else str(value),
)
def test_no_value_can_be_anything(victim, path, value):
    header, payload = saved(victim, path)
    arrays = parts(header, payload)
    for place in places(header["params"]):
        # What its values are worth is the form's to say, as in a file of its own.
        of_form = place[:2] == ("learned", "metric_") and place[-1] != "class" and value is not put
        if of_form or "kernel_params" in place:
            continue
        before = header["params"]
        for name in place:
            before = before[name]
        forged({**header, "params": put(header["params"], place, value)}, arrays, path)
        try:
            loaded = samewise.load(path)
        except FileFormatError:
            continue
        harmless = place[0] == "parameters" or place[-1] in FREE or before == value
        assert harmless, place
        assert type(loaded) is type(victim)


def test_nothing_can_be_left_out_or_added(victim, path):
    header, payload = saved(victim, path)
    arrays = parts(header, payload)
    groups = [(), *places(header["params"])]
    for place in groups:
        inner = header["params"]
        for name in place:
            inner = inner[name]
        if isinstance(inner, dict) and place[-1:] != ("kernel_params",):
            forged({**header, "params": put(header["params"], (*place, "more"), 1)}, arrays, path)
            with pytest.raises(FileFormatError, match=r"more does not belong there|unexpected"):
                samewise.load(path)
    optional = {"learned.classes_"} if "RCA" in type(victim).__name__ else set()
    for name in arrays:
        if name in optional or name == "learned.matrix_":
            continue
        forged(header, {key: array for key, array in arrays.items() if key != name}, path)
        with pytest.raises(FileFormatError, match=f"do not make a {type(victim).__name__}"):
            samewise.load(path)


@pytest.mark.parametrize(
    ("name", "place", "value", "text"),
    [
        ("LMNN", ("learned", "n_features_in_"), 4, "metric_ must be a form of its features"),
        ("LMNN", ("learned", "n_iter_"), 0, "history_ must have n_iter_ entries"),
        ("LMNN", ("learned", "metric_", "class"), "os", "is not one of the kind that belongs"),
        ("LMNN", ("learned", "metric_", "class"), "Bilinear", "is not one of the kind that"),
        ("LMNN", ("learned", "classes_"), "datetime64[D]", "classes_ must be numbers or texts"),
        ("LMNN", ("learned", "classes_"), "int8, int8", "classes_ must be"),
        ("LMNN", ("learned", "loss_"), "NaN", "loss_ must be one of 'inf', '-inf', 'nan'"),
        ("LMNN", ("parameters", "tol"), -1.0, "The 'tol' parameter of LMNN must be"),
        ("KRCA", ("parameters", "kernel"), "os.system", "The 'kernel' parameter of KRCA"),
        ("HIER", ("parameters", "hierarchy", "pairs"), [[[], 1]], "do not make a HIER"),
        ("SiLA", ("learned", "run", "history", "rounds"), 7, "do not make a SiLA"),
        ("NCA", ("parameters", "init", "shape"), [4], "do not make a NCA"),
    ],
)
def test_what_is_wrong_is_named(name, place, value, text, labeled, path):
    learner, X, y = told(name, labeled)
    header, payload = saved(learner.fit(X, y), path)
    forged({**header, "params": put(header["params"], place, value)}, parts(header, payload), path)
    with pytest.raises(FileFormatError, match=re.escape(text)):
        samewise.load(path)


def test_no_learner_passes_for_another(victim, path):
    header, payload = saved(victim, path)
    names = {"NCA", "SNN", "HIER", "SiLA", "OASIS", "KRCA", "Cosine"} - {type(victim).__name__}
    for name in names:
        forged({**header, "kind": name}, parts(header, payload), path)
        with pytest.raises(FileFormatError, match=f"do not make a {name}"):
            samewise.load(path)
