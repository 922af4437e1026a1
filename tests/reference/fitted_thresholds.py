"""Thresholds from scores and judgments, one document and one topic at a time.

The posterior by Newton's method on the whole matrix, the expectation by the same nine nodes, and
the best threshold by trying all of them.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from tests.reference.filtering import cosine, make_topic, unit

RATE, MEAN, COLLECTION, TOPIC = 0.3, -4.9, 0.5, 2.0
START, DECAY, WEIGHT, PRICE = 0.065, 1 / 28, 50, 0.8


def is_mark(n):
    return any(n in (2**k, 3 * 2**k) for k in range(40))


def posterior(n, judged):
    """Mean and variance of each a_t; `judged` has (topic, x, whether relevant)."""
    covariance = TOPIC**2 * np.eye(n) + COLLECTION**2 * np.ones((n, n))
    precision = np.linalg.inv(covariance)
    a = np.full(n, MEAN)

    def value(at):
        total = -(at - MEAN) @ precision @ (at - MEAN) / 2
        for i, x, yes in judged:
            eta = at[i] + (1 - RATE) * x
            total += (eta if yes else 0.0) - np.logaddexp(0, eta)
        return total

    for _ in range(200):
        gradient, hessian = -precision @ (a - MEAN), precision.copy()
        for i, x, yes in judged:
            p = 1 / (1 + math.exp(-(a[i] + (1 - RATE) * x)))
            gradient[i] += yes - p
            hessian[i, i] += p * (1 - p)
        step = np.linalg.solve(hessian, gradient)
        while value(a + step) < value(a) - 1e-12:
            step = step / 2
        a = a + step
        if np.abs(step).max() < 1e-11:
            break
    return a, np.diag(np.linalg.inv(hessian))


def utility_of(x, w, utility):
    relevant, others = w * math.exp(-RATE * x), math.exp(-x)
    if utility == "detection":
        return 10 * 0.001 * relevant / w - 0.1 * 0.999 * 0.05 * others
    if utility == "linear":
        return max(-0.5, (relevant - 0.5 * others) / w)
    precision, recall, b = relevant / (relevant + others), relevant / w, utility**2
    return (1 + b) * precision * recall / (b * precision + recall)


@lru_cache(None)
def best_x(a, v, utility):
    nodes, shares = np.polynomial.hermite_e.hermegauss(9)
    best, found = -math.inf, None
    for k in range(800):
        x = k * 0.05
        expected = 0.0
        for node, share in zip(nodes, shares / shares.sum(), strict=True):
            w = math.exp(a + math.sqrt(v) * node) / RATE
            expected += share * utility_of(x, w, utility)
        # Differences of rounding decide nothing.
        if expected > best + 1e-13:
            best, found = expected, x
    return found


class FittedFilter:
    """TopicFilter with thresholds="auto"."""

    def __init__(self, topics, alpha=0.7, utility=1.0, budget=50, patience=256):
        self.topics = [make_topic(t, alpha, cosine, None) for t in topics]
        self.utility, self.left, self.patience = utility, budget, patience
        self.levels = [(START, DECAY)] * len(topics)
        self.vectors, self.judged, self.sample = {}, {}, []

    def score(self, i, id):
        topic = self.topics[i]
        others = [(other, d) for other, d in topic.documents if other != id]
        return topic.sim(self.vectors[id], others)

    def look(self, i):
        n = len(self.sample)
        if not n:
            return
        scores = sorted((self.score(i, id) for id in self.sample), reverse=True)
        first, second = scores[int(0.05 * n)], scores[int(0.01 * n)]
        share = n / (n + WEIGHT)
        decay = (second - first) / math.log(5)
        self.levels[i] = (
            share * first + (1 - share) * START,
            share * decay + (1 - share) * DECAY,
        )

    def posterior(self):
        return posterior(
            len(self.topics), [(i, x, yes) for (_, i), (x, yes) in self.judged.items()]
        )

    def thresholds(self):
        return [
            start + decay * best_x(a, v, self.utility)
            for (start, decay), a, v in zip(self.levels, *self.posterior(), strict=True)
        ]

    def observe(self, id, x):
        n = len(self.vectors)
        if is_mark(n):
            self.sample = list(self.vectors)
            for i in range(len(self.topics)):
                self.look(i)
        thresholds, (a, v) = self.thresholds(), self.posterior()
        d, found = unit(x), []
        for i, topic in enumerate(self.topics):
            s = topic.sim(d, topic.documents)
            start, decay = self.levels[i]
            p = 1 / (1 + math.exp(-(a[i] + (1 - RATE) * (s - start) / decay)))
            price = PRICE / (1 + self.left / len(self.topics))
            if self.left > 0 and n >= self.patience and p * (1 - p) * v[i] >= price:
                self.left -= 1
                found.append((i, s, "ask"))
            elif s >= thresholds[i]:
                found.append((i, s, "assign"))
        self.vectors[id] = d
        return found

    def feedback(self, id, i, relevant):
        topic, (start, decay) = self.topics[i], self.levels[i]
        self.judged.pop((id, i), None)
        self.judged[id, i] = (self.score(i, id) - start) / decay, relevant
        if relevant == topic.holds(id):
            return
        if relevant:
            topic.add(id, self.vectors[id])
        else:
            topic.remove(id)
        if not topic.documents or is_mark(len(topic.documents)):
            self.look(i)


def least_balanced_error(margins, relevant):
    """A threshold of the least balanced error, by trying all; the highest of equal ones."""
    if not 5 <= sum(relevant) < len(relevant):
        return 0.0
    values = sorted(set(margins), reverse=True)
    best, found = math.inf, None
    for k, value in enumerate(values):
        threshold = (value + values[k + 1]) / 2 if k + 1 < len(values) else value - 0.5
        false = sum(m > threshold and not yes for m, yes in zip(margins, relevant, strict=True))
        missed = sum(m <= threshold and yes for m, yes in zip(margins, relevant, strict=True))
        error = false / (len(relevant) - sum(relevant)) + missed / sum(relevant)
        if error < best - 1e-12:
            best, found = error, threshold
    return found
