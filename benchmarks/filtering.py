"""Document filtering: 100 000 documents against 50 topics, with the texts made into vectors."""

from __future__ import annotations

import gc
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity

from samewise.datasets import available, load
from samewise.filtering import Document, Documents, FilterRun, TopicFilter

N_DOCUMENTS, N_TOPICS, N_GROUPS = 100_000, 50, 20
WANTED_SPEED, WANTED_RATIO = 3000, 20
SAMPLE = 100
N_KILLED = 20_000
SETTINGS = {"thresholds": (0.3, 0.7), "max_documents": 200}


def present() -> bool:
    return {"reuters21578", "news20_18828"} <= set(available())


def topics_and_texts() -> tuple[dict[str, str], list[str]]:
    """50 topics, each described by the beginnings of three documents; all texts, interleaved."""
    reuters, news = load("reuters21578"), load("news20_18828")
    members: dict[str, list[str]] = {}
    for text, record in zip(reuters.data, reuters.records, strict=True):
        for topic in record["topics"]:
            members.setdefault(topic, []).append(text)
    largest = sorted(members, key=lambda name: -len(members[name]))[: N_TOPICS - N_GROUPS]
    examples = {name: members[name][:3] for name in largest}
    for number, group in enumerate(news.target_names):
        examples[str(group)] = [news.data[i] for i in np.flatnonzero(news.target == number)[:3]]
    topics = {name: " ".join(text[:700] for text in some) for name, some in examples.items()}
    texts = [
        text for pair in itertools.zip_longest(reuters.data, news.data) for text in pair if text
    ]
    return topics, texts


def stream(texts: list[str], n: int) -> Iterator[Document]:
    """The texts again and again, each time with fresh ids."""
    for k, text in enumerate(itertools.islice(itertools.cycle(texts), n)):
        yield Document(str(k), text)


def resident() -> float:
    """MiB of this process in memory now."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def run() -> list[dict[str, object]]:
    """Speed and memory over the stream; the loop on a sample at the end, extrapolated."""
    if not present():
        return []
    topics, texts = topics_and_texts()
    # Compile, and take the memory that this takes.
    TopicFilter(**SETTINGS).fit(topics).observe_many(texts[:600])
    filter = TopicFilter(**SETTINGS).fit(topics)
    documents, rows, spent = stream(texts, N_DOCUMENTS), [], 0.0
    while block := list(itertools.islice(documents, 10_000)):
        start = time.process_time()
        found = sum(bool(made) for made in filter.observe_many(block))
        seconds = time.process_time() - start
        spent += seconds
        rows.append(
            {
                "documents": filter.n_seen_,
                "documents/s": round(len(block) / seconds),
                "wanted": WANTED_SPEED,
                "assigned": found,
                "held": sum(len(held) for held in filter._held),
                "memory MiB": round(resident()),
                "vs loop": "",
                "wanted ratio": "",
            }
        )
    loop = one_by_one(filter, topics, texts)
    rows.append(
        {
            "documents": "all",
            "documents/s": round(N_DOCUMENTS / spent),
            "wanted": WANTED_SPEED,
            "assigned": "",
            "held": "",
            "memory MiB": "",
            "vs loop": round(loop * N_DOCUMENTS / spent),
            "wanted ratio": WANTED_RATIO,
        }
    )
    return rows


def one_by_one(filter: TopicFilter, topics: dict[str, str], texts: list[str]) -> float:
    """Seconds for one document of a loop over topics that calls `cosine_similarity`.

    The topics hold as many documents as those of the filter at its end.
    """
    vectorizer = TfidfVectorizer(stop_words="english").fit(texts[:10_000])
    names = vectorizer.transform(topics.values())
    held = [
        vectorizer.transform([texts[int(id) % len(texts)] for id in one.ids]) if len(one) else None
        for one in filter._held
    ]
    start = time.process_time()
    for text in texts[:SAMPLE]:
        vector = vectorizer.transform([text])
        for i, documents in enumerate(held):
            s1 = cosine_similarity(names[[i]], vector)[0, 0]
            s2 = cosine_similarity(documents, vector).max() if documents is not None else s1
            0.7 * s1 + 0.3 * s2
    return (time.process_time() - start) / SAMPLE


def run_killed() -> list[dict[str, object]]:
    """Kill −9 in the middle of a run that is kept, start it again, and compare with one whole."""
    if not present() or os.name != "posix":
        return []
    topics, texts = topics_and_texts()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "topics.json").write_text(json.dumps(topics), encoding="utf-8")
        with (folder / "documents.jsonl").open("w", encoding="utf-8") as lines:
            for document in stream(texts, N_KILLED):
                lines.write(json.dumps({"id": document.id, "text": document.text}) + "\n")
        command = [sys.executable, "-m", "benchmarks.filtering", str(folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            last = next(line for line in process.stdout if int(line) >= N_KILLED // 2).strip()
            process.send_signal(signal.SIGKILL)
        decided = len((folder / "killed" / "decisions.jsonl").read_bytes().splitlines())
        keep(folder, "killed")
        start = time.process_time()
        keep(folder, "whole")
        seconds = time.process_time() - start
        killed, whole = (
            {path.name: path.read_bytes() for path in (folder / kind).iterdir()}
            for kind in ("killed", "whole")
        )
        return [
            {
                "documents": N_KILLED,
                "killed after": last,
                "decided by then": decided,
                "lines in the log": len(killed["decisions.jsonl"].splitlines()),
                "log equal": killed["decisions.jsonl"] == whole["decisions.jsonl"],
                "state equal": killed == whole,
                "documents/s, kept": round(N_KILLED / seconds),
            }
        ]


def keep(folder: Path, name: str) -> None:
    """Run a filter over the documents of a folder, and keep it there."""
    topics = json.loads((folder / "topics.json").read_text(encoding="utf-8"))
    filter = TopicFilter(**SETTINGS).fit(topics)
    with FilterRun(filter, folder / name, save_every=3000) as run:
        for document, _ in run.process(Documents(folder / "documents.jsonl")):
            if __name__ == "__main__":
                print(document.id, flush=True)


if __name__ == "__main__":
    keep(Path(sys.argv[1]), "killed")
