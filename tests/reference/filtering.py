"""Document filters, one document and one topic at a time.

Vectors are lists of floats. A judge is a function (id, topic number) → bool or None.
"""

from __future__ import annotations

import math


def unit(x):
    norm = math.sqrt(sum_of(v * v for v in x))
    return [v / norm for v in x] if norm else list(x)


def sum_of(values):
    """In order, from 0.0: the built-in `sum` compensates for rounding since Python 3.12."""
    total = 0.0
    for value in values:
        total += value
    return total


def cosine(x, y):
    return sum_of(a * b for a, b in zip(x, y, strict=True))


class Topic:
    """A topic with the documents assigned to it: (id, unit vector), the oldest first."""

    def __init__(self, vector, alpha, similarity, cap):
        self.vector, self.alpha, self.similarity, self.cap = vector, alpha, similarity, cap
        self.documents = []

    def s1(self, d):
        return self.similarity(self.vector, d)

    def s2(self, d, others):
        return max(self.similarity(o, d) for _, o in others)

    def sim(self, d, others):
        if not others:
            return self.s1(d)
        return self.alpha * self.s1(d) + (1.0 - self.alpha) * self.s2(d, others)

    def least(self):
        return min(
            self.sim(d, [o for j, o in enumerate(self.documents) if j != i])
            for i, (_, d) in enumerate(self.documents)
        )

    def add(self, id, d):
        self.documents.append((id, d))

    def holds(self, id):
        return any(i == id for i, _ in self.documents)

    def remove(self, id):
        last = max(k for k, (i, _) in enumerate(self.documents) if i == id)
        del self.documents[last]


class CappedTopic(Topic):
    """A topic that forgets its oldest document, but not what it meant to the others."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.floor, self.marks = math.inf, []

    def add(self, id, d):
        near, who = None, None
        for k, (_, o) in enumerate(self.documents):
            if near is None or self.similarity(o, d) > near:
                near, who = self.similarity(o, d), self.marks[k]
            back = self.similarity(d, o)
            if self.marks[k]["s2"] is None or back > self.marks[k]["s2"]:
                self.marks[k]["s2"], self.marks[k]["new"] = back, True
        mark = {"s2": near, "who": who}
        for other in self.marks:
            if other.pop("new", False):
                other["who"] = mark
        self.documents.append((id, d))
        self.marks.append(mark)
        if len(self.documents) > self.cap:
            self.floor = min(self.floor, self.standing(0))
            del self.documents[0], self.marks[0]

    def standing(self, k):
        s1, s2 = self.s1(self.documents[k][1]), self.marks[k]["s2"]
        return s1 if s2 is None else self.alpha * s1 + (1.0 - self.alpha) * s2

    def least(self):
        return min([self.floor, *(self.standing(k) for k in range(len(self.documents)))])

    def remove(self, id):
        last = max(k for k, (i, _) in enumerate(self.documents) if i == id)
        gone = self.marks.pop(last)
        del self.documents[last]
        for k, mark in enumerate(self.marks):
            if mark["who"] is gone:
                mark["s2"] = mark["who"] = None
                for j, (_, o) in enumerate(self.documents):
                    value = self.similarity(o, self.documents[k][1])
                    if j != k and (mark["s2"] is None or value > mark["s2"]):
                        mark["s2"], mark["who"] = value, self.marks[j]


def make_topic(vector, alpha, similarity, cap):
    kind = Topic if cap is None else CappedTopic
    return kind(unit(vector), alpha, similarity, cap)


class TopicFilter:
    """The online algorithm, general and simplified."""

    def __init__(
        self,
        topics,
        mode="online",
        alpha=0.7,
        theta1=0.42,
        theta2=0.7,
        n_initial=10,
        budget=50,
        cap=None,
        similarity=cosine,
    ):
        self.topics = [make_topic(t, alpha, similarity, cap) for t in topics]
        self.mode, self.alpha, self.theta1, self.theta2 = mode, alpha, theta1, theta2
        self.n_initial, self.budget = n_initial, budget
        self.vectors, self.pending = {}, set()

    def observe(self, id, x):
        """(topic number, score, action) for each topic that the document is for."""
        d = unit(x)
        self.vectors[id] = d
        found = []
        for i, topic in enumerate(self.topics):
            if self.mode == "simple":
                theta = self.alpha * self.theta1 + (1 - self.alpha) * self.theta2
                sim = topic.sim(d, topic.documents)
                if sim >= theta:
                    topic.add(id, d)
                    found.append((i, sim, "assign"))
            elif len(topic.documents) < self.n_initial:
                if topic.s1(d) > self.theta1:
                    if self.budget > 0:
                        self.budget -= 1
                        self.pending.add((id, i))
                        found.append((i, topic.s1(d), "ask"))
                    else:
                        topic.add(id, d)
                        found.append((i, topic.s1(d), "assign"))
            else:
                sim = topic.sim(d, topic.documents)
                if sim > topic.least():
                    topic.add(id, d)
                    found.append((i, sim, "assign"))
        return found

    def feedback(self, id, i, relevant):
        topic = self.topics[i]
        self.pending.discard((id, i))
        if relevant and not topic.holds(id):
            topic.add(id, self.vectors[id])
        if not relevant and topic.holds(id):
            topic.remove(id)


def batch(topics, documents, alpha=0.7, n_initial=10, cap=None):
    """For each document the numbers of the topics it is assigned to; and the thresholds."""
    topics = [make_topic(t, alpha, cosine, cap) for t in topics]
    documents = [unit(x) for x in documents]
    assigned = [set() for _ in documents]
    thetas = []
    for i, topic in enumerate(topics):
        order = sorted(range(len(documents)), key=lambda k: (-topic.s1(documents[k]), k))
        seeds = [k for k in order[:n_initial] if topic.s1(documents[k]) > 0]
        for k in sorted(seeds):
            topic.add(k, documents[k])
            assigned[k].add(i)
        thetas.append(topic.least() if topic.documents else math.inf)
    seeded = [set(s) for s in assigned]
    for k, d in enumerate(documents):
        for i, topic in enumerate(topics):
            if i in seeded[k] or not topic.documents:
                continue
            if topic.sim(d, topic.documents) >= thetas[i]:
                topic.add(k, d)
                assigned[k].add(i)
                thetas[i] = min(thetas[i], topic.least())
    return [sorted(s) for s in assigned], thetas


def perceptron(documents, relevant, tau_positive=0.0, tau_negative=0.0):
    """Decisions of one topic's Perceptron with uneven margins, told the truth each time."""
    w, b, found = [0.0] * len(documents[0]), 0.0, []
    for x, yes in zip(documents, relevant, strict=True):
        d, y = unit(x), 1.0 if yes else -1.0
        margin = cosine(w, d) + b
        found.append(margin > 0)
        if y * margin <= (tau_positive if yes else tau_negative):
            w = [v + y * u for v, u in zip(w, d, strict=True)]
            b += y
    return found


