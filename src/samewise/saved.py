"""Files that samewise wrote, whatever they hold."""

from __future__ import annotations

import os
from typing import Any

from samewise.files import container
from samewise.forms.files import form_of
from samewise.model import MODEL, model_of

__all__ = ["load"]


def load(path: str | os.PathLike[str]) -> Any:
    """Read what `save` of a form, learner, filter or model wrote; arrays come back bit by bit.

    A loaded learner or filter goes on exactly where the saved one stopped. Nothing in the file is
    executed, and a file that is foreign, damaged, newer than this version or inconsistent raises a
    FileFormatError. For a form, nothing that learns is imported.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Form, learner, filter or Model

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from samewise import OASIS, load
    >>> learner = OASIS().fit([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     folder = pathlib.Path(folder)
    ...     learner.save(folder / "learner")
    ...     learner.metric_.save(folder / "form")
    ...     load(folder / "learner"), load(folder / "form")
    (OASIS(), Bilinear(shape=(2, 2)))
    """
    content = container.read(path)
    if content.kind == container.LEARNER:
        from samewise.learners.files import learner_of

        return learner_of(content)
    if content.kind == container.FILTER:
        from samewise.filtering.filter_files import filter_of

        return filter_of(content)
    if content.kind == MODEL:
        return model_of(content)
    return form_of(content)
