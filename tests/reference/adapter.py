"""The live adapter as plain loops: learn, remember, test. It imports nothing from the package."""

from __future__ import annotations

import math

import numpy as np
from numpy.linalg import norm


def pairs_of(y):
    """Pairs (i, j) of judged items, i graded above j."""
    n = len(y)
    return [(i, j) for i in range(n) for j in range(n) if y[i] and y[j] and y[i] > y[j]]


def auc(scores, y, apart=-1):
    """None without pairs; those with the item `apart` do not count."""
    pairs = [pair for pair in pairs_of(y) if apart not in pair]
    if not pairs:
        return None
    right = sum(
        1.0 if scores[i] > scores[j] else 0.5 if scores[i] == scores[j] else 0.0 for i, j in pairs
    )
    return right / len(pairs)


def liked(y):
    """Judged items above and not above the middle of the grades."""
    judged = [i for i in range(len(y)) if y[i]]
    middle = (min(y[i] for i in judged) + max(y[i] for i in judged)) / 2
    return [i for i in judged if y[i] > middle], [i for i in judged if y[i] <= middle]


def best_is_liked(scores, y):
    best = max((i for i in range(len(y)) if y[i]), key=lambda i: (scores[i], -i))
    return float(best in liked(y)[0])


class SignBet:
    """Wealth: Π(1 + x/10)."""

    def __init__(self):
        self.wealth = 1.0

    def place(self, x):
        self.wealth *= 1 + x / 10

    @property
    def log_wealth(self):
        return math.log(self.wealth)


class Bet:
    """Wealth Π(1 + λx), λ = clip(m/v, 0, ½), v with five values of variance 0.1 before."""

    def __init__(self):
        self.log_wealth, self.x = 0.0, []

    def place(self, x):
        m, v = sum(self.x), sum(value * value for value in self.x) + 0.5
        self.log_wealth += math.log(1 + min(max(m / v, 0.0), 0.5) * x)
        self.x.append(x)


