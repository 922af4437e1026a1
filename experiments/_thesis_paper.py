"""What the thesis prints: accuracies and marks of the s-test, by table."""

from __future__ import annotations

# Table 5.4: kNN-cos, kNN-Euclidean, and how the first compares with the second.
_TABLE_5_4 = """
Soybean 1.0 1.0 =
Iris .987 .973 =
Letter .997 .997 =
Balance .954 .879 ≫
Wine .865 .819 ≫
Ionosphere .871 .854 =
Glass .899 .890 =
Pima .630 .698 ≪
Liver .620 .620 =
German .594 .615 =
Heart .670 .656 =
Yeast .911 .912 =
Spambase .858 .816 =
Musk-1 .844 .848 =
"""

# Tables 5.5 and 5.6: cosine, SiLA, gCosLA, and how these compare with the cosine.
_TABLE_5_5 = """
Soybean 1.0 1.0 = .972 <
Iris .987 .978 = .987 =
Letter .997 .962 = .995 =
Balance .954 .979 ≫ .981 ≫
Wine .865 .884 = .918 ≫
Ionosphere .871 .911 ≫ .880 =
Glass .899 .892 = .893 =
Pima .630 .648 > .624 =
Liver .620 .609 = .658 >
German .594 .646 ≫ .737 ≫
Heart .670 .659 = .737 ≫
Yeast .911 .905 = .909 =
"""
_TABLE_5_6 = """
Soybean .989 .989 = .961 =
Iris .987 .980 = .984 =
Letter .997 .962 = .994 =
Balance .969 .980 ≫ .981 ≫
Wine .867 .893 > .926 ≫
Ionosphere .860 .906 ≫ .883 =
Glass .898 .895 = .897 =
Pima .643 .663 ≫ .643 =
Liver .638 .600 = .652 =
German .620 .667 ≫ .729 ≫
Heart .711 .674 ≪ .717 =
Yeast .917 .910 ≪ .912 =
"""

# Table 5.7: kNN-cos, kNN-A (SiLA), SkNN-cos, SkNN-A (SiLA).
NEWS = {
    ("cosine", "knn"): 0.929,
    ("SiLA", "knn"): 0.947,
    ("cosine", "sknn"): 0.907,
    ("SiLA", "sknn"): 0.902,
}

# Tables 5.8, 5.9 and 5.10: SiLA / gCosLA with kNN and with SkNN, Euclidean / gCosLA with kNN.
_TABLES_5_8_TO_10 = """
Soybean > = >
Iris = = <
Letter = = =
Balance = = ≪
Wine ≪ ≪ ≪
Ionosphere = = <
Glass = = =
Pima > = ≫
Liver < < <
German ≪ ≪ ≪
Heart ≪ < ≪
Yeast = = =
"""

# Tables 5.13, 5.14, 5.16 and 5.18: RELIEF, RBS, sRBS, and how the last two compare with RELIEF.
_TABLE_5_13 = """
Soybean .711 .750 > 1.0 ≫
Iris .667 .667 = .987 ≫
Balance .681 .670 = .959 ≫
Ionosphere .799 .826 = .866 ≫
Heart .556 .437 ≪ .696 ≫
Yeast .900 .900 = .905 =
German .598 .631 ≫ .609 =
Liver .574 .580 = .583 =
Pima .598 .583 = .651 ≫
Glass .815 .821 = .886 ≫
Letter .961 .961 = .997 =
Wine .596 .630 = .834 ≫
"""
_TABLE_5_14 = """
Soybean .756 .750 = .989 ≫
Iris .673 .667 = .987 ≫
Balance .662 .672 = .967 ≫
Ionosphere .681 .834 ≫ .871 ≫
Heart .526 .430 ≪ .685 ≫
Yeast .900 .900 = .908 =
German .493 .632 ≫ .598 ≫
Liver .539 .580 ≫ .588 >
Pima .585 .583 = .665 ≫
Glass .833 .816 ≪ .884 ≫
Letter .957 .961 = .997 =
Wine .575 .634 ≫ .840 ≫
"""
_TABLE_5_16 = """
Soybean .739 .733 = 1.0 ≫
Iris .664 .667 = .987 ≫
Balance .665 .670 = .959 ≫
Ionosphere .839 .826 = .880 >
Heart .556 .437 ≪ .693 ≫
Yeast .893 .900 ≫ .911 ≫
German .637 .624 < .609 <
Liver .574 .580 = .606 =
Pima .593 .661 ≫ .651 ≫
Glass .819 .835 > .886 ≫
Letter .961 .961 = .997 =
Wine .608 .630 = .834 ≫
Magic .516 .360 = .767 =
Spambase .618 .611 ≪ .855 ≫
Musk-1 .698 .851 ≫ .838 ≫
"""
_TABLE_5_18 = """
Soybean .783 .733 = .983 ≫
Iris .571 .667 ≫ .987 ≫
Balance .708 .672 ≪ .967 ≫
Ionosphere .886 .834 ≪ .889 =
Heart .533 .437 ≪ .685 ≫
Yeast .897 .900 ≫ .914 ≫
German .625 .624 = .598 <
Liver .528 .580 ≫ .609 ≫
Pima .659 .658 = .665 =
Glass .768 .835 ≫ .884 ≫
Letter .961 .961 = .997 =
Wine .606 .634 = .840 ≫
Magic .539 .360 = .777 =
Spambase .583 .611 ≫ .857 ≫
Musk-1 .712 .857 ≫ .842 ≫
"""

