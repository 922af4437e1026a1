"""What is known of data sets by name: their size, license and source, and where to get them."""

from __future__ import annotations

from typing import NamedTuple


class Known(NamedTuple):
    """A data set of the replications.

    Attributes
    ----------
    rows, features, classes : int
        Its size; texts have no features, and documents with several topics no classes.
    license : str
        As its source states it; "research" where only the use for research is allowed.
    source : str
        Who published it.
    openml : int
        Its number at OpenML; 0 if `fetch` cannot get it there.
    """

    rows: int
    features: int
    classes: int
    license: str
    source: str
    openml: int = 0


_UCI = ("CC BY 4.0", "UCI Machine Learning Repository")

KNOWN = {
    "balance_scale": Known(625, 4, 3, *_UCI, 11),
    "banking77_minilm": Known(
        13083, 384, 77, "CC BY 4.0", "BANKING77 (PolyAI), embedded by all-MiniLM-L6-v2"
    ),
    "breast_cancer": Known(569, 30, 2, "CC BY 4.0", "UCI; comes with scikit-learn"),
    "breast_wisconsin": Known(683, 9, 2, *_UCI, 15),
    "bupa": Known(345, 6, 2, *_UCI),
    "caltech101_bow": Known(5293, 1000, 101, "CC BY 4.0", "Caltech-101, visual words"),
    "caltech10_surf": Known(1123, 800, 10, "research", "Office-Caltech-10, visual words"),
    "coil20": Known(1440, 1024, 20, "research", "Columbia Object Image Library"),
    "digits": Known(1797, 64, 10, "CC BY 4.0", "UCI; comes with scikit-learn"),
    "ecoli": Known(336, 7, 8, *_UCI, 39),
    "german_numeric": Known(1000, 24, 2, *_UCI),
    "glass": Known(214, 9, 6, *_UCI, 41),
    "heart_statlog": Known(270, 13, 2, *_UCI, 53),
    "ionosphere": Known(351, 34, 2, *_UCI, 59),
    "iris": Known(150, 4, 3, "CC BY 4.0", "UCI; comes with scikit-learn", 61),
    "isolet": Known(7797, 617, 26, *_UCI, 300),
    "letter": Known(20000, 16, 26, *_UCI, 6),
    "magic04": Known(19020, 10, 2, *_UCI, 1120),
    "mfeat": Known(2000, 649, 10, *_UCI),
    "mnist": Known(70000, 784, 10, "CC BY-SA 3.0", "LeCun, Cortes and Burges", 554),
    "musk1": Known(476, 166, 2, *_UCI),
    "news20_18828": Known(18828, 0, 20, "not stated", "20 Newsgroups, without duplicates"),
    "news20_bydate": Known(18846, 0, 20, "not stated", "20 Newsgroups, by date"),
    "olivetti": Known(400, 4096, 40, "research", "AT&T Laboratories Cambridge"),
    "optdigits": Known(5620, 64, 10, *_UCI, 28),
    "pima": Known(768, 8, 2, "CC0", "National Institute of Diabetes, by UCI", 37),
    "reuters21578": Known(21578, 0, 0, "research", "Reuters-21578, distribution 1.0"),
    "satellite": Known(6435, 36, 6, *_UCI, 182),
    "segmentation": Known(2310, 19, 7, *_UCI, 36),
    "sonar": Known(208, 60, 2, *_UCI, 40),
    "soybean_large": Known(683, 35, 19, *_UCI),
    "soybean_small": Known(47, 35, 4, *_UCI),
    "spambase": Known(4601, 57, 2, *_UCI, 44),
    "waveform21": Known(5000, 21, 3, *_UCI),
    "waveform40": Known(5000, 40, 3, *_UCI, 60),
    "wdbc": Known(569, 30, 2, *_UCI, 1510),
    "wine": Known(178, 13, 3, "CC BY 4.0", "UCI; comes with scikit-learn", 187),
    "yaleb32": Known(2414, 1024, 38, "research", "Extended Yale Face Database B, 32 by 32"),
    "yeast": Known(1484, 8, 10, *_UCI, 181),
}
"""The data sets of the replications, and those that come with scikit-learn."""

OPENML = {name: known.openml for name, known in KNOWN.items() if known.openml}
"""The data sets that `fetch` knows, with their numbers at OpenML."""

SHIPPED = ("breast_cancer", "digits", "iris", "wine")
"""The data sets that come with scikit-learn: they are there without any file."""
