"""The commands, over generated files: exit code 0 or 1 and a sentence, never a traceback."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("typer")
pytest.importorskip("pandas")
from typer.testing import CliRunner

from samewise import LDA, Mahalanobis, Model
from samewise.cli.app import app
from tests.hostile.outcomes import Refusal, attempt
from tests.hostile.strategies import labels, n_rows, rows, tame_rows, texts

names = st.sampled_from(
    ["a", "b", "class", "[/b]", "$x$", "", "é", "a b", "\u2028", "=1+1", "\x1b[31m"]
)
cells = st.sampled_from(
    ["0", "1", "2.5", "-3", "1e300", "inf", "nan", "", "x", "[/b]", "2020-01-01"]
)
cells |= st.sampled_from(["9" * 400, '"', "'", "True", "\t", "\x00", "\ud800", "1,5", "=cmd()"])


def run(*arguments, shown=()):
    """Run a command in this process: 0 or 1, and a sentence with 1; 2 is wrong usage."""

    def call():
        result = CliRunner().invoke(app, [str(each) for each in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code in (0, 1, 2), result.output
        if result.exit_code:
            assert result.stderr.strip(), "no sentence"
        assert "Traceback" not in result.output
        assert "\x1b" not in result.output, "control characters reached the terminal"
        return result

    result = attempt(call, arguments, *shown)
    assert not isinstance(result, Refusal), "what is wrong must be said by the command"
    return result


@st.composite
def tables(draw):
    """Lines of cells, mostly as long as the header."""
    header = [*draw(st.lists(names, min_size=1, max_size=3, unique=True)), "class"]
    plain = st.sampled_from(["0", "1", "2.5", "-3"])
    width = st.just(len(header)) | st.integers(0, 4)
    wild = draw(st.booleans())
    row = width.flatmap(lambda n: st.lists(cells if wild else plain, min_size=n, max_size=n))
    table = [header, *draw(st.lists(row, max_size=9))]
    return "\n".join(",".join(each) for each in table)


@given(
    table=tables(),
    learner=st.sampled_from(["lda", "euclidean", "pa", "[/b]"]),
    as_json=st.booleans(),
)
def test_fit_any_table(table, learner, as_json, tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "m.sw"
    path.write_text(table, encoding="utf-8", errors="surrogatepass")
    out.unlink(missing_ok=True)
    more = ["--json"] if as_json else []
    given = ("--label", "class", "--learner", learner, "--hold-out", "0", "--out", out)
    result = run("fit", path, *given, *more, shown=(table,))
    assert out.exists() == (result.exit_code == 0)
    if out.exists():
        run("inspect", out)
        run("transform", out, path, "--out", tmp_path / "z.csv")
        run("search", out, path, "--row", 0)


@given(data=st.data())
def test_fit_any_arrays(data, tmp_path):
    X = data.draw(tame_rows(layouts=("C", "float32", "Fortran")) | rows(layouts=("C", "float16")))
    y = data.draw(labels(n_rows(X)))
    other = st.sampled_from([np.array(None), np.zeros((2, 2, 2)), np.array(["x"]), np.float64(3)])
    arrays = {"X": X, "y": np.zeros(3) if y is None else np.asarray(y)}
    if data.draw(st.integers(0, 3)) == 0:
        arrays[data.draw(st.sampled_from(["X", "y", "feature_names", "z"]))] = data.draw(other)
    np.savez(tmp_path / "t.npz", **arrays)
    given = ("--learner", "lda", "--hold-out", "0", "--out", tmp_path / "m.sw")
    run("fit", tmp_path / "t.npz", *given, shown=(arrays,))


entries = st.fixed_dictionaries(
    {},
    optional={
        "vector": st.lists(st.sampled_from([0, 1, 2.5, None, "x", 1e400, 10**400]), max_size=3),
        "class": st.sampled_from(["u", "v", 3, None, [], {}]) | texts,
        "id": st.sampled_from(["i", 3]) | texts,
    },
)
odd_lines = st.sampled_from(["", "{", "[" * 5000, "3", "null", '{"vector": NaN}', "\u2028"])


@given(lines=st.lists(entries.map(json.dumps) | odd_lines, max_size=6))
def test_fit_any_lines(lines, tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8", errors="surrogatepass")
    given = ("--label", "class", "--learner", "lda", "--hold-out", "0", "--out", tmp_path / "m.sw")
    run("fit", path, *given, shown=(lines,))


@given(data=st.data())
def test_any_table_with_a_model(data, tmp_path):
    model = tmp_path / "model.sw"
    form = data.draw(
        st.sampled_from(
            [Mahalanobis.identity(2), LDA().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])]
        )
    )
    names_ = tuple(data.draw(st.lists(names, min_size=2, max_size=2, unique=True)))
    (Model(form, feature_names=names_) if isinstance(form, Mahalanobis) else form).save(model)
    path = tmp_path / "t.csv"
    table = data.draw(tables())
    path.write_text(table, encoding="utf-8", errors="surrogatepass")
    for command in (
        ["inspect", model],
        ["transform", model, path],
        ["evaluate", model, path, "--label", "class"],
    ):
        run(*command, shown=(names_, table))


topics_texts = st.lists(st.fixed_dictionaries({"id": texts, "title": texts}), max_size=3).map(
    json.dumps
)
documents = st.lists(
    st.fixed_dictionaries({"text": texts}, optional={"id": texts}).map(json.dumps) | odd_lines,
    max_size=6,
)


@given(
    topics=topics_texts | st.sampled_from(['[{"id": "a", "title": "cocoa"}]', "[", ""]),
    lines=documents,
)
def test_filter_any_documents(topics, lines, tmp_path):
    (tmp_path / "topics.json").write_text(topics, encoding="utf-8", errors="surrogatepass")
    path = tmp_path / "documents.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8", errors="surrogatepass")
    run("filter", "--topics", tmp_path / "topics.json", "--documents", path, shown=(topics, lines))
