"""Tables, scatter plots and the summary of `pola_mnist`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments._common import Rows, markdown, plots, save_figure, write_csv

CLAIMS = (
    ("pola", "euclidean", "POLA better in all 45"),
    ("pola", "rca", "POLA better in all 45"),
    ("pola", "rca_pca40", "POLA better in all but one"),
    ("pola_leading", "fda", "POLA better in all 45"),
)
"""What Figure 3 shows, and in which columns we look for it."""

BEYOND = (
    ("pola_leading", "fda_pseudo_inverse"),
    ("pola", "rca_same_pairs"),
    ("pola", "rca_pca40_same_pairs"),
    ("pola_averaged", "euclidean"),
    ("pola_averaged", "rca_pca40"),
    ("pola_3_passes", "euclidean"),
    ("pola_3_passes", "rca_pca40"),
    ("pola_3_passes_leading", "fda"),
    ("pola_20000_pairs", "euclidean"),
    ("pola_20000_pairs", "rca_pca40"),
    ("pola_nearest_pairs", "euclidean"),
    ("pola_nearest_pairs", "rca_pca40"),
    ("pola_averaged", "pola"),
)
"""Comparisons beyond the paper's protocol."""

NOTES = """\
What is confirmed: without PCA, RCA is far worse than POLA on all 45 problems; POLA on 1 000 pairs
keeps a metric of 784 dimensions usable where whitening is not; its leading eigenvectors separate
what PCA interleaves (0 and 8, also images it did not learn from; the noisy digits at SNR 0.25).

What is not: that POLA beats the Euclidean distance, RCA after PCA and FDA on (nearly) all problems.
Here it is behind each of them in the mean and on most problems.

- On two problems (3-6 and 6-7) the Euclidean distance makes no mistake here and cannot be beaten.
  The paper's baseline was probably weaker; it prints neither k nor the scale of the pixels, and its
  errors only as points of a plot.
- Both scales and both k were tried (table below). Unit length helps the Euclidean distance nearly
  as much as POLA.
- More passes over the same 1 000 pairs make the leading direction better and the whole metric
  worse. More pairs do more: 20 000, averaged, bring POLA near RCA after PCA.
- Which pairs are taken decides. Random pairs ask for a threshold that separates all pairs of one
  digit from all others; k-NN asks only for the order among the nearest. From pairs of near
  neighbors (`pola_nearest_pairs` below: three of the same and three of the other digit for each
  image, averaged hypotheses) the same algorithm beats the Euclidean distance and RCA after PCA on
  most problems, as in the paper.
- FDA depends on how the singular covariance is treated: with a small ridge it beats POLA's leading
  direction on most problems, with the plain pseudo-inverse the two are about even.
- The learner is not the reason: it takes the steps of the paper's Figure 1, transcribed as a plain
  loop, to 1e-10 (`tests/engine/test_trajectories.py`).
- Noisy digits: at the paper's SNR of 1, PCA also reads our digits, which are made of bars; at 0.25
  the paper's picture appears. On fresh images POLA's advantage is real but smaller.

"""


def choices(
    tried: list[dict[str, Any]], scales: Sequence[str], neighbors: Sequence[int]
) -> list[dict[str, Any]]:
    """Mean errors in percent over the problems, for each scale and k."""
    rows = []
    for i, scale in enumerate(scales):
        part = tried[i :: len(scales)]
        for k in neighbors:
            means = {key: 100 * float(np.mean([e[key][k - 1] for e in part])) for key in part[0]}
            rows.append({"scale": scale, "k": k, **means})
    return rows


def write(out: Path, rows: Rows, choices: Rows, pictures: Rows, scale: str, k: int) -> None:
    """All files but the pictures."""
    write_csv(out / "choices.csv", choices)
    write_csv(out / "errors.csv", rows)
    write_csv(out / "pictures.csv", pictures)
    claims = [_compared(rows, a, b) | {"paper": paper} for a, b, paper in CLAIMS]
    beyond = [_compared(rows, a, b) for a, b in BEYOND]
    write_csv(out / "claims.csv", claims)
    write_csv(out / "beyond.csv", beyond)
    draw(out / "fig3_scatter.png", rows)
    text = (
        "# POLA on digits: what the paper found, and what we found\n\n"
        f"{len(rows)} problems; {scale} pixels, k = {k}, chosen by leave-one-out error on the "
        "training images. Made by `python -m experiments pola_mnist`; the protocol is in "
        "`experiments/pola_mnist.py`. Errors in percent.\n\n"
        f"## Figure 3\n\n{markdown(claims, 2)}\n\n"
        f"{NOTES}## Beyond the paper's protocol\n\n{markdown(beyond, 2)}\n\n"
        f"## The choice of scale and k\n\n{markdown(choices, 2)}\n\n"
        f"## Noisy digits (Figure 2), zeros and eights (Figure 3, bottom)\n\n"
        f"{markdown(pictures, 3)}\n"
    )
    (out / "summary.md").write_text(text, encoding="utf-8")


def _compared(rows: Rows, first: str, second: str) -> dict[str, Any]:
    a, b = (np.array([row[name] for row in rows]) for name in (first, second))
    return {
        "first": first,
        "second": second,
        "first better": int((a < b).sum()),
        "equal": int((a == b).sum()),
        "second better": int((a > b).sum()),
        "first mean error": float(a.mean()),
        "second mean error": float(b.mean()),
    }


def draw(path: Path, rows: Rows) -> None:
    """Figure 3: a point per problem; below the diagonal POLA is better."""
    plt = plots()
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.6))
    for ax, (pola, other, _) in zip(axes, CLAIMS, strict=True):
        x, y = ([row[name] for row in rows] for name in (other, pola))
        top = 1.05 * max(*x, *y)
        ax.plot([0, top], [0, top], color="gray", lw=0.8)
        ax.plot(x, y, "o", ms=3)
        ax.set(xlabel=f"{other} error, %", ylabel=f"{pola} error, %", title=f"{pola} vs. {other}")
    save_figure(figure, path)
