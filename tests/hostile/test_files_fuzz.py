"""Damaged and forged files: refused with a sentence, or an object that can be used as any other."""

from __future__ import annotations

import hashlib
import json
import struct
import tracemalloc
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import samewise
from samewise import Bilinear, Form, LiveAdapter, load
from samewise.adapt.event_lines import EventReader, NamedVectors
from samewise.adapt.replay import LogReplay
from samewise.decide import PerClassClassifier
from samewise.exceptions import FileFormatError
from samewise.filtering import TextVectors
from samewise.filtering.document_filter import Filter
from tests.hostile.outcomes import Refusal, attempt, check_finite, saved

KEPT = {
    path.with_suffix("").name: path
    for path in Path(__file__).parents[1].glob("files/format_*/*.samewise")
}


def _adapter():
    """One that began with pairs and a form, and serves a version."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    adapter = LiveAdapter(initial=Bilinear(2 * np.eye(3)), items=X, half_life=9, random_state=0)
    adapter.fit(X).warm_start(X[:20] + 0.1, range(20))
    adapter.feedback(X[0], [1, 2, 3], [1, -1, 0], user="a", event=1)
    adapter.promote()
    adapter.feedback(X[1], X[2:4], [-1, 1])
    return adapter


def _replay():
    """Of a log, halfway."""
    adapter = _adapter()
    replay, said = LogReplay(adapter, {"items": "x"}), []
    reader = EventReader(NamedVectors("items", adapter.items))
    for line in (b'{"query": [0, 1, 2], "shown": [3, 1], "y": [1, -1], "user": 7}', b"{"):
        replay.take(line, "log", reader, said.append)
    assert len(said) == 1
    return replay


def _words():
    vectors = TextVectors(8)
    vectors.fit(["cocoa beans", "gold"])
    return vectors


MADE = {
    "LiveAdapter with a version": _adapter,
    "LogReplay": _replay,
    "TextVectors": _words,
    "POLA for verification": lambda: samewise.POLA(purpose="verification").fit(
        np.arange(24.0).reshape(8, 3) ** 2 % 7, np.arange(8) % 2
    ),
}
FILES = sorted([*KEPT, *MADE])


@cache
def content_of(name):
    """The bytes of a file of that kind."""
    if name in KEPT:
        return KEPT[name].read_bytes()
    with TemporaryDirectory() as folder:
        return saved(MADE[name](), folder)


MAGIC = len(b"samewise\x1a\n")
MOST = 64 * 2**20
"""Bytes that may be allocated for a file of some kilobytes."""

every_file = pytest.mark.parametrize("name", FILES)


def check_load(content, folder, *shown):
    """Load bytes: a FileFormatError or an object, in bounded memory; the object, or None."""
    path = folder / "file"
    path.write_bytes(content)
    tracemalloc.start()
    outcome = attempt(lambda: load(path), *shown)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MOST, f"{peak} bytes for a file of {len(content)}"
    if isinstance(outcome, Refusal):
        assert isinstance(outcome.error, FileFormatError)
        return None
    return outcome


def check_use(loaded, folder, *shown):
    """What loads can be used, saved again, and go on learning."""
    X, y = np.arange(18.0).reshape(6, 3) % 5, np.arange(6) % 2
    loaded.save(folder / "again")
    calls = []
    if isinstance(loaded, Filter):
        calls.append(lambda: len(loaded.observe_many(["cocoa beans", "gold", ""])))
    if isinstance(loaded, TextVectors):
        calls.append(lambda: loaded.transform(["cocoa", ""]).toarray())
        return attempt(calls[0], *shown)
    loaded = getattr(loaded, "adapter", loaded)
    if isinstance(loaded, LiveAdapter):
        calls.append(lambda: loaded.embed_query(X))
        calls.append(lambda: loaded.embed_query(X, "first"))
        calls.append(lambda: loaded.live.to_numpy()(X))
        calls.append(lambda: loaded.rank(X[0], X))
        calls.append(lambda: loaded.forget(users=[7]) and None)
        calls.append(lambda: loaded.feedback(X[0], X[1:3], [1, -1]))
    elif isinstance(loaded, Form):
        calls.append(lambda: loaded.bind(X, y).closeness(X))
    elif hasattr(type(loaded), "fit") and not isinstance(loaded, Filter | PerClassClassifier):
        calls.append(lambda: loaded.metric_.bind(X, y).closeness(X))
    for name, arguments in {"partial_fit": (X, y), "transform": (X,), "score": (X, y)}.items():
        if hasattr(loaded, name):
            call = getattr(loaded, name)
            calls.append(lambda call=call, arguments=arguments: call(*arguments))
    for call in calls:
        outcome = attempt(call, *shown)
        if isinstance(outcome, np.ndarray | float):
            check_finite(outcome)


@every_file
@given(data=st.data())
def test_damage(name, data, tmp_path):
    content = bytearray(content_of(name))
    at = st.integers(0, len(content) - 1)
    kind = data.draw(st.sampled_from(["bits", "cut", "splice", "grow", "other"]))
    if kind == "bits":
        for i in data.draw(st.lists(at, min_size=1, max_size=4)):
            content[i] ^= 1 << data.draw(st.integers(0, 7))
    elif kind == "cut":
        del content[data.draw(at) :]
    elif kind == "splice":
        i, j, n = data.draw(at), data.draw(at), data.draw(st.integers(1, 64))
        content[i : i + n] = content[j : j + n]
    elif kind == "grow":
        content += data.draw(st.binary(min_size=1, max_size=9))
    else:
        content[MAGIC:] = content_of(data.draw(st.sampled_from(FILES)))[MAGIC:]
    loaded = check_load(bytes(content), tmp_path, name, kind)
    if loaded is not None:
        check_use(loaded, tmp_path, name, kind)
    if kind != "other" and bytes(content) != content_of(name):
        assert loaded is None, "damage was not noticed"


NUMBERS = (0, -1, 1, 2, 2**31, 2**53, 2**64, -(2**63), 1e308, 1e-308, 0.5)
NAMES = ("", "x", "LDA", "Form", "TopicFilter", "os.system", "\0")
ODD = st.sampled_from([None, True, False, *NUMBERS, *NAMES, [], {}, [1], {"x": 1}, ["suffix", 2]])


def parts(value, path=()):
    """Every place in a JSON value."""
    yield path
    for key in (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    ):
        yield from parts(value[key], (*path, key))


def put(value, path, new):
    """The value with something else at that place."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = put(value[path[0]], path[1:], new)
    return copy


