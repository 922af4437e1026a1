import contextlib
import io
from html import unescape

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from demo import text
from demo.pairs import main
from demo.study import DRAWS, FROM_LABELS, FROM_PAIRS, PER_CLASS, load_split, small_stores

PAIRS = 4000


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "report.html"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        study = main(["--out", str(out), "--pairs", str(PAIRS)])
    return study, out, printed.getvalue()


def test_table_has_a_line_for_each_metric(ran):
    study, out, printed = ran
    assert [row.metric for row in study.table] == ["Euclidean", "cosine", FROM_PAIRS, FROM_LABELS]
    for row in study.table:
        for error in (row.knn_error, row.few_error, row.verification_error):
            assert 0 < error < 0.5
        assert all(cell in printed for cell in text.cells(row))
    assert all(column in printed for column in text.COLUMNS)
    assert printed.endswith(f"report written to {out}\n")


def test_only_learned_metrics_take_time(ran):
    study = ran[0]
    assert study.row("Euclidean").training_seconds is None
    assert study.row("cosine").training_seconds is None
    assert study.row(FROM_PAIRS).training_seconds > 0
    assert study.row(FROM_LABELS).training_seconds > 0
    assert study.learner.n_seen_ == PAIRS


def test_learning_helps_verification_and_small_stores(ran):
    study = ran[0]
    before, after = study.row("Euclidean"), study.row(FROM_PAIRS)
    assert after.verification_error < 0.7 * before.verification_error
    assert after.few_error < before.few_error
    assert study.row(FROM_LABELS).few_error < before.few_error


def test_report_shows_the_table_and_the_findings(ran):
    study, out, _ = ran
    shown = unescape(out.read_text(encoding="utf-8")).replace("\xa0", " ")
    for row in study.table:
        assert all(f">{cell}</" in shown for cell in text.cells(row))
    assert all(sentence in shown for sentence in text.findings(study) + text.conditions(study))
    assert text.code(study) in shown


def test_the_code_to_copy_gives_the_numbers_of_the_table(ran):
    study = ran[0]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(text.code(study), {})
    values = [float(line.split()[-1]) for line in printed.getvalue().splitlines()]
    learned = study.row(FROM_PAIRS)
    np.testing.assert_allclose(values, [learned.verification_error, learned.knn_error])


def test_trajectory_ends_where_the_learner_does(ran):
    study = ran[0]
    updates, form = study.trajectory[-1]
    assert updates == study.learner.n_updates_
    np.testing.assert_allclose(form.matrix, study.learner.metric_.matrix, atol=1e-10)
    ranks = [form.effective_rank() for _, form in study.trajectory]
    assert ranks[0] <= 1 < ranks[-1]


def test_split_keeps_test_images_apart():
    split = load_split()
    train = {row.tobytes() for row in split.X_train}
    assert not any(row.tobytes() in train for row in split.X_test)
    assert len(split.X_test) + len(split.X_train) == 1797


def test_small_stores_hold_as_many_of_each_class():
    y = load_split().y_train
    stores = small_stores(y)
    assert len(stores) == DRAWS
    for store in stores:
        assert len(np.unique(store)) == len(store)
        assert np.bincount(y[store]).tolist() == [PER_CLASS] * 10


@pytest.mark.parametrize("pairs", ["999", "40001", "many", "-5"])
def test_stream_length_is_checked(pairs, capsys):
    with pytest.raises(SystemExit):
        main([f"--pairs={pairs}"])
    assert f"expected a whole number from 1000 to 40000, got '{pairs}'" in capsys.readouterr().err
