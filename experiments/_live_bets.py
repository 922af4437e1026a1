"""What the guard bets, and how much: rules replayed on the scores of streams about training parts.

Until something is promoted, what is shown does not depend on the bets: one stream says for every
rule when it would have promoted the order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from experiments._common import in_processes, write_csv
from experiments._live_simulation import Corpus, Users, stream
from experiments.banking77 import held_out
from samewise import LiveAdapter

SEEDS = 10
LISTS = {0.0: 2000, 0.1: 4000}
"""How long a stream is, by the share of wrong answers."""
LEVEL = 0.05
OF_ORDER = (0.5, 0.8)
"""The share of the level that the order has."""
SHARES = ((0.05,), (0.1,), (0.15,), (0.2,), (0.05, 0.1, 0.2))
"""What is bet of the wealth; of several the wealths are averaged."""
STATISTICS: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "sign of the difference": np.sign,
    "difference in units of 0.1, clipped at 1": lambda x: np.clip(10 * x, -1, 1),
    "root of the difference": lambda x: np.sign(x) * np.sqrt(np.abs(x)),
    "difference": lambda x: x,
}
"""Of the AUC of a list under the live form and under what is served."""
NEVER = math.inf


def differences(corpus: Corpus, noise: float, n: int, seed: int) -> NDArray[Any]:
    """For each list of a stream the AUC under the live form less that under the start; 0 if none.

    The items are four fifths of the given ones.
    """
    (A, a), (B, b) = held_out((corpus.items, corpus.item_labels), seed)
    found: list[float] = []
    usual = LiveAdapter.feedback

    def recorded(adapter: LiveAdapter, *given: Any, **named: Any) -> bool:
        heard = usual(adapter, *given, **named)
        start, _, live = adapter._fitted.tested[:, 0]
        found.append(live - start)
        return heard

    with mock.patch.object(LiveAdapter, "feedback", recorded):
        # At this level nothing is promoted.
        stream(Corpus(A, a, B, b), Users(noise=noise), n, seed, guard=1e-200)
    return np.nan_to_num(np.array(found))


def first_promotion(x: NDArray[Any], bets: NDArray[Any], shares: Any, level: float) -> float:
    """After how many lists the wealth reaches its level and the AUC is not lower in the mean."""
    logs = np.array([np.cumsum(np.log1p(share * bets)) for share in shares])
    largest = logs.max(axis=0)
    wealth = largest + np.log(np.exp(logs - largest).mean(axis=0))
    reached = (wealth >= math.log(math.pi**2 / (6 * level))) & (np.cumsum(x) >= 0)
    return float(np.argmax(reached) + 1) if reached.any() else NEVER


def run(out: Path, corpus: Corpus, *, quick: bool, jobs: int) -> None:
    """guard_choice.csv: for each rule the median of the first promotions."""
    tasks = [
        (corpus, noise, 100 if quick else n, seed)
        for noise, n in LISTS.items()
        for seed in range(1 if quick else SEEDS)
    ]
    streams = in_processes(differences, tasks, jobs)
    rows = []
    for name, statistic in STATISTICS.items():
        for shares in SHARES:
            for part in OF_ORDER:
                row: dict[str, Any] = {
                    "statistic": name,
                    "bets": ", ".join(map(str, shares)),
                    "level of the order": part,
                }
                for noise in LISTS:
                    firsts = [
                        first_promotion(x, statistic(x), shares, part * LEVEL)
                        for (_, p, _, _), x in zip(tasks, streams, strict=True)
                        if p == noise
                    ]
                    row[f"first promotion at {noise:.0%}"] = float(np.median(firsts))
                rows.append(row)
    write_csv(out / "guard_choice.csv", rows)