def opened(name):
    """The header and the arrays' bytes of a file."""
    content = content_of(name)
    (length,) = struct.unpack_from("<Q", content, MAGIC)
    start = MAGIC + 8 + 32
    return json.loads(content[start : start + length]), bytearray(content[start + length :])


def sealed(header, payload):
    """A file of them with the right checksums: what a forger would write."""
    if isinstance(header, dict):
        forged = {
            "payload_bytes": len(payload),
            "payload_sha256": hashlib.sha256(payload).hexdigest(),
        }
        header = header | forged
    text = json.dumps(header).encode()
    prefix = struct.pack("<Q", len(text)) + hashlib.sha256(text).digest()
    return content_of(FILES[0])[:MAGIC] + prefix + text + bytes(payload)


@every_file
@given(data=st.data())
def test_forged_values(name, data, tmp_path):
    header, payload = opened(name)
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.sampled_from(sorted(parts(header), key=repr)))
        header = put(header, place, data.draw(ODD))
        if not isinstance(header, dict):
            break
    loaded = check_load(sealed(header, payload), tmp_path, name, header)
    if loaded is not None:
        check_use(loaded, tmp_path, name, header)


@every_file
@given(data=st.data())
def test_forged_arrays(name, data, tmp_path):
    header, payload = opened(name)
    arrays = [each for each in header["arrays"] if np.prod(each["shape"])]
    for each in data.draw(st.lists(st.sampled_from(arrays or [None]), min_size=1, max_size=2)):
        if each is None:
            continue
        dtype = np.dtype(each["dtype"])
        odd = (0, 1, -1, 1e-310, 1e308, np.nan) if dtype.kind == "f" else (0, 1, -1, 10**6, 2**62)
        i = data.draw(st.integers(0, int(np.prod(each["shape"])) - 1))
        value = data.draw(st.sampled_from(odd))
        with np.errstate(over="ignore"):
            new = np.asarray(value).astype(dtype, casting="unsafe").tobytes()
        start = each["offset"] + i * dtype.itemsize
        payload[start : start + dtype.itemsize] = new
    loaded = check_load(sealed(header, payload), tmp_path, name, i if arrays else None)
    if loaded is not None:
        check_use(loaded, tmp_path, name)
