"""The commands that learn, measure, search and show, in this process and in their own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pandas")
import pandas as pd
from rich.console import Console
from sklearn.datasets import load_iris
from sklearn.utils import Bunch

import samewise
from samewise import OASIS, load
from samewise.catalog import BY_COMMAND, LEARNERS
from samewise.cli import app as app_module
from samewise.cli import console, main
from samewise.cli.app import _COMMANDS
from samewise.datasets import OPENML
from samewise.datasets import load as dataset
from samewise.datasets.openml import FETCHED
from samewise.filtering import TopicFilter
from samewise.forms import Bilinear, Mahalanobis
from samewise.learners import LDA, LMNN
from samewise.model import Model
from samewise.protocols import learner_comparison, make_learner, measure, trials
from tests.learning_here import learn_here

MAIN = [sys.executable, "-c", "from samewise.cli import main; main()"]


def test_fit_writes_what_the_library_learns(call_json, wine):
    found = call_json("fit", "wine.csv", "--label", "class", "--learner", "lda")
    assert found["learner"] == "lda" and found["standardized"] and found["model"] == "model.sw"
    model = load("model.sw")
    assert isinstance(model, Model) and model.label == "class"
    assert model.feature_names == tuple(wine.columns[:-1])
    X, y = wine.drop(columns="class").to_numpy(), wine["class"].to_numpy()
    seen = model.has_seen(X)
    assert seen.sum() == found["rows"] == len(y) - found["measured"]["rows"]
    scaled = (X - X[seen].mean(axis=0)) / X[seen].std(axis=0)
    np.testing.assert_allclose(model.prepare(X), scaled)
    expected = make_learner("lda", random_state=0).fit(scaled[seen], y[seen]).metric_
    np.testing.assert_allclose(model.form.matrix, expected.matrix, rtol=1e-6, atol=1e-9)
    parts = scaled[seen], y[seen], scaled[~seen], y[~seen]
    assert found["measured"]["errors"]["lda"] == measure(model.form, *parts).knn_error
    assert found["measured"]["errors"]["euclidean"] == measure(None, *parts).knn_error
    assert model.measured == found["measured"] and model.threshold < 0


@pytest.mark.parametrize("ending", ["parquet", "npz", "jsonl"])
def test_fit_reads_every_format(call_json, ending):
    label = [] if ending == "npz" else ["--label", "class"]
    a = call_json("fit", f"wine.{ending}", *label, "--learner", "lda", "--out", "a.sw")
    b = call_json("fit", "wine.csv", "--label", "class", "--learner", "lda", "--out", "b.sw")
    assert a["measured"] == b["measured"]
    assert load("a.sw").form == load("b.sw").form


def test_fit_says_what_happened(call):
    result = call("fit", "wine.csv", "--label", "class", "--learner", "lda")
    assert "lda learned from 71 rows, 13 features, standardized, 3 classes" in result.stdout
    assert "3-NN error on 18 held-out rows" in result.stdout
    assert "Against " in result.stdout and "Written to model.sw." in result.stdout
    assert result.stderr == "" and "\x1b" not in result.stdout


def test_fit_with_parameters(call_json):
    options = ("fit", "wine.csv", "--label", "class", "--learner", "lmnn")
    assert call_json(*options, "--params", "n_neighbors=1,max_iter=2")["params"] == {
        "n_neighbors": 1,
        "max_iter": 2,
    }
    found = call_json(*options, "--params", '{"solver": "L", "max_iter": 2}')
    assert found["params"] == {"solver": "L", "max_iter": 2}
    assert load("model.sw").params == found["params"]


def test_fit_that_tunes(call_json):
    found = call_json("fit", "wine.csv", "--label", "class", "--learner", "lda", "--tune")
    assert len(found["tried"]) == 3 and "shrinkage = 0.0/0.1/0.5" in found["reason"]
    assert found["params"]["shrinkage"] in (0.0, 0.1, 0.5)


def test_fit_that_chooses_says_why(call):
    result = call("fit", "wine.csv", "--label", "class")
    text = " ".join(result.stdout.split())
    assert "validation rows, 3-NN errs on" in text and "by cosine" in text
    assert load("model.sw").learner in ("euclidean", "cosine", "lda", "lmnn", "gcosla", "sila")


def test_fit_without_scaling_or_rows_held_out(call_json, wine):
    found = call_json("fit", "wine.csv", "--label", "class", "--learner", "lda",
                      "--scale", "none", "--hold-out", "0")  # fmt: skip
    assert not found["standardized"] and found["measured"] == {} and found["rows"] == len(wine)
    assert load("model.sw").mean is None
    found = call_json("fit", "half", "--learner", "lda", "--scale", "standard")
    assert found["rows"] == 59 and found["measured"]["rows"] == len(wine) - 59


def test_a_learner_that_does_not_help_is_called_so(call, files):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    frame["class"] = rng.integers(2, size=60)
    frame.to_csv("noise.csv", index=False)
    given = ("fit", "noise.csv", "--label", "class", "--learner", "pca")
    kept = call(*given)
    text = " ".join(kept.stdout.split())
    assert "pca learned from 48 rows" in text and "cosine against it" in text
    assert "cosine is written, since pca did not help; --keep learned writes pca." in text
    assert "warning: cosine is kept: on 12 validation rows pca errs on" in kept.stderr
    assert load("model.sw").learner == "cosine"
    assert "cosine is kept: on 12" in " ".join(call("inspect", "model.sw").stdout.split())
    asked = call(*given, "--keep", "learned")
    assert "pca does not help" in " ".join(asked.stdout.split()) and not asked.stderr
    assert load("model.sw").learner == "pca"


def test_fit_stopped_by_control_c_keeps_what_was_learned(call, monkeypatch):
    learned = LMNN.fit

    def stop(self, X, y):
        learned(self.set_params(max_iter=1), X, y)
        raise KeyboardInterrupt

    options = ("fit", "wine.csv", "--label", "class", "--learner", "lmnn")
    monkeypatch.setattr(LMNN, "fit", stop)
    assert "Interrupted: lmnn learned" in call(*options, code=130).stdout
    assert load("model.sw").learner == "lmnn"

    def at_once(self, X, y):
        raise KeyboardInterrupt

    monkeypatch.setattr(LMNN, "fit", at_once)
    result = call(*options, "--out", "none.sw", code=130)
    assert "interrupted; nothing was written" in result.stderr


def test_fit_stopped_while_it_measures_keeps_what_was_learned(call, monkeypatch):
    def stop(*work):
        raise KeyboardInterrupt

    monkeypatch.setattr("samewise.protocols.fitting.knn_correct", stop)
    text = call("fit", "wine.csv", "--label", "class", "--learner", "lda", code=130).stdout
    assert "Interrupted before the error was measured; samewise evaluate measures it" in text
    model = load("model.sw")
    assert model.learner == "lda" and model.measured == {} and model.threshold < 0


def test_the_choice_says_which_of_distance_and_cosine_is_better(call, files):
    rng = np.random.default_rng(0)
    # Only the length of a row tells its class, which the cosine does not see.
    length = np.repeat([1.0, 2.0, 3.0], 60)
    rows = np.column_stack([length, length]) + rng.normal(scale=0.05, size=(180, 2))
    pd.DataFrame(rows, columns=["a", "b"]).assign(c=length.astype(int)).to_csv("rays.csv")
    text = " ".join(call("fit", "rays.csv", "--label", "c", "--features", "a,b").stdout.split())
    assert "by cosine (the distance is better, p < 0.001)" in text


def test_evaluate_judges_by_rows_the_model_has_not_seen(call, call_json, model):
    found = call_json("evaluate", model, "wine.csv")
    assert (
        found["queries"] == 18 and found["items"] == 71 and "not trained on" in found["judged_by"]
    )
    names = [m["name"] for m in found["measured"]]
    assert names == ["euclidean", "cosine", "lda (model)"]
    measured = load(model).measured
    assert found["measured"][2]["knn_error"] == measured["errors"]["lda"]
    assert [g["mark"] for g in found["gains"]] == [
        measured["against"][b]["mark"] for b in ("euclidean", "cosine")
    ]
    text = call("evaluate", model, "wine.csv").stdout
    assert "mAP" in text and "Against cosine:" in text and "standardized rows" in text


def test_evaluate_warns_of_rows_that_were_learned_from(call, call_json, files, wine):
    call("fit", "wine.csv", "--label", "class", "--learner", "lda", "--hold-out", "0")
    text = call("evaluate", "model.sw", "wine.csv").stdout
    assert "learned from all of them, which flatters" in " ".join(text.split())
    found = call_json("evaluate", "model.sw", "wine.csv", "--test", "wine.parquet")
    assert f"learned from {len(wine)} of them" in found["judged_by"]
    wine.drop(columns="class").assign(alcohol=0.0, kind=wine["class"]).to_csv("new.csv")
    found = call_json("evaluate", "model.sw", "new.csv", "--label", "kind")
    assert "none of them is known" in found["judged_by"]


def test_evaluate_forms_learners_and_standard_splits(call_json, files, wine):
    X, y = wine.drop(columns="class").to_numpy(), wine["class"].to_numpy()
    LDA().fit(X, y).metric_.save("form")
    OASIS(n_triplets=50, random_state=0).fit(X, y).save("learner")
    for name in ("form", "learner"):
        found = call_json("evaluate", name, "half")
        assert found["queries"] == 30 and found["judged_by"] == "the test part of half"


def test_transform_writes_coordinates(call, call_json, model, files, wine):
    found = call_json("transform", model, "wine.csv", "--out", "z.csv")
    assert found["rows"] == len(wine)
    frame = pd.read_csv("z.csv")
    expected = load(model).transform(wine.drop(columns="class").to_numpy())
    np.testing.assert_allclose(frame.drop(columns="class").to_numpy(), expected)
    assert frame["class"].tolist() == wine["class"].tolist()
    shown = call("transform", model, "wine.jsonl").stdout
    assert len(shown.splitlines()) == len(wine) + 1 and shown.startswith("id,z0,z1")
    result = call("transform", model, "wine.parquet", "--out", "z.npz")
    assert "written to z.npz" in result.stderr
    np.testing.assert_allclose(np.load("z.npz")["X"], expected)


def test_search_shows_neighbors_before_and_after(call, call_json, model, wine):
    X = load(model).prepare(wine.drop(columns="class").to_numpy())
    found = call_json("search", model, "wine.csv", "--row", "17", "-k", "4")
    plain = np.linalg.norm(X - X[17], axis=1)
    assert [n["row"] for n in found["found"]["before"]] == np.argsort(plain)[1:5].tolist()
    learned = load(model).form.cross(X[[17]], X)[0]
    after = found["found"]["after"]
    assert [n["row"] for n in after] == np.argsort(learned)[1:5].tolist()
    np.testing.assert_allclose([n["value"] for n in after], np.sort(learned)[1:5])
    assert (
        after[0]["label"] == wine["class"][after[0]["row"]] and found["label"] == wine["class"][17]
    )
    assert "lda: row" in call("search", model, "wine.csv", "--row", "17").stdout
    numbers = ", ".join(map(str, wine.drop(columns="class").iloc[3]))
    by_vector = call_json("search", model, "wine.jsonl", "--vector", numbers, "-k", "1")
    assert by_vector["found"]["after"][0]["id"] == "w3"
    assert by_vector["found"]["after"][0]["value"] == pytest.approx(0, abs=1e-6)


def test_search_with_a_similarity_starts_from_the_cosine(call_json, files):
    Bilinear(np.eye(13)).save("form")
    found = call_json("search", "form", "wine.csv", "--label", "class", "--row", "0", "-k", "200")
    assert found["before"] == "cosine" and len(found["found"]["after"]) == 88
    values = [n["value"] for n in found["found"]["after"]]
    assert values == sorted(values, reverse=True)


def test_inspect(call, call_json, model, wine):
    found = call_json("inspect", model, "--top", "3")
    matrix = load(model).form.matrix
    np.testing.assert_allclose(found["spectrum"], np.linalg.eigvalsh(matrix)[::-1], atol=1e-9)
    heaviest = wine.columns[int(np.argmax(np.diag(matrix)))]
    assert found["top_features"][0]["name"] == heaviest and len(found["top_features"]) == 3
    assert found["rank"] == 2 and found["threshold"] == load(model).threshold
    text = call("inspect", model).stdout
    assert "rank 2;" in text and heaviest in text and "learned with lda" in text
    Mahalanobis.identity(2).save("form")
    assert "rank 2;" in call("inspect", "form").stdout


def test_compare(call, call_json, monkeypatch):
    options = ("compare", "wine.csv", "--label", "class", "--learners")
    monkeypatch.setattr(learner_comparison, "learn_alone", learn_here)
    found = call_json(*options, "lda")
    names = [line["learner"] for line in found["compared"]]
    assert names == ["euclidean", "cosine", "lda"] and found["judged_by"] == 27
    assert found["compared"][2]["against"].keys() == {"euclidean", "cosine"}
    assert all(line["peak_memory_bytes"] > 2**24 for line in found["compared"])
    text = call(*options, "euclidean").stdout
    assert "vs cosine" in text and "MiB" in text and "3-NN error on 27 rows" in text


def test_compare_stopped_by_control_c_shows_what_is_known(call, monkeypatch):
    def stop(name, *work, limits):
        if name == "cosine":
            raise KeyboardInterrupt
        return trials.try_learner(name, *work)

    monkeypatch.setattr(learner_comparison, "learn_alone", stop)
    compare = ("compare", "wine.csv", "--label", "class", "--learners", "lda,lmnn")
    result = call(*compare, code=130)
    said = result.stderr.splitlines()
    assert "euclidean" in result.stdout and said[-1] == "error: interrupted"
    assert len(said) == 2 and said[0].startswith("progress: euclidean: ")

    def at_once(*work, limits):
        raise KeyboardInterrupt

    monkeypatch.setattr(learner_comparison, "learn_alone", at_once)
    result = call(*compare, code=130)
    assert result.stdout == "" and result.stderr == "error: interrupted\n"


def test_control_c_in_a_terminal_leaves_no_traceback_of_any_process(files):
    # The terminal sends it to all of them; those that learn are just loading their libraries.
    code = "import samewise.cli.compare, samewise.cli; print(flush=True); samewise.cli.main()"
    command = [sys.executable, "-c", code, "compare", "wine.csv", "--label", "class"]
    command += ["--learners", "lda,lmnn"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}

    def heed() -> None:
        # Where the tests run in the background, the signal would be ignored.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    options = {"start_new_session": True, "preexec_fn": heed}
    with subprocess.Popen(command, **options, **pipes) as process:
        process.stdout.readline()
        time.sleep(1)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert process.stderr.read() == b"error: interrupted\n"


def test_commands_are_listed_as_they_describe_themselves(call):
    for name, said in _COMMANDS.items():
        module = name.replace("-", "_")
        command = getattr(import_module(f"samewise.cli.{module}"), module)
        assert " ".join(command.__doc__.split("\n\n")[0].split()) == said
        assert name in call("--help").stdout
    assert "Did you mean 'compare'" in call("comparre", code=2).stderr


def test_commands_are_listed_without_loading_libraries():
    code = "import sys, samewise.cli\ntry: samewise.cli.main()\nfinally: print(*sys.modules)"
    command = [sys.executable, "-c", code, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "filter" in loaded and not {"numpy", "sklearn", "pandas", "numba"} & set(loaded)


def test_control_c_while_libraries_load(call, monkeypatch):
    def interrupted(name):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(app_module, "import_module", interrupted)
        assert call("fit", "wine.csv", code=130).stderr == ""

    class Loading:
        def __getattr__(self, name):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "samewise.cli.app", Loading())
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 130


def test_datasets(call, call_json, files, monkeypatch):
    text = call("datasets").stdout
    assert "half" in text and str(files / "data") in text.replace("\n", "")
    assert call_json("datasets")["datasets"] == ["breast_cancer", "digits", "half", "iris", "wine"]
    assert re.search(r"half +.? *here", text) and re.search(r"wine +.? *scikit-learn", text)
    assert re.search(r"mnist +.? *fetch +.? *CC BY-SA 3.0.* 70,000", text)
    assert "half: 89 rows, 13 features, 3 classes; 59 rows" in call("datasets", "half").stdout
    call("datasets", "export", "half", "half.csv")
    assert pd.read_csv("half.csv").shape == (89, 14)
    call("datasets", "export", "half", "half_copy.npz")
    assert np.load("half_copy.npz")["train"].sum() == 59
    assert "similar names: half" in call("datasets", "halv", code=1).stderr
    assert "Name a data set and a file" in call("datasets", "export", "half", code=1).stderr
    call("datasets", "export", "wine", "wine.csv")
    wine = pd.read_csv("wine.csv")
    assert wine.shape == (178, 14) and [*wine.columns[[0, -1]]] == ["alcohol", "class"]
    monkeypatch.setenv("SAMEWISE_DATA", str(files / "nowhere"))
    text = call("datasets").stdout
    assert "not a directory" in text and "SAMEWISE_DATA" in text


def test_datasets_are_fetched(call, call_json, files, monkeypatch):
    iris = load_iris()
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: iris)
    assert "iris: 150 rows, 4 features, 3 classes" in call("datasets", "fetch", "iris").stdout
    assert (files / "data" / "iris.npz").is_file()
    assert call_json("datasets", "fetch", "iris")["rows"] == 150
    assert call_json("fit", "iris", "--learner", "lda", "--out", "iris.sw")["features"] == 4

    def offline(**_):
        raise URLError("no route to host")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    said = call("datasets", "fetch", "wine", code=1).stderr
    assert said.startswith("error: The data set 'wine' could not be fetched from OpenML (")
    assert "Check the network connection" in said
    assert "did you mean 'wine'?" in call("datasets", "fetch", "vine", code=1).stderr
    assert "to fetch, or all: balance_" in call("datasets", "fetch", code=1).stderr
    assert "'iris' is one word too many" in call("datasets", "wine", "iris", code=1).stderr
    assert "one word too many" in call("datasets", "fetch", "wine", "wine.csv", code=1).stderr


def test_fetching_all_goes_on_where_it_stopped(call, call_json, files, monkeypatch):
    asked = []

    def fetch_openml(data_id, **_):
        asked.append(data_id)
        if len(asked) == 3:
            raise URLError("gone")
        return load_iris()

    texts = Bunch(data=["a", "b"], target=[1, 0], target_names=["x", "y"])
    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", lambda **_: texts)
    assert "could not be fetched" in call("datasets", "fetch", "all", code=1).stderr
    assert len(call_json("datasets", "fetch", "all")["fetched"]) == len(FETCHED) - 2
    assert len(asked) == len(set(asked)) + 1 == len(OPENML) + 1
    assert call_json("datasets", "fetch", "all")["fetched"] == []
    news = dataset("news20_bydate")
    assert news.data == ["a", "b"] * 2 and news.train.tolist() == [True, True, False, False]


def test_the_version_is_shown(call):
    assert call("--version").stdout == f"samewise {samewise.__version__}\n"


def test_learners_are_those_of_the_catalog(call, call_json):
    listed = call_json("learners")["learners"]
    assert [each["class"] for each in listed] == [entry.name for entry in LEARNERS]
    assert {each["name"] for each in listed} - {""} == set(BY_COMMAND)
    assert all(each["summary"].endswith(".") for each in listed)
    text = call("learners").stdout
    assert re.search(r"lmnn +.? *LMNN +.? *labels +.? *distance +.? *Large margin", text)
    assert re.search(r"rbs +.? *RBS \*", text)


def test_a_shell_completes_commands():
    asked = {"_SAMEWISE_COMPLETE": "complete_bash", "COMP_WORDS": "samewise ins", "COMP_CWORD": "1"}
    done = subprocess.run(MAIN, env={**os.environ, **asked}, capture_output=True, text=True)
    assert done.stdout.split() == ["inspect"], done.stderr


_WITHOUT_RESOURCE = """
import sys
sys.modules["resource"] = None
import samewise
from samewise.cli import main
sys.argv = ["samewise", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize(
    "command",
    [
        ["fit", "wine.csv", "--label", "class", "--learner", "lda", "--out", "out.sw"],
        ["compare", "wine.csv", "--label", "class", "--learners", "lda"],
    ],
    ids=["fit", "compare"],
)
def test_without_the_module_resource(files, command):
    """As on Windows, which has no such module."""
    arguments = [sys.executable, "-c", _WITHOUT_RESOURCE, *command]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, cwd=files)
    assert "3-NN error on" in done.stdout
    if command[0] == "fit":
        assert (files / "out.sw").is_file()