def nearest(documents, relevant, cap=None):
    """Decisions of the nearest document seen so far."""
    seen, found = [], []
    for x, yes in zip(documents, relevant, strict=True):
        d = unit(x)
        best, answer = -math.inf, False
        for other, label in seen:
            if cosine(other, d) > best:
                best, answer = cosine(other, d), label
        found.append(answer)
        seen.append((d, yes))
        if cap is not None and len(seen) > cap:
            del seen[0]
    return found


def pola(topic, documents, relevant, gamma, project, use_topic=True):
    """Decisions of one topic's POLA filter; `project(M)` is the nearest M ⪰ 0."""
    n = len(topic)
    M, b = [[0.0] * n for _ in range(n)], 1.0
    near, found = [unit(topic)] if use_topic else [], []

    def distance(x, r):
        v = [p - q for p, q in zip(x, r, strict=True)]
        return sum_of(v[j] * M[j][k] * v[k] for j in range(n) for k in range(n))

    for x, yes in zip(documents, relevant, strict=True):
        d, y = unit(x), 1.0 if yes else -1.0
        distances = [distance(d, r) for r in near]
        found.append(bool(near) and min(distances) < b)
        if near:
            closest = distances.index(min(distances))
            v = [p - q for p, q in zip(d, near[closest], strict=True)]
            loss = max(0.0, 1 - y * (b - distances[closest]))
            tau = loss / (1 + gamma + sum_of(u * u for u in v) ** 2)
            M = [[M[j][k] - tau * y * v[j] * v[k] for k in range(n)] for j in range(n)]
            M, b = project(M), max(b + tau * y, 1.0)
        if yes:
            near.append(d)
    return found