# Tables 5.15 and 5.20: RBS / sRBS with kNN and with SkNN, without and with PSD.
_TABLES_5_15_AND_20 = """
Soybean ≪ ≪ ≪ ≪
Iris ≪ ≪ ≪ ≪
Balance ≪ ≪ ≪ ≪
Ionosphere ≪ ≪ ≪ ≪
Heart ≪ ≪ ≪ ≪
Yeast = = = =
German > ≫ = >
Liver = = = =
Pima ≪ ≪ = =
Glass ≪ ≪ ≪ ≪
Letter = = = =
Wine ≪ ≪ ≪ ≪
"""

# Tables 5.17 and 5.19: RELIEF / RELIEF-PSD with kNN and with SkNN.
_TABLES_5_17_AND_19 = """
Soybean = =
Iris = ≫
Balance = ≪
Ionosphere < ≪
Heart = =
Yeast ≫ ≫
German ≪ ≪
Liver = =
Pima = ≪
Glass = ≫
Letter = =
Wine = =
"""

# Table 5.21: accuracies of multiclass methods.
_TABLE_5_21 = """
set gCosLA SiLA SNN MCML LMNN ITML SVM
Balance .976 .952 .879 .925 .916 .920 .922
Wine .857 .806 .951 .837 .974 .974 .801
Iris .967 .967 .934 .967 .953 .961 .956
"""

# Tables 5.22 and 5.23, side by side: errors in percent.
_TABLE_5_22 = """
set Euclidean Mahalanobis Xing LMNN ITML KRCA IGML KIGML cosine gCosLA SiLA
Iris 5.0 10.8 3.5 4.5 4.3 4.1 2.7 3.9 2.0 3.3 3.3
Soybean 6.0 2.8 1.1 2.2 0.7 0.1 1.8 0.4 1.0 8.9 1.0
Ionosphere 17.8 18.4 10.3 15.0 11.1 17.2 16.6 14.2 12.9 13.4 8.9
Sonar 28.9 28.9 28.9 20.3 28.3 26.5 28.1 14.6 18.5 20.0 20.0
Glass 35.5 34.9 41.7 34.9 36.2 36.9 35.8 33.3 33.8 36.2 34.8
Optdigits 2.1 5.9 12.3 1.6 2.1 2.1 3.2 1.4 2.1 2.5 2.0
Wine 29.6 7.5 10.8 4.1 7.7 4.6 5.0 6.1 21.1 14.3 19.4
Segmentation 23.6 16.9 23.2 14.7 16.6 15.0 12.9 12.4 30.5 24.3 26.2
Waveform 19.5 36.1 17.0 19.1 19.7 20.1 30.6 21.1 20.2 20.2 20.7
Pima 28.0 27.8 27.9 27.1 27.8 27.8 27.6 27.8 37.0 38.2 35.3
"""

# Table 5.25: kNN-cos and SkNN-cos, and how the first compares with the second.
_TABLE_5_25 = """
Soybean 1.0 .989 =
Iris .987 .987 =
Letter .997 .997 =
Balance .954 .969 ≪
Wine .865 .867 =
Ionosphere .871 .860 >
Glass .899 .898 =
Pima .630 .643 <
Liver .620 .638 =
German .594 .620 ≪
Heart .670 .711 ≪
Yeast .911 .917 ≪
"""

