"""What the passive–aggressive study prints: Tables 2 to 5, for the sets that have a file here."""

from __future__ import annotations

METHODS = ("PAI+", "PAI-", "PAII+", "PAII-", "PALS+", "PALS-")

WITH_ITML = ("ITML", *METHODS)

_COLUMNS = ("Euclidean", *WITH_ITML)

# Table 2: error and, in brackets, the best k.
_TABLE_2 = """
soyS 0.158 1 0.119 2 0.133 14 0.125 13 0.136 12 0.121 15 0.125 9 0.126 12
wine 0.027 13 0.033 3 0.018 5 0.017 6 0.016 3 0.017 9 0.024 7 0.019 3
glass 0.510 1 0.513 1 0.523 1 0.506 1 0.518 1 0.527 1 0.507 1 0.518 1
ecoli 0.064 3 0.077 5 0.075 3 0.075 17 0.076 15 0.075 7 0.076 17 0.070 9
iono 0.153 2 0.155 2 0.129 2 0.136 2 0.14 2 0.139 2 0.143 2 0.138 2
balance 0.335 6 0.263 3 0.219 3 0.219 2 0.258 3 0.234 2 0.312 6 0.258 6
breast 0.033 3 0.037 3 0.025 9 0.026 11 0.027 17 0.025 11 0.028 9 0.030 9
mor 0.277 9 0.273 12 0.296 12 0.299 10 0.294 10 0.297 8 0.269 11 0.279 10
spam 0.115 1 0.109 3 0.118 5 0.12 3 0.119 5 0.121 3 0.12 3 0.121 1
satellite 0.119 3 0.118 3 0.137 4 0.132 3 0.132 3 0.127 3 0.132 3 0.127 3
soyL 0.136 1 0.086 1 0.107 1 0.1 1 0.099 1 0.097 1 0.098 1 0.083 1
nist16 0.057 1 0.057 1 0.057 1 0.059 1 0.057 1 0.060 1 0.066 1 0.056 1
"""

# Table 3: CPU seconds in the order ITML PAI+ PAII+ PALS+ PAI- PAII- PALS-.
_TABLE_3 = """
soyS 10.56 0.30 0.30 0.49 0.11 0.10 0.11
wine 0.72 0.18 0.15 0.29 0.10 0.10 0.10
glass 0.53 0.26 0.25 0.32 0.08 0.09 0.11
ecoli 0.85 0.24 0.28 0.32 0.05 0.05 0.06
iono 2.15 0.80 0.84 1.37 0.28 0.29 0.34
balance 2.11 0.46 0.46 0.58 0.28 0.28 0.30
breast 0.29 0.57 0.63 0.83 0.26 0.27 0.35
mor 4.08 4.77 4.72 8.00 3.76 3.81 4.23
spam 0.73 12.51 12.68 17.69 0.54 0.50 0.60
satellite 3.99 39.86 34.93 99.60 2.12 2.07 2.46
soyL 26.93 4.48 4.55 26.47 0.86 0.85 1.07
nist16 86.09 480.23 500.55 2007.20 10.13 10.81 34.06
"""
_TIMED = ("ITML", "PAI+", "PAII+", "PALS+", "PAI-", "PAII-", "PALS-")

# Tables 4 and 5: fifteen sets and seven methods, ITML among them.
RANKS = {
    "PAI-": 1.49,
    "PAII-": 1.77,
    "PALS-": 2.87,
    "PAII+": 4.86,
    "PAI+": 4.93,
    "ITML": 5.67,
    "PALS+": 6.40,
}
HOLM = {
    ("PAI-", "PAI+"): "<1e-3",
    ("PAI-", "PAII+"): "<1e-3",
    ("PAI-", "PALS+"): "<1e-7",
    ("PAII-", "PAI+"): "<1e-3",
    ("PAII-", "PAII+"): "0.0011",
    ("PAII-", "PALS+"): "<1e-7",
    ("PALS-", "PAI+"): "0.0967",
    ("PALS-", "PAII+"): "0.1112",
    ("PALS-", "PALS+"): "<1e-3",
    ("PAI-", "ITML"): "<1e-5",
    ("PAII-", "ITML"): "<1e-4",
    ("PALS-", "ITML"): "0.0046",
}


def _read(table: str) -> dict[str, list[float]]:
    lines = (line.split() for line in table.strip().splitlines())
    return {name: [float(value) for value in values] for name, *values in lines}


ERRORS = {
    name: dict(zip(_COLUMNS, zip(values[::2], map(int, values[1::2]), strict=True), strict=True))
    for name, values in _read(_TABLE_2).items()
}
"""ERRORS[set][method] = (error, k)."""

SECONDS = {name: dict(zip(_TIMED, values, strict=True)) for name, values in _read(_TABLE_3).items()}
"""SECONDS[set][method] = CPU seconds on the study's machine."""
