"""Linear query adapters in PyTorch, as two tools train them, for the comparison with warm_start.

`mnr_adapter` is the linear adapter of LlamaIndex's EmbeddingAdapterFinetuneEngine: a matrix that
starts at the identity, cosine times 20 against the other relevant items of a batch of ten, cross
entropy, AdamW at 2e-5 with a tenth of the steps to warm up and a linear descent, gradients clipped
at 1. `triplet_adapter` is that of SantanderAI's linear-adapter-trainer: q + Wq + b, scaled to unit
length, from W = 0; relu(cos(a, n) − cos(a, p) + 0.2) against one negative for each pair, Adam at
1e-3, batches of 64, at most 20 epochs, of which the one with the best MRR on a fifth of the queries
is kept, or the identity; it stops after five epochs without gain. Its default negatives are among
the ten items least similar to the relevant one; "random" is another of its choices.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from samewise._typing import Array, Indices

HELD_OUT = 0.2

Mapped = tuple[Callable[[Array], Array], float]
"""A map of queries, and the seconds it took to learn."""


def reason_to_skip() -> str:
    """Why there is nothing to compare with; empty if there is."""
    try:
        import torch  # noqa: F401
    except ImportError:
        return "PyTorch is not installed (pip install torch), so its adapters were not trained."
    return ""


def mnr_adapter(
    Q: Array, P: Array, seed: int, *, epochs: int = 1, rate: float = 2e-5, batch: int = 10
) -> Mapped:
    """LlamaIndex's: multiple negatives ranking loss within batches."""
    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    q, p = torch.from_numpy(Q), torch.from_numpy(P)
    start = time.process_time()
    W = torch.nn.Parameter(torch.eye(Q.shape[1]))
    optimizer = torch.optim.AdamW([W], lr=rate)
    steps = epochs * -(-len(Q) // batch)
    warm = max(int(0.1 * steps), 1)

    def share(k: int) -> float:
        return k / warm if k < warm else max(0.0, (steps - k) / max(1, steps - warm))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, share)
    unit = torch.nn.functional.normalize
    for _ in range(epochs):
        for rows in torch.randperm(len(q)).split(batch):
            scores = 20.0 * unit(q[rows] @ W.T) @ unit(p[rows]).T
            loss = torch.nn.functional.cross_entropy(scores, torch.arange(len(rows)))
            loss.backward()
            torch.nn.utils.clip_grad_norm_([W], 1.0)
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
    seconds = time.process_time() - start
    M = W.detach().numpy().T.copy()
    return (lambda X: X @ M), seconds


def triplet_adapter(
    Q: Array, relevant: Indices, items: Array, seed: int, *, negatives: str = "semantic_opposite"
) -> Mapped:
    """SantanderAI's: a triplet loss, and the identity where validation does not improve."""
    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    random = np.random.RandomState(seed)
    chosen = _negatives(items, relevant, negatives, random)
    order = random.permutation(len(Q))
    held, rest = np.split(order, [int(HELD_OUT * len(Q))])
    parts = [torch.from_numpy(part[rest]) for part in (Q, items[relevant], items[chosen])]
    start = time.process_time()
    linear = torch.nn.Linear(Q.shape[1], Q.shape[1])
    with torch.no_grad():
        linear.weight.zero_()
        linear.bias.zero_()
    unit = torch.nn.functional.normalize
    cosine = torch.nn.functional.cosine_similarity
    optimizer = torch.optim.Adam(linear.parameters(), lr=1e-3)

    def score() -> float:
        with torch.no_grad():
            E = unit(torch.from_numpy(Q[held]) + linear(torch.from_numpy(Q[held]))).numpy()
        return _mrr(E, items, relevant[held])

    best, state, since = score(), _copy(linear), 0
    for _ in range(20):
        for rows in torch.randperm(len(rest)).split(64):
            a, p, n = (part[rows] for part in parts)
            mapped = unit(a + linear(a))
            loss = torch.relu(cosine(mapped, n) - cosine(mapped, p) + 0.2).mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(linear.parameters(), 1.0)
            optimizer.step()
        now = score()
        since = 0 if now > best + 1e-6 else since + 1
        if not since:
            best, state = now, _copy(linear)
        elif since >= 5:
            break
    seconds = time.process_time() - start
    W, b = state
    return (lambda X: X + X @ W.T + b), seconds


def _copy(linear: Any) -> tuple[Array, Array]:
    return linear.weight.detach().numpy().copy(), linear.bias.detach().numpy().copy()


def _negatives(items: Array, relevant: Indices, how: str, random: np.random.RandomState) -> Indices:
    """One negative for each relevant item; that is done before training, and not timed."""
    if how == "random":
        found = random.randint(len(items) - 1, size=len(relevant))
        return found + (found >= relevant)
    chosen = np.empty(len(relevant), dtype=np.int64)
    for start in range(0, len(relevant), 500):
        part = slice(start, start + 500)
        least = np.argpartition(items[relevant[part]] @ items.T, 10, axis=1)[:, :10]
        chosen[part] = least[np.arange(len(least)), random.randint(10, size=len(least))]
    return chosen


def _mrr(E: Array, items: Array, relevant: Indices) -> float:
    """As the tool has it: 0 below rank ten."""
    total = 0.0
    for start in range(0, len(E), 500):
        S = E[start : start + 500] @ items.T
        own = np.take_along_axis(S, relevant[start : start + 500, None], axis=1)
        ranks = 1 + (S > own).sum(axis=1)
        total += float(np.where(ranks <= 10, 1 / ranks, 0.0).sum())
    return total / len(E)


class OnlineMNR:
    """A matrix that maps queries, from the identity: a step of AdamW for each portion of lists.

    The loss is cross entropy of cosine times 20, each liked item against the other liked and all
    disliked ones of the portion; 1e-4 is the step of the prototypes.
    """

    def __init__(self, d: int, rate: float = 1e-4) -> None:
        import torch

        torch.set_num_threads(1)
        self._W = torch.nn.Parameter(torch.eye(d))
        self._optimizer = torch.optim.AdamW([self._W], lr=rate)

    def learn(self, Q: Array, liked: Array, disliked: Array) -> Array:
        """A step; returns M, by which a query q becomes qM."""
        import torch

        unit = torch.nn.functional.normalize
        if len(Q):
            items = torch.from_numpy(np.concatenate([liked, disliked]))
            scores = 20.0 * unit(torch.from_numpy(Q) @ self._W.T) @ unit(items).T
            loss = torch.nn.functional.cross_entropy(scores, torch.arange(len(Q)))
            self._optimizer.zero_grad()
            loss.backward()
            self._optimizer.step()
        return self._W.detach().numpy().T.copy()