ITERATIONS = {"SiLA": 14_000, "gCosLA": 200}
"""Wine (figure 5.7): more than so many, and less than so many."""


def _lines(table: str) -> dict[str, list[str]]:
    return {name: cells for name, *cells in map(str.split, table.strip().splitlines())}


def _read() -> tuple[
    dict[tuple[str, str, str], float], dict[tuple[str, tuple[str, str], tuple[str, str]], str]
]:
    """Accuracies by set, method and rule; marks by set and two of (method, rule)."""
    accuracies: dict[tuple[str, str, str], float] = {}
    marks: dict[tuple[str, tuple[str, str], tuple[str, str]], str] = {}
    for name, (cosine, euclidean, mark) in _lines(_TABLE_5_4).items():
        accuracies[name, "cosine", "knn"] = float(cosine)
        accuracies[name, "Euclidean", "knn"] = float(euclidean)
        marks[name, ("cosine", "knn"), ("Euclidean", "knn")] = mark
    of_three = (
        (_TABLE_5_5, "knn", ("cosine", "SiLA", "gCosLA")),
        (_TABLE_5_6, "sknn", ("cosine", "SiLA", "gCosLA")),
        (_TABLE_5_13, "knn", ("RELIEF", "RBS", "sRBS")),
        (_TABLE_5_14, "sknn", ("RELIEF", "RBS", "sRBS")),
        (_TABLE_5_16, "knn", ("RELIEF-PSD", "RBS-PSD", "sRBS-PSD")),
        (_TABLE_5_18, "sknn", ("RELIEF-PSD", "RBS-PSD", "sRBS-PSD")),
    )
    for table, rule, (first, second, third) in of_three:
        for name, (a, b, mark_b, c, mark_c) in _lines(table).items():
            for method, value in ((first, a), (second, b), (third, c)):
                accuracies[name, method, rule] = float(value)
            marks[name, (second, rule), (first, rule)] = mark_b
            marks[name, (third, rule), (first, rule)] = mark_c
    only_marks = (
        (
            _TABLES_5_8_TO_10,
            (("SiLA", "knn"), ("gCosLA", "knn")),
            (("SiLA", "sknn"), ("gCosLA", "sknn")),
            (("Euclidean", "knn"), ("gCosLA", "knn")),
        ),
        (
            _TABLES_5_15_AND_20,
            (("RBS", "knn"), ("sRBS", "knn")),
            (("RBS", "sknn"), ("sRBS", "sknn")),
            (("RBS-PSD", "knn"), ("sRBS-PSD", "knn")),
            (("RBS-PSD", "sknn"), ("sRBS-PSD", "sknn")),
        ),
        (
            _TABLES_5_17_AND_19,
            (("RELIEF", "knn"), ("RELIEF-PSD", "knn")),
            (("RELIEF", "sknn"), ("RELIEF-PSD", "sknn")),
        ),
    )
    for table, *compared in only_marks:
        for name, cells in _lines(table).items():
            for (a, b), mark in zip(compared, cells, strict=True):
                marks[name, a, b] = mark
    # Table 5.20 has one set more.
    for rule in ("knn", "sknn"):
        marks["Musk-1", ("RBS-PSD", rule), ("sRBS-PSD", rule)] = "="
    for name, (_, symmetric, mark) in _lines(_TABLE_5_25).items():
        accuracies[name, "cosine", "sknn"] = float(symmetric)
        marks[name, ("cosine", "knn"), ("cosine", "sknn")] = mark
    for (method, rule), value in NEWS.items():
        accuracies["News", method, rule] = value
    return accuracies, marks


ACCURACIES, MARKS = _read()
"""In the binary form: ACCURACIES[set, method, rule]; MARKS[set, (method, rule), (method, rule)]."""


def _columns(table: str) -> dict[str, dict[str, float]]:
    """Rows by set, numbers by the name of their column."""
    rows = _lines(table)
    names = rows.pop("set")
    return {name: dict(zip(names, map(float, cells), strict=True)) for name, cells in rows.items()}


MULTICLASS = _columns(_TABLE_5_21)
"""MULTICLASS[set][method] = accuracy."""

ERRORS = _columns(_TABLE_5_22)
"""ERRORS[set][method] in percent."""

MEANT = ERRORS | {"Soybean": ERRORS["Soybean"] | {"cosine": 0.0, "SiLA": 0.0}}
"""The same with two errors that are printed as 1.0 ± 0.0 and ranked first in Table 5.24."""
