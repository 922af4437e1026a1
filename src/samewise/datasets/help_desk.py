"""Short texts for search: what customers of a shop write to its help desk."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class HelpDesk(NamedTuple):
    """What `load_help_desk` returns.

    Attributes
    ----------
    texts : list of str
        The sentences.
    intents : array of int of shape (n,)
        What each of them is about.
    names : list of str
        The name of each intent.
    """

    texts: list[str]
    intents: NDArray[np.int64]
    names: list[str]


def load_help_desk() -> HelpDesk:
    """Load 658 sentences about 47 concerns of a shop's customers, written for samewise.

    Sentences about the same concern share few words, and sentences with the same words are often
    about different concerns: what belongs together is to be learned from users.

    Returns
    -------
    HelpDesk
        Sentences, the concern of each as a number, and the names of the concerns.

    Examples
    --------
    >>> from samewise.datasets import load_help_desk
    >>> texts, intents, names = load_help_desk()
    >>> len(texts), len(names)
    (658, 47)
    >>> texts[0], names[intents[0]]
    ('Where is my parcel right now?', 'track a parcel')
    """
    texts: list[str] = []
    intents: list[int] = []
    names: list[str] = []
    content = files("samewise.datasets").joinpath("help_desk.txt").read_text(encoding="utf-8")
    for line in content.splitlines():
        if line.startswith("# "):
            names.append(line[2:])
        elif line:
            texts.append(line)
            intents.append(len(names) - 1)
    return HelpDesk(texts, np.array(intents, dtype=np.int64), names)