def test_where_the_system_tells_no_memory_nothing_is_shown(monkeypatch):
    monkeypatch.setitem(sys.modules, "resource", None)
    monkeypatch.setattr(Path, "read_text", lambda *_: "")
    assert trials._peak() is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "nothing.csv", "--label", "c"], "there is no file nothing.csv; check the path"),
        (["fit", "wine.csv", "--label", "clas"], "did you mean 'class'?"),
        (["fit", "wine.csv", "--label", "hue", "--drop", "class"], "holds fractions"),
        (["fit", "wine.csv", "--label", "proline"], "'class' of wine.csv holds text"),
        (["fit", "wine.csv"], "Say which column of wine.csv holds the labels"),
        (["fit", "wine.csv", "--drop", "class"], "Say which column of wine.csv holds the labels"),
        (["fit", "one.csv", "--label", "class"], "one class"),
        (["fit", "wine.csv", "--label", "class", "--learner", "lmn"], "did you mean 'lmnn'"),
        (["fit", "wine.csv", "--learner", "lmnn", "--params", "kk=2"], "no parameter 'kk'"),
        (["fit", "wine.csv", "--learner", "lmnn", "--params", "kk"], "must be key=value"),
        (["fit", "wine.csv", "--learner", "lmnn", "--params", "{"], "no JSON object"),
        (["fit", "wine.csv", "--params", "k=2"], "belong to one learner"),
        (["fit", "wine.csv", "--label", "class", "--out", "no/where.sw"], "no folder"),
        (["fit", "wine.csv", "--label", "class", "--out", "data"], "data is a folder"),
        (["fit", "data", "--label", "class"], "data is a folder; name a file"),
        (["fit", "empty.csv", "--label", "class"], "is empty; a line with the names"),
        (["fit", "latin.csv", "--label", "class"], "save it as UTF-8"),
        (["fit", "latin.jsonl", "--label", "class"], "save it as UTF-8"),
        (["evaluate", "data", "wine.csv"], "data is a folder; give a file that samewise fit wrote"),
        (["evaluate", "empty.csv", "wine.csv"], "is empty; give a file that samewise fit wrote"),
        (["evaluate", "wine.csv", "small.sw"], "samewise file; give a file that"),
        (["evaluate", "small.sw", "two.csv", "--label", "c", "-k", "9"], "-k 9 asks for more"),
        (["report", "small.sw", "two.csv", "--label", "c", "-k", "9"], "-k 9 asks for more"),
        (["compare", "two.csv", "--label", "c", "-k", "9"], "-k 9 asks for more"),
        (["report", "small.sw", "two.csv", "--out", "data"], "data is a folder"),
        (["transform", "small.sw", "two.csv", "--out", "no/z.npz"], "There is no folder"),
        (["datasets", "export", "half", "no/half.csv"], "There is no folder"),
        (["search", "small.sw", "two.csv", "--label", "c", "--vector", "1,nan"], "must be finite"),
        (["search", "small.sw", "two.csv", "--label", "c", "--vector", ""], "must be finite"),
        (["evaluate", "wine.csv", "wine.csv"], "is not a samewise file"),
        (["evaluate", "nothing.sw", "wine.csv"], "there is no file nothing.sw"),
        (["evaluate", "filter.sw", "wine.csv"], "holds a TopicFilter, which has no metric"),
        (["evaluate", "small.sw", "wine.csv", "--label", "class"], "learned from 2 features"),
        (["transform", "bilinear.sw", "wine.csv", "--drop", "class"], "no coordinates"),
        (["transform", "small.sw", "wine.csv", "--out", "z.xls"], "none of the endings"),
        (["search", "small.sw", "wine.csv"], "either --row or --vector"),
        (["search", "small.sw", "two.csv", "--label", "c", "--vector", "1,b"], "must be numbers"),
        (["search", "small.sw", "two.csv", "--label", "c", "--row", "9"], "there is no row 9"),
        (["inspect", "broken.sw"], "is truncated"),
        (["compare", "wine.csv", "--label", "class", "--learners", "x,lda"], "no learner 'x'"),
    ],
)
def test_errors_are_one_sentence_with_the_remedy(call, files, wine, arguments, message):
    wine.assign(**{"class": "a"}).to_csv("one.csv", index=False)
    two = {"a": [1.0, 2.0] * 4, "b": [3.0, 1.0] * 4, "c": ["x", "y"] * 4}
    pd.DataFrame(two).to_csv("two.csv", index=False)
    (files / "empty.csv").touch()
    (files / "latin.csv").write_bytes("größe,class\n1,a\n".encode("latin-1"))
    (files / "latin.jsonl").write_bytes('{"vector": [1], "class": "ö"}\n'.encode("latin-1"))
    Mahalanobis.identity(2).save("small.sw")
    Bilinear(np.eye(13)).save("bilinear.sw")
    TopicFilter().fit({"a": "some words"}).save("filter.sw")
    (files / "broken.sw").write_bytes((files / "small.sw").read_bytes()[:-3])
    result = call(*arguments, code=1)
    assert message in result.stderr and result.stderr.count("\n") == 1
    assert result.stderr.startswith("error: ") and "Traceback" not in result.stderr
    result = call(*arguments, "--json", code=1)
    assert message in json.loads(result.stderr)["error"] and result.stdout == ""


