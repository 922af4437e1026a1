"""Files that samewise wrote, whatever they hold."""

from __future__ import annotations

import os
from typing import Any

from samewise.files import container
from samewise.files.storable import made


def load(path: str | os.PathLike[str]) -> Any:
    """Read what `save` of a form, learner, classifier, verifier, filter or model wrote.

    Arrays come back bit for bit. A loaded learner or filter continues exactly where the saved one
    stopped. Nothing in the file is executed, and a file that is foreign, damaged, newer than this
    version or inconsistent raises a FileFormatError. For a form, no code that learns is imported.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Form, learner, classifier, Verifier, filter or Model
        What the file holds.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from samewise import OASIS, load
    >>> learner = OASIS().fit([[[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     folder = pathlib.Path(folder)
    ...     learner.save(folder / "learner")
    ...     learner.metric_.save(folder / "form")
    ...     load(folder / "learner"), load(folder / "form")
    (OASIS(), Bilinear(shape=(2, 2)))
    """
    return made(container.read(path))
