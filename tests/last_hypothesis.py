"""Learners whose result is the last hypothesis, which the papers' loops and theorems are about."""

from __future__ import annotations

from functools import partial

import samewise

POLA = partial(samewise.POLA, average="last")
PassiveAggressive = partial(samewise.PassiveAggressive, average="last")
