"""Retrieval scores against scikit-learn, trec_eval and ranx, with and without ties.

Of tied items scikit-learn's nDCG is the expected one. trec_eval takes them by falling name, and
ranx as its sort leaves them: the columns are put in that order.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, ndcg_score

from samewise.scores import average_precision, ndcg, precision_at_k, recall_at_k, reciprocal_rank

K = 7


@pytest.fixture(params=[None, 2], ids=["untied", "tied"])
def ranked(request, seed):
    """Scores that float32, in which trec_eval keeps them, holds exactly, and gains 0 … 3."""
    rng = np.random.default_rng(seed)
    shape = (9, 60)
    scores = rng.permuted(np.broadcast_to(np.arange(shape[1]) - 30.0, shape), axis=1)
    if request.param:
        scores = np.floor(scores / 8)
    gains = rng.integers(-3, 4, size=shape).clip(0)
    gains[:, 5] = 2
    return scores, gains, bool(request.param)


def ours(scores, gains, ties):
    return {
        "precision": precision_at_k(scores, gains, K, ties=ties),
        "recall": recall_at_k(scores, gains, K, ties=ties),
        "map": average_precision(scores, gains, ties=ties),
        "mrr": reciprocal_rank(scores, gains, ties=ties),
        "ndcg": ndcg(scores, gains, ties=ties),
        "ndcg@k": ndcg(scores, gains, K, ties=ties),
    }


def as_dicts(values):
    """Of each query, the value of each item; names fall from column to column."""
    names = [f"d{len(values[0]) - j:03d}" for j in range(len(values[0]))]
    return {
        f"q{i:03d}": dict(zip(names, row.tolist(), strict=True)) for i, row in enumerate(values)
    }


def check(found, ranked):
    scores, gains, tied = ranked
    for name, values in ours(scores, gains, "index").items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12, err_msg=name)
    if not tied:
        for name, values in ours(scores, gains, "expected").items():
            np.testing.assert_allclose(found[name], values, rtol=1e-12, err_msg=name)


def test_scikit_learn(ranked):
    scores, gains, tied = ranked
    for k in (1, K, None):
        each = [ndcg_score([g], [s], k=k) for s, g in zip(scores, gains, strict=True)]
        np.testing.assert_allclose(ndcg(scores, gains, k), each, rtol=1e-12)
    # Its average precision takes all tied items in one step, which is the mean over no order.
    theirs = [average_precision_score(g > 0, s) for s, g in zip(scores, gains, strict=True)]
    assert np.allclose(average_precision(scores, gains), theirs, rtol=1e-12) != tied


def test_trec_eval(ranked):
    pytrec_eval = pytest.importorskip(
        "pytrec_eval", reason="trec_eval is not there: pip install pytrec-eval-terrier"
    )
    names = {
        "precision": f"P_{K}",
        "recall": f"recall_{K}",
        "map": "map",
        "mrr": "recip_rank",
        "ndcg": "ndcg",
        "ndcg@k": f"ndcg_cut_{K}",
    }
    scores, gains, _ = ranked
    asked = {f"P.{K}", f"recall.{K}", "map", "recip_rank", "ndcg", f"ndcg_cut.{K}"}
    found = pytrec_eval.RelevanceEvaluator(as_dicts(gains), asked).evaluate(as_dicts(scores))
    rows = [found[query] for query in sorted(found)]
    check({name: [row[theirs] for row in rows] for name, theirs in names.items()}, ranked)


@pytest.mark.filterwarnings("ignore")
def test_ranx(ranked):
    ranx = pytest.importorskip("ranx", reason="ranx is not there: pip install ranx")
    names = {
        "precision": f"precision@{K}",
        "recall": f"recall@{K}",
        "map": "map",
        "mrr": "mrr",
        "ndcg": "ndcg",
        "ndcg@k": f"ndcg@{K}",
    }
    scores, gains, tied = ranked
    run = ranx.Run(as_dicts(scores))
    found = ranx.evaluate(ranx.Qrels(as_dicts(gains)), run, list(names.values()), return_mean=False)
    orders = [[60 - int(name[1:]) for name in row] for row in run.to_dict().values()]
    scores, gains = (np.take_along_axis(a, np.array(orders), axis=1) for a in (scores, gains))
    check({name: found[theirs] for name, theirs in names.items()}, (scores, gains, tied))
