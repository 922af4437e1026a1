"""Files of each kind, as this version writes them: `python -m tests.files.writing`.

A release adds a folder named by the version of the format; folders are never written again, and
every later version must load what is in them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import samewise
from samewise.catalog import LEARNERS
from samewise.files.container import FORMAT
from samewise.forms import Form
from samewise.learners.learner import Learner

HERE = Path(__file__).parent
FOLDER = HERE / f"format_{FORMAT}"

rng = np.random.RandomState(0)
y = np.repeat([0, 1, 2], 8)
X = (rng.uniform(size=(24, 3)) + 0.5 * y[:, None] * np.array([1.0, 0.0, 0.5])).round(3)
TOPICS = {"cocoa": "cocoa beans harvest", "gold": "gold mine ounces"}


def forms() -> dict[str, Form]:
    """A form of each kind."""
    M = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.5]])
    return {
        "Mahalanobis": samewise.Mahalanobis(M),
        "Bilinear": samewise.Bilinear(M),
        "LowRankBilinear": samewise.Bilinear(M).reduce(2),
        "NormalizedBilinear": samewise.NormalizedBilinear(M, "dice"),
        "GeneralizedCosine": samewise.GeneralizedCosine(M),
        "KernelMahalanobis": samewise.KernelMahalanobis(
            np.ones((1, 4)), X[:4], "rbf", {"gamma": 0.5}
        ),
        "MultiMetric": samewise.MultiMetric(np.stack([M, np.eye(3)]), centers=X[[0, 20]]),
        "NeuralSimilarity": samewise.SNN(2, max_iter=5, tol=0, random_state=0).fit(X, y).metric_,
        "PosteriorSimilarity": samewise.HIER().fit(X, y).metric_,
    }


def learners() -> dict[str, Learner]:
    """Every learner, fitted."""
    given: dict[str, dict[str, Any]] = {"SiLA": {"n_neighbors": 2}, "SNN": {"n_hidden": 2}}
    made = {}
    for entry in LEARNERS:
        cls = getattr(samewise, entry.name)
        options = dict(given.get(entry.name, {}))
        if "random_state" in cls().get_params():
            options["random_state"] = 0
        if "max_iter" in cls().get_params() and entry.name != "HIER":
            options["max_iter"] = 200
        made[entry.name] = cls(**options).fit(X, y)
    return made


def filters() -> dict[str, Any]:
    """Every filter, after a few documents."""
    names = (
        "TopicFilter",
        "BatchTopicFilter",
        "PolaFilter",
        "NearestFilter",
        "PerceptronFilter",
        "PAUMFilter",
    )
    return {
        name: getattr(samewise, name)(vectorizer=samewise.TextVectors(n_features=64)).fit(TOPICS)
        for name in names
    }


def deciders() -> dict[str, Any]:
    """What decides with a metric, fitted."""
    pairs = samewise.Pairs.from_labels(X, y, n_pairs=60, random_state=0)
    learner = samewise.PassiveAggressive(random_state=0)
    return {
        "KNNClassifier": samewise.KNNClassifier(samewise.LDA(), rule="energy").fit(X, y),
        "PerClassClassifier": samewise.PerClassClassifier(samewise.LDA()).fit(X, y),
        "Verifier": samewise.Verifier(learner, "accuracy").fit(pairs),
    }


def adapter() -> samewise.LiveAdapter:
    """A live adapter, after a few lists."""
    items = X / np.linalg.norm(X, axis=1, keepdims=True)
    made = samewise.LiveAdapter(random_state=0).fit(items)
    for k in range(6):
        made.feedback(items[k], items[[k + 6, k + 12]], [1, -1])
    return made


def answers(kept: Any) -> list[float]:
    """What a kept object says about fixed rows, or how many topics it has."""
    if isinstance(kept, samewise.LiveAdapter):
        return np.asarray(kept.live.embed_query(X[3:6])).ravel().round(5).tolist()
    if isinstance(kept, samewise.PerClassClassifier):
        return np.asarray(kept.decision_function(X[3:6])).ravel().round(9).tolist()
    form = kept if isinstance(kept, Form) else getattr(kept, "metric_", getattr(kept, "form", None))
    if form is None:
        return [float(len(kept.topics_))]
    form = form.bind(X[:3], y[:3])
    return np.asarray(form.closeness(X[3:6], X[:3]), dtype=np.float64).ravel().round(9).tolist()


def objects() -> dict[str, Any]:
    """One of each kind, by the name of its file."""
    model = samewise.Model(forms()["Mahalanobis"], feature_names=("a", "b", "c"))
    rest = {"Model": model, "LiveAdapter": adapter()}
    return {**forms(), **learners(), **filters(), **deciders(), **rest}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    known = FOLDER / "answers.json"
    found = json.loads(known.read_text(encoding="utf-8")) if known.exists() else {}
    for name, each in objects().items():
        if name not in found:
            each.save(FOLDER / f"{name}.samewise")
            found[name] = answers(each)
    known.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