def test_a_folder_that_cannot_be_written_to_is_told_before_learning(call, monkeypatch):
    def refuse(**folder):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    monkeypatch.delattr(LMNN, "fit")
    result = call("fit", "wine.csv", "--label", "class", "--learner", "lmnn", code=1)
    assert "Nothing can be written to the folder" in result.stderr
    assert "Permission denied" in result.stderr


def test_too_little_memory_is_told_too(call, monkeypatch):
    def refuse(self, X, y):
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr(LMNN, "fit", refuse)
    result = call("fit", "wine.csv", "--label", "class", "--learner", "lmnn", code=1)
    assert "not enough memory (Unable to allocate 9 TiB); give fewer rows" in result.stderr


def test_a_data_set_is_found_beside_a_folder_of_its_name(call_json, files):
    (files / "half").mkdir()
    assert call_json("fit", "half", "--learner", "lda")["rows"] == 59


def test_wrong_usage_and_tracebacks(call):
    call("fit", code=2)
    call("fit", "wine.csv", "--hold-out", "2", code=2)
    call("nonsense", code=2)
    result = call("fit", "nothing.csv", "--debug", code=1)
    assert isinstance(result.exception, FileNotFoundError)


@pytest.mark.parametrize(
    "command",
    "fit evaluate transform search inspect compare datasets filter report ask teach".split(),
)
def test_help_has_an_example(call, command):
    assert f"Example: samewise {command}" in " ".join(call(command, "--help").stdout.split())


