"""What the pictures show: data of lines, numbers of patches, labels; and what is refused."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

from samewise import (
    LMNN,
    POLA,
    Bilinear,
    GeneralizedCosine,
    Mahalanobis,
    MultiMetric,
    Pairs,
    PassiveAggressive,
    margins,
    plots,
)
from samewise.exceptions import DegenerateInputError, InvalidInputError


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(scope="module")
def online(pairs):
    return PassiveAggressive().fit(pairs)


@pytest.fixture(scope="module")
def batch(labeled):
    return LMNN(1).fit(*labeled)


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# Where things are drawn


def test_without_axes_the_current_ones_are_taken(labeled):
    from matplotlib import pyplot

    pyplot.switch_backend("Agg")
    figure, ax = pyplot.subplots()
    try:
        assert plots.spectrum(Mahalanobis.identity(3)) is ax
    finally:
        pyplot.close(figure)


def test_importing_plots_imports_no_matplotlib():
    code = "import samewise.plots, sys; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_everything_is_in_the_public_list():
    assert set(plots.__all__) == {
        "class_ellipses",
        "learning_curve",
        "margin_histogram",
        "matrix_heatmap",
        "neighbor_grid",
        "pair_histograms",
        "precision_curves",
        "predictive_error_curve",
        "projection",
        "rank_curve",
        "spectrum",
    }


# Pairs


def test_pair_histograms_hold_all_pairs_of_each_kind(ax, pairs):
    form = Mahalanobis(np.diag([1.0, 0, 2, 0, 1]))
    assert plots.pair_histograms(form, pairs, bins=7, ax=ax) is ax
    values = form.pairs(pairs.X[pairs.left], pairs.X[pairs.right])
    edges = np.histogram_bin_edges(values, 7)
    for n, sign in enumerate((1, -1)):
        counts = np.histogram(values[pairs.y == sign], edges)[0]
        drawn = ax.patches[n].get_path().vertices
        assert drawn[:, 1].max() == pytest.approx(100 * counts.max() / (pairs.y == sign).sum())
        assert drawn[:, 0].min() == pytest.approx(edges[0])
        assert drawn[:, 0].max() == pytest.approx(edges[-1])
    assert legend(ax) == ["similar pairs", "dissimilar pairs"]


def test_kinds_of_pairs_differ_without_color(ax, pairs):
    plots.pair_histograms(None, pairs, ax=ax)
    similar, dissimilar = ax.patches[:2]
    assert similar.get_fill() and not dissimilar.get_fill()
    assert dissimilar.get_hatch() and not similar.get_hatch()


@pytest.mark.parametrize(
    ("form", "name", "at"),
    [(None, "distance", 2.5), (GeneralizedCosine(np.eye(5)), "similarity", -2.5)],
)
def test_threshold_is_on_the_scale_of_closeness(ax, pairs, form, name, at):
    plots.pair_histograms(form, pairs, threshold=-2.5, ax=ax)
    assert ax.get_xlabel() == name
    assert list(ax.lines[0].get_xdata()) == [at, at]


def test_pairs_of_one_kind_are_refused(ax, pairs):
    with pytest.raises(InvalidInputError, match="only one of the two kinds"):
        plots.pair_histograms(None, pairs[pairs.y > 0], ax=ax)
    with pytest.raises(InvalidInputError, match="draws Pairs; got list"):
        plots.pair_histograms(None, [[0, 1]], ax=ax)
    with pytest.raises(InvalidInputError, match=r"bins must be an integer of at least 1. Got 0"):
        plots.pair_histograms(None, pairs, bins=0, ax=ax)
    assert not ax.patches


def test_sparse_pairs_look_like_dense_ones(sparse_pairs):
    tops = []
    for pairs in sparse_pairs:
        ax = plots.pair_histograms(None, pairs, ax=Figure().subplots())
        tops.append([patch.get_path().vertices for patch in ax.patches])
    for one, other in zip(*tops, strict=True):
        np.testing.assert_allclose(one, other)


# Curves


def test_learning_curve_of_a_stream_adds_up_to_its_loss(ax, online):
    plots.learning_curve(online, n_windows=13, ax=ax)
    x, y = ax.lines[0].get_data()
    assert len(x) == 13 and x[-1] == online.n_seen_
    assert (y * np.diff(x, prepend=0)).sum() == pytest.approx(online.loss_)
    assert ax.get_ylabel() == "mean hinge loss"


def test_learning_curve_of_a_batch_learner_is_its_loss(ax, batch):
    plots.learning_curve(batch, ax=ax)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), batch.history_["loss"])
    assert ax.get_xlabel() == "iteration"


def test_predictive_error_is_that_of_all_so_far_or_of_stretches(online):
    whole = plots.predictive_error_curve(online, ax=Figure().subplots()).lines[0]
    history = online.history_
    np.testing.assert_allclose(whole.get_ydata(), 100 * history["mistakes"] / history["rounds"])
    parts = plots.predictive_error_curve(online, n_windows=8, ax=Figure().subplots()).lines[0]
    x, y = parts.get_data()
    assert (y / 100 * np.diff(x, prepend=0)).sum() == pytest.approx(online.n_mistakes_)


def test_more_windows_than_rounds_are_rounds(ax, pairs):
    learner = PassiveAggressive().fit(pairs[:5])
    plots.learning_curve(learner, n_windows=40, ax=ax)
    assert list(ax.lines[0].get_xdata()) == [1, 2, 3, 4, 5]


def test_curves_on_the_same_axes_differ_without_color(ax, online):
    for label in ("one", "two", "three"):
        plots.learning_curve(online, label=label, ax=ax)
    looks = {(line.get_linestyle(), line.get_marker()) for line in ax.lines}
    assert len(looks) == 3
    assert legend(ax) == ["one", "two", "three"]


def test_what_has_no_curve_is_refused(ax, batch):
    with pytest.raises(InvalidInputError, match="LMNN learns in batch"):
        plots.predictive_error_curve(batch, ax=ax)
    with pytest.raises(InvalidInputError, match="object has no history_ of its loss"):
        plots.learning_curve(object(), ax=ax)


def test_rank_curve_has_the_effective_ranks(ax, pairs):
    learner, updates, forms = POLA(), [], []
    for start in range(0, 40, 4):
        learner.partial_fit(pairs[start : start + 4])
        updates.append(learner.n_updates_)
        forms.append(learner.metric_)
    plots.rank_curve(updates, forms, ax=ax)
    x, y = ax.lines[0].get_data()
    assert list(x) == updates
    assert list(y) == [np.linalg.matrix_rank(form.matrix, hermitian=True) for form in forms]


def test_rank_curve_refuses_what_has_no_rank(ax):
    with pytest.raises(InvalidInputError, match="one form for each number of updates"):
        plots.rank_curve([1, 2], [Mahalanobis.identity(2)], ax=ax)
    with pytest.raises(InvalidInputError, match=r"Mahalanobis forms.*Got Bilinear"):
        plots.rank_curve([1], [Bilinear(np.eye(2))], ax=ax)


# Matrices


@pytest.mark.parametrize(
    ("form", "shares"),
    [
        (Mahalanobis(np.diag([1.0, 3.0, 0.0])), [75, 25, 0]),
        (Mahalanobis.from_components([[2.0, 0.0, 0.0]]), [100, 0, 0]),
        (GeneralizedCosine(np.diag([1.0, 1.0])), [50, 50]),
        (Bilinear([[0.0, -3.0], [1.0, 0.0]]), [75, 25]),
        (Mahalanobis(np.zeros((2, 2))), [0, 0]),
    ],
)
def test_spectrum_has_all_directions(ax, form, shares):
    plots.spectrum(form, ax=ax)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), shares)


def test_a_second_spectrum_fits_on_the_axes(ax):
    plots.spectrum(Mahalanobis.identity(10), label="flat", ax=ax)
    plots.spectrum(Mahalanobis.from_components(np.eye(10)[:1]), label="steep", ax=ax)
    assert ax.get_ylim()[0] == 0 and ax.get_ylim()[1] >= 100


def test_heatmap_shows_the_matrix_on_a_scale_with_zero_in_the_middle(ax):
    W = np.array([[1.0, -3.0], [0.5, 2.0]])
    plots.matrix_heatmap(Bilinear(W), feature_names=["length", "a" * 30], ax=ax)
    image = ax.images[0]
    np.testing.assert_array_equal(image.get_array(), W)
    assert image.get_clim() == (-3, 3)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["length", "a" * 15 + "…"]
    luminance = image.get_cmap()(np.linspace(0, 1, 20))[:, :3] @ [0.299, 0.587, 0.114]
    assert (np.diff(luminance) > 0).all(), "lighter is larger, also in gray"


def test_few_huge_entries_do_not_hide_the_others(ax):
    M = np.eye(30)
    M[0, 0] = 1e6
    plots.matrix_heatmap(Mahalanobis(M), ax=ax)
    assert ax.images[0].get_clim() == (0, 1)


def test_what_has_no_single_matrix_is_refused(ax):
    many = MultiMetric([[[1.0]], [[2.0]]], classes=["a", "b"])
    for draw in (plots.spectrum, plots.matrix_heatmap):
        with pytest.raises(InvalidInputError, match="MultiMetric has a matrix for each group"):
            draw(many, ax=ax)
        with pytest.raises(InvalidInputError, match=r"A form with a matrix.*Got str"):
            draw("metric", ax=ax)
    with pytest.raises(InvalidInputError, match=r"shape is \(2, 2\). Got 1 names"):
        plots.matrix_heatmap(Bilinear(np.eye(2)), feature_names=["x"], ax=ax)


# Margins


def test_margin_histogram_says_how_many_are_not_positive(ax, labeled):
    values = margins(None, *labeled)
    plots.margin_histogram(None, *labeled, bins=11, label="before", ax=ax)
    plots.margin_histogram(Mahalanobis(np.diag([0, 0, 1.0, 1, 0])), *labeled, label="after", ax=ax)
    share = 100 * np.mean(values <= 0)
    assert legend(ax)[0] == f"before: {share:.1f} % not positive"
    top = 100 * np.histogram(values, 11)[0].max() / len(values)
    assert ax.patches[0].get_path().vertices[:, 1].max() == pytest.approx(top)
    assert ax.patches[0].get_linestyle() != ax.patches[1].get_linestyle()


def test_margins_that_do_not_exist_are_refused(ax):
    with pytest.raises(DegenerateInputError, match="No example has another one of its class"):
        plots.margin_histogram(None, [[0.0], [1.0]], [0, 1], ax=ax)
    with pytest.raises(InvalidInputError, match="at least two classes"):
        plots.margin_histogram(None, [[0.0], [1.0]], [0, 0], ax=ax)


# The plane


@pytest.mark.parametrize("form", [None, Mahalanobis(np.diag([3.0, 0, 1, 0, 0]))])
def test_projection_keeps_the_distances_that_two_directions_can(ax, labeled, form):
    X, y = labeled
    plots.projection(form, X, y, ax=ax)
    points = np.concatenate([np.asarray(c.get_offsets()) for c in ax.collections])
    E = X if form is None else form.embed(X)
    variances = np.linalg.svd(E - E.mean(axis=0), compute_uv=False)[:2] ** 2
    np.testing.assert_allclose((points**2).sum(axis=0), variances)
    assert [len(c.get_offsets()) for c in ax.collections] == np.bincount(y).tolist()
    assert [t.get_text() for t in ax.texts] == ["0", "1", "2"]
    markers = {c.get_paths()[0].vertices.tobytes() for c in ax.collections}
    assert len(markers) == 3, "classes differ without color"


def test_projection_of_sparse_rows_and_of_rank_one(ax, labeled):
    X, y = labeled
    form = Mahalanobis.from_components([[1.0, 0, 0, 0, 0]])
    plots.projection(form, sp.csr_array(X), y, ax=ax)
    assert all(np.asarray(c.get_offsets())[:, 1].any() == 0 for c in ax.collections)


def test_projection_refuses_forms_without_embedding_and_wrong_labels(ax, labeled):
    X, y = labeled
    with pytest.raises(InvalidInputError, match="Bilinear has no embedding"):
        plots.projection(Bilinear(np.eye(5)), X, y, ax=ax)
    with pytest.raises(InvalidInputError, match="one label for each of the 60 rows of X"):
        plots.projection(None, X, y[:-1], ax=ax)
    with pytest.raises(InvalidInputError, match="NaN"):
        plots.projection(None, np.full((2, 2), np.nan), [0, 1], ax=ax)


def test_ellipses_are_what_the_metrics_make_of_a_circle(ax):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) * [5.0, 1.0]
    y = np.repeat(["a", "b"], 20)
    X[y == "b"] += [10, 0]
    form = MultiMetric([np.diag([4.0, 1.0]), np.diag([1.0, 2.0])], classes=["a", "b"])
    plots.class_ellipses(form, X, y, ax=ax)
    a, b = ax.patches
    assert a.get_width() / a.get_height() == pytest.approx(4)
    assert b.get_width() / b.get_height() == pytest.approx(2)
    assert a.get_width() / b.get_width() == pytest.approx(2), "one scale for all"
    # The long axis of the first lies along the first feature, that of the second along the other.
    first = np.linalg.svd(X - X.mean(axis=0))[2][0]
    angle = np.degrees(np.arctan2(*first[::-1]))
    assert np.cos(np.radians(a.angle)) ** 2 == pytest.approx(np.cos(np.radians(angle)) ** 2)
    assert np.cos(np.radians(a.angle - b.angle)) == pytest.approx(0, abs=1e-9)
    ends = np.array(ax.lines[0].get_data()).T
    assert np.linalg.norm(ends[1] - ends[0]) == pytest.approx(a.get_width())


def test_ellipses_refuse_other_forms(ax, labeled):
    with pytest.raises(InvalidInputError, match=r"draws a MultiMetric.*Got Mahalanobis"):
        plots.class_ellipses(Mahalanobis.identity(5), *labeled, ax=ax)
    with pytest.raises(InvalidInputError, match="two or more features"):
        one = MultiMetric([[[1.0]], [[2.0]]], classes=[0, 1])
        plots.class_ellipses(one, [[0.0], [1.0]], [0, 1], ax=ax)


# Images


def test_neighbor_grid_crosses_out_wrong_neighbors():
    # Only the first pixel tells the classes apart; the second misleads the Euclidean distance.
    X = np.array([[0, 0, 0, 0], [0, 9, 0, 0], [1, 0, 0, 0], [1, 9, 0, 0]], dtype=float)
    y = np.array([0, 0, 1, 1])
    queries, wanted = np.array([[0.2, 5.0, 0, 0], [0.8, 5.0, 0, 0]]), [0, 1]
    after = Mahalanobis(np.diag([1.0, 0, 0, 0]))
    ax = plots.neighbor_grid(
        None, after, X, y, queries, wanted,
        image_shape=(2, 2), n_neighbors=2, titles=("plain", "learned"), ax=Figure().subplots(),
    )  # fmt: skip
    assert len(ax.images) == 2 * (1 + 2 + 2)
    crosses = [text for text in ax.texts if text.get_text() == "✗"]
    distances = np.linalg.norm(queries[:, None] - X, axis=2)
    wrong = sum((y[np.argsort(d)[:2]] != c).sum() for d, c in zip(distances, wanted, strict=True))
    assert wrong > 0 and len(crosses) == wrong == len(ax.patches)
    assert all(patch.get_linestyle() == "--" for patch in ax.patches)
    assert [t.get_text() for t in ax.texts if t not in crosses] == ["query", "plain", "learned"]
    np.testing.assert_allclose(ax.images[0].get_array() * 9, queries[0].reshape(2, 2))


def test_neighbor_grid_in_color_and_sparse(labeled):
    rng = np.random.default_rng(0)
    X, y = sp.csr_array(rng.random((10, 12)).round(0)), np.arange(10) % 2
    ax = plots.neighbor_grid(
        None, None, X, y, X[:2], y[:2], image_shape=(2, 2, 3), ax=Figure().subplots()
    )
    assert ax.images[0].get_array().shape == (2, 2, 3)


@pytest.mark.parametrize("shape", [(3, 3), (8,), (2, 2, 2), (2.0, 4), (0, 8)])
def test_image_shape_must_fit(ax, shape):
    X = np.zeros((4, 8))
    with pytest.raises(InvalidInputError, match=r"image_shape must be .* with 8 values in all"):
        plots.neighbor_grid(None, None, X, [0, 0, 1, 1], X, [0] * 4, image_shape=shape, ax=ax)


def test_queries_must_have_the_size_of_the_images(ax):
    with pytest.raises(InvalidInputError, match="queries have 3 features, but X has 4"):
        plots.neighbor_grid(
            None, None, np.eye(4), [0] * 4, np.eye(3), [0] * 3, image_shape=(2, 2), ax=ax
        )


# Retrieval


def test_precision_curves_are_in_percent_and_in_order(ax):
    plots.precision_curves({"a": {10: 0.5, 1: 1.0}, "b": {1: 0.75, 10: 0.25}}, ax=ax)
    assert [line.get_data()[0].tolist() for line in ax.lines] == [[1, 10]] * 2
    assert ax.lines[1].get_ydata().tolist() == [75, 25]
    assert legend(ax) == ["a", "b"]
    assert ax.lines[0].get_linestyle() != ax.lines[1].get_linestyle()


def test_no_precision_is_refused(ax):
    for nothing in ({}, {"a": {}}):
        with pytest.raises(InvalidInputError, match="at least one name"):
            plots.precision_curves(nothing, ax=ax)


def test_pairs_of_a_class_wise_metric_need_classes(ax, labeled):
    form = MultiMetric([np.eye(5)] * 3, classes=[0, 1, 2])
    with pytest.raises(InvalidInputError, match="classes of the items must be known"):
        plots.pair_histograms(form, Pairs.from_labels(*labeled, 20, random_state=0), ax=ax)