class Adapter:
    """One live form, its bets and frozen copies; `units` are s̄, g, μ, L, axes and pivots."""

    def __init__(self, units, margin=0.3, level=0.05, memory=20_000, half_life=None):
        self.s, self.g, self.mu, self.L, self.axes, self.pivots = units
        self.margin, self.level, self.memory, self.half_life = margin, level, memory, half_life
        self.D = np.zeros((self.L.shape[1], len(self.mu)))
        self.mean = self.D.copy()
        self.t = 0
        self.events = []
        self.served = {"rest": None, "first": None}
        self.rank = {"rest": 0, "first": 0, "fall rest": 0, "fall first": 0}
        self.bets = {name: Bet() for name in ("fall rest", "fall first", "agree")}
        self.bets |= {name: SignBet() for name in ("rest", "first")}
        self.gain = 0.0
        self.changes = []

    def cells(self, q, n=8):
        z = q @ self.axes
        distance = ((self.pivots - z) ** 2).sum(axis=1)
        return np.argsort(distance, kind="stable")[:n].tolist()

    def recalled(self, q, events, now):
        """2 Σ K_i v_i / (Σ K_i + 1) over the nearest of the candidates that are seen.

        Candidates: cell by cell, the newest first, 320. Of them the 32 nearest.
        """
        rate = 0.0 if self.half_life is None else math.log(2) / self.half_life
        newest_first = self.events[::-1]
        seen = [e for e in newest_first if e[0] in events and e[5] >= events.stop]
        candidates = [e for cell in self.cells(q) for e in seen if e[3] == cell][:320]
        total, weighted = 0.0, np.zeros(len(q))
        self.close = []
        for number, query, v, _, weight, _ in sorted(candidates, key=lambda e: -(q @ e[1]))[:32]:
            s = 14 / self.g * (q @ query - self.s - 0.95 * self.g)
            K = weight * math.exp(s - rate * (now - number))
            if K >= 0.3:
                self.close.append(number)
            if K >= 1e-4:
                total += K
                weighted += K * v
        return 2 * weighted / (total + 1)

    def window(self):
        n = len(self.events)
        return range(max(n - self.memory, 0), n)

    def live(self, q):
        phi = (q - self.mu) @ self.L
        return q + phi @ self.mean + self.recalled(q, self.window(), len(self.events))

    def serve(self, q, place):
        if self.served[place] is None:
            return q
        mean, window, now = self.served[place]
        return q + (q - self.mu) @ self.L @ mean + self.recalled(q, window, now)

    def hear(self, q, S, y, weight=1.0, candidate=-1):
        self.test(q, S, y, candidate)
        self.learn(q, S, y, weight)
        self.decide()

    def test(self, q, S, y, candidate):
        forms = {"live": self.live(q), "start": q}
        forms |= {place: self.serve(q, place) for place in self.served}
        A = {name: auc(S @ form, y, candidate) for name, form in forms.items()}
        B = {name: best_is_liked(S @ form, y) for name, form in forms.items()}
        self.bets["first"].place(B["live"] - B["first"])
        self.bets["fall first"].place(B["start"] - B["first"])
        if A["live"] is not None:
            self.gain += A["live"] - A["rest"]
            self.bets["rest"].place(np.sign(A["live"] - A["rest"]))
            self.bets["agree"].place(2 * A["start"] - 1)
            self.bets["fall rest"].place(np.sign(A["start"] - A["rest"]))

    def learn(self, q, S, y, weight):
        self.t += 1
        if self.half_life is not None:
            self.D *= 0.5 ** (1 / self.half_life)
            self.mean *= 0.5 ** (1 / self.half_life)
        phi = (q - self.mu) @ self.L
        s = S @ (q + phi @ self.D)
        margin = self.margin * self.g
        violated = [(i, j) for i, j in pairs_of(y) if s[i] - s[j] < margin]
        if violated:
            v = np.mean([S[i] - S[j] for i, j in violated], axis=0)
            lack = np.mean([margin - (s[i] - s[j]) for i, j in violated])
            tau = lack / ((v @ v) * (phi @ phi) + 0.5 / weight)
            self.D = self.D + tau * np.outer(phi, v)
        t = min(self.t, 3000) if self.half_life is None else min(self.t, self.half_life)
        newest = min(4 / (t + 3), 1.0)
        self.mean = (1 - newest) * self.mean + newest * self.D
        up, down = liked(y)
        v = S[up].mean(axis=0) - S[down].mean(axis=0)
        self.live(q)
        for number in self.close:
            old = self.events[number]
            if v @ old[2] < -0.4 * norm(v) * norm(old[2]) and old[4] <= weight:
                old[5] = len(self.events)
        self.events.append([len(self.events), q, v, self.cells(q, 1)[0], weight, math.inf])

    def decide(self):
        for place in ("rest", "first"):
            agreed = self.bets["agree"]
            credible = agreed.log_wealth >= math.log(20) and sum(agreed.x[-200:]) > 0
            gains = place == "first" or self.gain >= 0
            if self.bets[place].log_wealth >= self.needed(place) and credible and gains:
                self.change(place, place, (self.mean.copy(), self.window(), len(self.events)))
                self.bets["agree"] = Bet()
            elif self.served[place] and (
                self.bets[f"fall {place}"].log_wealth >= self.needed(f"fall {place}")
            ):
                self.change(place, f"fall {place}", None)

    def change(self, place, why, form):
        self.served[place] = form
        self.rank[why] += 1
        self.bets[place], self.bets[f"fall {place}"] = SignBet(), Bet()
        if place == "rest":
            self.gain = 0.0
        self.changes.append((self.t, why))

    def needed(self, name):
        level = self.level * (0.2 if "first" in name else 0.8)
        return math.log(math.pi**2 * (self.rank[name] + 1) ** 2 / (6 * level))
