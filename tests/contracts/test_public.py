"""The public face, and the inner walls."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest

import samewise

ROOT = Path(__file__).parents[2]

PUBLIC = [
    "HIER",
    "IGML",
    "ITML",
    "KIGML",
    "KRCA",
    "LDA",
    "LEGO",
    "LFDA",
    "LMNN",
    "LSML",
    "MCML",
    "MLKR",
    "MMC",
    "NCA",
    "OASIS",
    "PCA",
    "POLA",
    "RBS",
    "RCA",
    "SCML",
    "SDML",
    "SNN",
    "SRBS",
    "AsyncClient",
    "BatchTopicFilter",
    "Bilinear",
    "Client",
    "Cosine",
    "Covariance",
    "DiagonalAROMA",
    "Euclidean",
    "FactoredAROMA",
    "Form",
    "GCosLA",
    "GeneralizedCosine",
    "Guarded",
    "Index",
    "Judgements",
    "KNNClassifier",
    "KNNRegressor",
    "KernelLMNN",
    "KernelMahalanobis",
    "KernelPOLA",
    "LiveAdapter",
    "LowRankBilinear",
    "Mahalanobis",
    "Model",
    "MultiMetric",
    "MultiMetricLMNN",
    "NearestFilter",
    "NeuralSimilarity",
    "NormalizedBilinear",
    "PAUMFilter",
    "Pairs",
    "PassiveAggressive",
    "PerClassClassifier",
    "PerceptronFilter",
    "PolaFilter",
    "PosteriorSimilarity",
    "Quadruplets",
    "Relief",
    "ReportOptions",
    "SiLA",
    "TextVectors",
    "TopicFilter",
    "Triplets",
    "Verifier",
    "adapt",
    "choose_learner",
    "compare",
    "datasets",
    "evaluate",
    "evaluate_feedback",
    "exceptions",
    "filtering",
    "fit_model",
    "gain",
    "load",
    "margins",
    "plots",
    "scale",
    "scores",
    "tune_C",
    "warm_up",
    "write_report",
]
LAYERS = [
    "adapt",
    "datasets",
    "decide",
    "filtering",
    "forms",
    "learners",
    "plots",
    "protocols",
    "report",
    "scale",
    "scores",
    "search",
    "serve",
    "supervision",
]


def as_written(names):
    """Sorted as ruff sorts `__all__`: CONSTANTS, then Classes, then the rest."""
    return sorted(names, key=lambda n: (0 if n.isupper() else 1 if n[0].isupper() else 2, n))


def test_the_public_face_is_this_list():
    assert samewise.__all__ == sorted(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there_and_documented(name):
    value = getattr(samewise, name)
    assert value.__doc__
    assert name in dir(samewise)
    if hasattr(value, "__name__"):
        assert value.__name__ in (name, f"samewise.{name}")


def test_a_star_import_gives_the_public_face():
    names = {}
    exec("from samewise import *", names)
    assert set(names) - {"__builtins__"} == set(PUBLIC)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'samewise' has no attribute 'LMNNN'"):
        samewise.LMNNN  # noqa: B018


@pytest.mark.parametrize("module", ["", *(f".{layer}" for layer in LAYERS), ".exceptions"])
def test_names_are_sorted_and_importable(module):
    module = importlib.import_module(f"samewise{module}")
    assert module.__doc__
    # Those two read the catalog; the others list their names as ruff sorts them.
    catalogued = module.__name__ in ("samewise", "samewise.learners")
    order = sorted if catalogued else as_written
    assert module.__all__ == order(module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None


def test_a_bare_import_loads_nothing_heavy():
    heavy = (
        "matplotlib",
        "dask",
        "pandas",
        "typer",
        "rich",
        "sklearn",
        "scipy",
        "numba",
        "fastapi",
        "httpx",
    )
    code = f"import sys, samewise; print([m for m in {heavy} if m in sys.modules])"
    assert _fresh(code) == "[]"


def test_learning_loads_nothing_of_an_extra():
    code = (
        "import sys, numpy as np, samewise\n"
        "learner = samewise.PassiveAggressive(n_pairs=20, random_state=0)\n"
        "learner.fit(np.eye(8), [0, 1] * 4)\n"
        "samewise.KNNClassifier(learner, n_neighbors=1).fit(np.eye(8), [0, 1] * 4)\n"
        "samewise.Verifier, samewise.datasets, samewise.scores, samewise.load, samewise.adapt\n"
        # Not rich: scikit-learn takes it by itself where it is installed.
        "extras = ('matplotlib', 'dask', 'typer', 'snowballstemmer', 'onnx', 'safetensors', "
        "'fastapi', 'httpx')\n"
        "print([m for m in extras if m in sys.modules])"
    )
    assert _fresh(code) == "[]"


def _fresh(code):
    """What a new interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_package_is_typed():
    assert (Path(samewise.__file__).parent / "py.typed").is_file()


def test_one_version_everywhere():
    assert metadata.version("samewise") == samewise.__version__
    changelog = ROOT / "CHANGELOG.md"
    if not changelog.is_file():
        pytest.skip("the changelog belongs to a checkout")
    versions = re.findall(
        r"^## \[(\d[^\]]*)\]", changelog.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert versions[0] == samewise.__version__


def test_imports_go_downward_only():
    if find_spec("importlinter") is None:
        pytest.skip("import-linter is not installed")
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("the contract belongs to a checkout")
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", code, "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 kept, 0 broken" in done.stdout
