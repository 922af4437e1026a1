"""Table 1 of the paper on LMNN."""

from __future__ import annotations

NAMES = ("mnist", "letters", "20news", "isolet", "yFaces", "bal", "oFaces", "wine", "iris")

_ERRORS = """
Euclidean 2.12 4.68 48.57 8.98 29.19 18.33 6.03 25.00 4.87
PCA 2.43 4.68 18.22 8.60 10.79 18.33 2.80 25.00 4.87
LDA 6.16 4.63 16.15 5.90 4.80 10.82 10.01 2.17 4.00
RCA 5.93 4.34 16.06 5.71 4.83 12.31 10.02 2.28 3.71
MCC N/A N/A N/A N/A N/A 15.66 15.91 30.96 3.55
NCA N/A N/A N/A N/A N/A 5.33 2.60 28.67 4.32
LMNN 1.72 3.60 14.98 4.36 5.90 11.16 3.28 8.72 4.37
LMNN_after_LDA 6.16 3.61 16.98 5.84 5.08 10.84 40.72 2.11 3.79
energy 1.37 2.67 22.09 3.40 10.11 9.14 3.16 7.67 3.68
passes 1.69 2.80 13.83 4.30 5.52 5.86 4.83 7.59 4.26
metrics 1.18 3.06 12.82 4.04 4.05 10.72 3.11 8.72 4.66
SVM 1.20 3.21 8.04 3.40 15.22 1.92 1.90 22.24 3.45
active 540037 135715 676482 64396 86994 41522 3843 10194 574
active_metrics 305114 18588 101803 135832 30135 31717 70 748 1548
"""

SECONDS = {
    "LMNN": (12300, 120, 4200, 1200, 480, 6, 66, 14, 2),
    "metrics": (31380, 840, 4440, 5040, 840, 8, 149, 16, 5),
}
"""CPU seconds of the paper's solver, of one metric and of one for each class."""


def _read(table: str) -> dict[str, dict[str, float]]:
    lines = (line.split() for line in table.strip().splitlines())
    return {
        row.replace("_", " "): {
            name: float(value) for name, value in zip(NAMES, values, strict=True) if value != "N/A"
        }
        for row, *values in lines
    }


TABLE = _read(_ERRORS)
"""TABLE[row][set]: test errors in percent, and numbers of active constraints."""
