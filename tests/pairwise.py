"""Cases of tests: seeds, and fewer cases than a full product with every pair of values in one.

SAMEWISE_TEST_SEEDS names the seeds to run with, as numbers and ranges: "7", "0-99", "1,5,10-20".
"""

from __future__ import annotations

import itertools
import os

import pytest


def _seeds():
    chosen = []
    for part in os.environ.get("SAMEWISE_TEST_SEEDS", "0-2").split(","):
        first, _, last = part.partition("-")
        chosen += range(int(first), int(last or first) + 1)
    return {f"seed{seed}": seed for seed in chosen}


SEEDS = _seeds()


def pairwise(*, unless=None, **parameters):
    """Like `parametrize` over a product, thinned to cases in which every pair of values occurs.

    `parameters` has the values of each name: a list, or a dict of label → value for the names of
    the cases. `unless(**values)` says which cases make no sense; a pair that occurs only in such
    is not asked for.
    """
    tables = [dict(_labeled(values)) for values in parameters.values()]
    names = list(parameters)

    def possible(case):
        values = (table[label] for table, label in zip(tables, case, strict=True))
        return unless is None or not unless(**dict(zip(names, values, strict=True)))

    cases = thinned([list(table) for table in tables], possible)
    return pytest.mark.parametrize(
        names,
        [
            pytest.param(
                *(table[label] for table, label in zip(tables, case, strict=True)),
                id="-".join(case),
            )
            for case in cases
        ],
    )


def thinned(values, possible=lambda case: True):
    """Cases, one value for each list, in which any two values of two lists meet.

    Greedy: of the cases with the first pair that has not met yet, the first that brings most such
    pairs together is next.
    """
    if len(values) < 2:
        return [case for case in itertools.product(*values) if possible(case)]
    met = dict.fromkeys(
        ((i, a), (j, b))
        for (i, one), (j, other) in itertools.combinations(enumerate(values), 2)
        for a, b in itertools.product(one, other)
    )
    cases = []
    while met:
        fixed = dict(next(iter(met)))
        candidates = itertools.product(
            *([fixed[i]] if i in fixed else column for i, column in enumerate(values))
        )
        best = max(
            filter(possible, candidates),
            key=lambda case: sum(pair in met for pair in _pairs(case)),
            default=None,
        )
        if best is None:
            del met[next(iter(met))]
            continue
        cases.append(best)
        for pair in _pairs(best):
            met.pop(pair, None)
    return cases


def _pairs(case):
    return itertools.combinations(enumerate(case), 2)


def _labeled(values):
    """(label, value) of each; labels of a list are made of its values."""
    if isinstance(values, dict):
        yield from values.items()
    else:
        for value in values:
            yield _label(value), value


def _label(value):
    if isinstance(value, tuple | list):
        return " ".join(map(_label, value))
    return getattr(value, "__name__", str(value))