def test_pipes(files, wine):
    def run(*arguments, **more):
        done = subprocess.run([*MAIN, *arguments], capture_output=True, check=True, **more)
        assert b"\x1b" not in done.stdout + done.stderr
        return done

    text = (files / "wine.csv").read_bytes()
    fit = ("fit", "-", "--label", "class", "--learner", "lda", "--json")
    assert json.loads(run(*fit, input=text).stdout)["rows"] == 71
    embedded = run("transform", "model.sw", "-", input=text)
    assert embedded.stdout.startswith(b"z0,z1") and embedded.stderr == b""
    shown = run("evaluate", "model.sw", "-", input=text)
    assert "│ lda (model)" in shown.stdout.decode() and shown.stderr == b""


def test_a_reader_that_has_enough(files, model):
    # So few rows that they are all still in the buffer at the end.
    command = [*MAIN, "transform", model, "wine.csv"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.wait(timeout=60) == 1
        assert process.stderr.read() == b""


@pytest.mark.parametrize("width", [40, 80])
def test_tables_in_narrow_terminals_keep_all_numbers(capsys, monkeypatch, width):
    monkeypatch.setattr(console, "_console", lambda: Console(width=width))
    headers = ["", "3-NN error", "SkNN error", "P@1", "P@5", "P@10", "mAP", "verification error"]
    cells = [
        "lmnn (model)",
        "10.25 %",
        "11.25 %",
        "0.9725",
        "0.9444",
        "0.9056",
        "0.8255",
        "25.15 %",
    ]
    console.show_table(headers, [cells])
    text = capsys.readouterr().out
    assert "…" not in text and all(cell in text for cell in cells)
    assert all(word in text for header in headers for word in header.split())
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("absent", ["typer", "rich", "pandas"])
def test_what_is_not_installed_is_named(absent):
    code = f"""
import sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
from samewise.cli import main
main()
"""
    command = [sys.executable, "-c", code, "fit", "x.csv"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "error: the command samewise needs pip install 'samewise[cli]'\n"
