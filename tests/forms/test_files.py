from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import stat
import struct
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import sparse

from samewise import load
from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.files import storable
from samewise.forms import (
    Bilinear,
    GeneralizedCosine,
    KernelMahalanobis,
    LowRankBilinear,
    Mahalanobis,
    NormalizedBilinear,
)

MAGIC = b"samewise\x1a\n"
FORM = Mahalanobis(np.diag([4.0, 1.0]))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metric.samewise"


def parse(content):
    start = len(MAGIC) + 40
    length, _ = struct.unpack("<Q32s", content[len(MAGIC) : start])
    return json.loads(content[start : start + length]), content[start + length :]


def compose(header, payload):
    """A file whose checksums are right, whatever it says."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return MAGIC + struct.pack("<Q32s", len(text), hashlib.sha256(text).digest()) + text + payload


def saved(form, path):
    form.save(path)
    return path.read_bytes()


def forge(path, form, change):
    """Save a form, let change(header, payload) rewrite it, and make the checksums right again."""
    header, payload = parse(saved(form, path))
    payload = change(header, payload) or payload
    header["payload_bytes"] = len(payload)
    header["payload_sha256"] = hashlib.sha256(payload).hexdigest()
    path.write_bytes(compose(header, payload))


def test_the_layout_is_as_described(path):
    content = saved(Bilinear(np.array([[1.0, 2.0]], dtype=np.float32)), path)
    header, payload = parse(content)
    assert content.startswith(MAGIC)
    assert header["format"] == 1 and header["kind"] == "Bilinear" and header["params"] == {}
    entry = {"name": "matrix", "dtype": "float32", "shape": [1, 2], "offset": 0}
    assert header["arrays"] == [entry]
    assert payload == struct.pack("<ff", 1, 2)
    assert header["payload_sha256"] == hashlib.sha256(payload).hexdigest()
    assert compose(content[len(MAGIC) + 40 : len(content) - 8], payload) == content


def test_arrays_of_odd_length_start_at_multiples_of_eight(path):
    form = Mahalanobis(np.eye(3, dtype=np.float32))
    header, payload = parse(saved(form, path))
    assert [entry["offset"] for entry in header["arrays"]] == [0, 40, 80]
    assert len(payload) == 96
    assert load(path) == form


def test_loaded_arrays_are_not_recomputed(path):
    # A nudge that no decomposition would give, small enough to pass for rounding.
    def nudge(header, payload):
        values = np.frombuffer(payload, "<f8").copy()
        values[4] = np.nextafter(values[4], 3)
        return values.tobytes()

    forge(path, FORM, nudge)
    assert load(path).components[0, 0] == np.nextafter(2.0, 3)


def test_a_file_cut_anywhere_is_refused(path):
    content = saved(FORM, path)
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(FileFormatError, match="is truncated"):
            load(path)


def test_trailing_bytes_are_refused(path):
    content = saved(FORM, path)
    path.write_bytes(content + b"\0")
    with pytest.raises(FileFormatError, match="has trailing bytes after the last array"):
        load(path)


def test_any_flipped_bit_is_noticed(path):
    content = saved(FORM, path)
    chance = random.Random(0)
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError):
            load(path)


def test_damage_is_called_damage(path):
    content = bytearray(saved(FORM, path))
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match="damaged: the checksum of its arrays does not match"):
        load(path)
    content[60] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match="damaged: the checksum of its header does not match"):
        load(path)


@pytest.mark.parametrize(
    "content", [b"PK\x03\x04" + bytes(100), b"{}", b"samewisE\x1a\n" + bytes(90)]
)
def test_foreign_files_are_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"metric\.samewise is not a samewise file"):
        load(path)


def test_what_is_not_a_file_is_refused(path, tmp_path):
    with pytest.raises(FileNotFoundError):
        load(path)
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    os.mkfifo(path)
    with pytest.raises(FileFormatError, match="is not a regular file"):
        load(path)


@pytest.mark.parametrize("length", [2**20 + 1, 2**40, 2**64 - 1])
def test_a_header_longer_than_any_header_is_refused_unread(path, length):
    path.write_bytes(MAGIC + struct.pack("<Q32s", length, bytes(32)) + b"{}")
    with pytest.raises(FileFormatError, match=f"its header claims {length} bytes"):
        load(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"[]", "not a JSON object"),
        (b"3", "not a JSON object"),
        (b"", "not plain JSON"),
        (b"\xff\xfe", "not plain JSON"),
        (b"[" * 100_000, "not plain JSON"),
        (b'{"a":' * 100_000, "not plain JSON"),
        (b'{"format": NaN}', "NaN is not a JSON number"),
        (b'{"format": Infinity}', "Infinity is not a JSON number"),
        (b'{"format": 1e999}', "a number is too large"),
        (b'{"format": ' + b"9" * 5000 + b"}", "not plain JSON"),
        (b'{"format": 1, "format": 1}', "a name occurs twice"),
        (b"{}", "without a format version"),
        (b'{"format": true}', "without a format version"),
        (b'{"format": 0}', "without a format version"),
        (b'{"format": 1}', "unexpected or missing names in its header"),
        (b'{"format": 2}', "has format 2: written by a newer version; upgrade samewise"),
    ],
)
def test_hostile_headers_are_refused(path, text, reason):
    path.write_bytes(compose(text, b""))
    with pytest.raises(FileFormatError, match=reason):
        load(path)


def first(**changes):
    def change(header, payload):
        header["arrays"][0].update(changes)

    return change


def top(**changes):
    def change(header, payload):
        header.update(changes)

    return change


def swap(header, payload):
    header["arrays"].reverse()


def twice(header, payload):
    header["arrays"][1] = {**header["arrays"][1], "name": "matrix"}


def leftover(header, payload):
    return payload + bytes(8)


def dropped(header, payload):
    header["arrays"].pop()
    return payload[:-16]


def entry_gone(header, payload):
    del header["arrays"][0]["offset"]


def entry_text(header, payload):
    header["arrays"][0] = "matrix"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (top(kind="oracle"), "unknown class 'oracle'"),
        (top(kind=None), "a 'kind' of the wrong type"),
        (top(params=[]), "a 'params' of the wrong type"),
        (top(arrays={}), "a 'arrays' of the wrong type"),
        (top(extra=1), "unexpected or missing names in its header"),
        (top(params={"surprise": 1}), "do not make a Mahalanobis"),
        (top(params={"matrix": 1}), "do not make a Mahalanobis"),
        (top(kind="Bilinear"), "do not make a Bilinear"),
        (top(kind="GeneralizedCosine"), "do not make a GeneralizedCosine"),
        (first(dtype="object"), "type 'object', which is not allowed"),
        (first(dtype="|O"), "is not allowed"),
        (first(dtype="<f8"), "is not allowed"),
        (first(dtype="float16"), "is not allowed"),
        (first(dtype=8), "a 'dtype' of the wrong type"),
        (first(dtype="int64"), "must be a 2-D array of floats"),
        (first(shape=[10**30, 10**30]), "impossible shape"),
        (first(shape=[0, 10**30]), "impossible shape"),
        (first(shape=[2**30, 2**30]), "more bytes than there are"),
        (first(shape=[-2, -2]), "impossible shape"),
        (first(shape=[2.0, 2]), "impossible shape"),
        (first(shape=[True, 4]), "impossible shape"),
        (first(shape=[1, 2, 2]), "impossible shape"),
        (first(shape=[4, 1]), "must be square"),
        (first(shape=[4]), "must be a 2-D array of floats"),
        (first(shape=[2, 1]), "does not place the array 'components'"),
        (first(offset=8), "does not place the array 'matrix'"),
        (first(offset=-8), "does not place the array 'matrix'"),
        (first(offset=2**70), "does not place the array 'matrix'"),
        (first(offset=0.0), "a 'offset' of the wrong type"),
        (first(name="M"), "do not make a Mahalanobis"),
        (first(name=3), "a 'name' of the wrong type"),
        (swap, "does not place the array 'eigenvalues'"),
        (twice, "lists the array 'matrix' twice"),
        (leftover, "bytes that belong to no array"),
        (dropped, "do not make a Mahalanobis: matrix and eigenvalues must come together"),
        (entry_gone, "unexpected or missing names in its array entry"),
        (entry_text, "an array entry that is not a JSON object"),
    ],
)
def test_forged_files_are_refused(path, change, reason):
    forge(path, FORM, change)
    with pytest.raises(FileFormatError, match=reason):
        load(path)


def filled(*values):
    return lambda header, payload: np.array(values, dtype="<f8").tobytes()


@pytest.mark.parametrize(
    "change",
    [
        filled(np.nan, 0, 0, 1, 2, 0, 0, 1, 4, 1),
        filled(-4, 0, 0, 1, 2, 0, 0, 1, 4, 1),
        filled(4, 0, 0, 1, 2, 0, 0, 3, 4, 1),
        filled(4, 0, 0, 1, 2, 0, 0, 1, 4, 2),
        filled(4, 0, 0, 1, 0, 1, 2, 0, 1, 4),
        filled(1e308, 0, 0, 1e308, 1e200, 0, 0, 1e200, 1e308, 1e308),
        filled(4, 0, 0, 1, 2, 0, 0, 1, np.inf, 1),
    ],
)
def test_arrays_that_do_not_belong_together_are_refused(path, change):
    for form in (FORM, GeneralizedCosine(FORM.matrix)):
        forge(path, form, change)
        with pytest.raises(FileFormatError, match=f"do not make a {type(form).__name__}"):
            load(path)


POINTS = sparse.csr_array(np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]]))
KERNEL = KernelMahalanobis([[1.0, 2.0]], POINTS, "linear")


@pytest.mark.parametrize(
    "params",
    [
        {"kernel": ["rbf"]},
        {"kernel": "shell"},
        {"kernel": "precomputed"},
        {"kernel_params": [1]},
        {"kernel_params": {"metric": "rbf"}},
        {"kernel_params": {"surprise": 1}},
        {"n_features": -1},
        {"n_features": 2},
        {"n_features": "3"},
        {"n_features": 2**80},
        {"n_features": None},
    ],
)
def test_forged_kernels_are_refused(path, params):
    forge(path, KERNEL, lambda header, payload: header["params"].update(params))
    with pytest.raises(FileFormatError, match="do not make a KernelMahalanobis"):
        load(path)


@pytest.mark.parametrize("place", range(3, 9))
@pytest.mark.parametrize("value", [-1, 7, 2**62])
def test_sparse_points_out_of_range_are_refused(path, place, value):
    def change(header, payload):
        values = np.frombuffer(payload, "<i8").copy()
        # Coefficients (2) and data (3) come first.
        values[2 + place] = value
        return values.tobytes()

    forge(path, KERNEL, change)
    with pytest.raises(FileFormatError, match="do not make a KernelMahalanobis"):
        load(path)


@pytest.mark.parametrize(
    ("form", "params"),
    [
        (NormalizedBilinear(np.eye(2)), {"normalizer": "other"}),
        (NormalizedBilinear(np.eye(2)), {"normalizer": ["cosine"]}),
        (NormalizedBilinear(np.eye(2)), {"normalizer": {}}),
        (GeneralizedCosine(np.eye(2)), {"on_zero": []}),
        (GeneralizedCosine(np.eye(2)), {"owner": "me"}),
    ],
)
def test_forged_parameters_are_refused(path, form, params):
    forge(path, form, lambda header, payload: header["params"].update(params))
    with pytest.raises(FileFormatError, match=f"do not make a {type(form).__name__}"):
        load(path)


def second(**changes):
    def change(header, payload):
        header["arrays"][1].update(changes)

    return change


def not_a_number(header, payload):
    return struct.pack("<d", np.nan) + payload[8:]


def one_factor(header, payload):
    header["arrays"].pop()
    return payload[:96]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (first(shape=[4, 3]), r"must have as many columns, but their shapes are \(4, 3\) and"),
        (second(shape=[8, 1]), "must have as many columns"),
        (first(shape=[12]), "The left of LowRankBilinear must have two dimensions"),
        (first(name="matrix"), "unexpected keyword argument 'matrix'"),
        (top(params={"rank": 2}), "unexpected keyword argument 'rank'"),
        (not_a_number, "The left of LowRankBilinear contains NaN"),
        (one_factor, "missing 1 required positional argument: 'right'"),
    ],
)
def test_forged_factors_are_refused(path, change, reason):
    forge(path, LowRankBilinear(np.ones((6, 2)), np.ones((4, 2))), change)
    with pytest.raises(FileFormatError, match=f"do not make a LowRankBilinear: .*{reason}"):
        load(path)


def test_what_cannot_be_saved_says_so_and_leaves_the_old_file(path):
    content = saved(FORM, path)
    for form, text in (
        (NormalizedBilinear(np.eye(2), lambda X, Y: 1), "NormalizedBilinear whose normalizer is a"),
        (
            KernelMahalanobis([[1.0]], [[1.0]], lambda x, y: 1.0),
            "KernelMahalanobis whose kernel is",
        ),
        (
            KernelMahalanobis([[1.0]], [[1.0]], "rbf", {"gamma": np.array(1.0)}),
            r"A parameter of KernelMahalanobis cannot be saved \(.*ndarray",
        ),
        (
            KernelMahalanobis([[1.0]], [[1.0]], "sigmoid", {"coef0": float("inf")}),
            "files hold finite numbers",
        ),
    ):
        with pytest.raises(InvalidInputError, match=text):
            form.save(path)
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failed_save_leaves_the_old_file_and_nothing_else(path, monkeypatch, failing):
    content = saved(FORM, path)

    def fail(*args):
        raise OSError("no space left")

    monkeypatch.setattr(f"samewise.files.writing.os.{failing}", fail)
    with pytest.raises(OSError, match="no space left"):
        Bilinear(np.eye(3)).save(path)
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == [path.name]


def test_saving_into_a_missing_folder_fails_plainly(tmp_path):
    with pytest.raises(FileNotFoundError):
        FORM.save(tmp_path / "missing" / "metric")


def test_links_are_followed_and_permissions_are_ordinary(path, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(path.name)
    FORM.save(link)
    assert link.is_symlink() and load(path) == FORM
    ordinary = tmp_path / "ordinary"
    ordinary.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(ordinary.stat().st_mode)


def test_paths_may_be_texts(path):
    FORM.save(str(path))
    assert load(str(path)) == FORM


def test_a_file_names_no_class_but_those_of_samewise():
    """Kinds register themselves; no base, and no class of a user, is among them."""
    kinds = storable.Storable._kinds
    assert all(cls.__module__.startswith("samewise.") for cls in kinds.values())
    assert not {"Form", "Storable", "Frozen"} & kinds.keys()

    class Mine(Bilinear):
        pass

    assert "Mine" not in kinds
    with pytest.raises(InvalidInputError, match="Mine is a class of your own"):
        storable.stored(Mine([[1.0]]))


# Imports once, then forks a writer for every line it is sent, and ends with its input.
WRITER = """
import os, sys, time
import numpy as np
from samewise.forms import Bilinear, Mahalanobis
pair = Mahalanobis.identity(200), Bilinear(np.full((150, 300), 2.0))
for _ in sys.stdin:
    child = os.fork()
    if child == 0:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            for form in pair:
                form.save(sys.argv[1])
        os._exit(0)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_a_killed_writer_leaves_one_of_the_two_forms(path):
    pair = Mahalanobis.identity(200), Bilinear(np.full((150, 300), 2.0))
    pair[0].save(path)
    chance = random.Random(1)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    found = set()
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        **pipes,
    ) as writer:
        for _ in range(12):
            writer.stdin.write("go\n")
            writer.stdin.flush()
            child = int(writer.stdout.readline())
            time.sleep(chance.uniform(0.005, 0.08))
            os.kill(child, signal.SIGKILL)
            assert int(writer.stdout.readline()) == -signal.SIGKILL
            form = load(path)
            assert form in pair
            found.add(type(form).__name__)
        writer.stdin.close()
    assert len(found) == 2
