"""A folder of collections, opened by one process at a time."""

from __future__ import annotations

import re
import secrets
import shutil
import threading
from pathlib import Path
from typing import Any

from samewise.exceptions import InvalidInputError
from samewise.files.locking import lock
from samewise.files.writing import sync_folder
from samewise.serve.collection import Collection
from samewise.serve.collection_stores import Settings, events_of, is_collection
from samewise.serve.database import Database
from samewise.serve.feedback_resolving import NotFoundError
from samewise.serve.learning import SNAPSHOT_EVERY
from samewise.serve.searched_collection import Encode

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_DELETED = ".deleted-"
"""How folders of deleted collections begin, until they are gone; no collection has such a name."""
MOST_COLLECTIONS = 64


class OtherSettingsError(InvalidInputError):
    """There is a collection of that name, with other settings."""


class Service:
    """The collections of a folder.

    Parameters
    ----------
    folder : Path
        Where they are; it is made if it is not there.
    encode : callable, default=None
        Vectors of texts, for collections with ``encoder="callable"``.
    snapshot_every : int, default=SNAPSHOT_EVERY
        Lessons between snapshots of a model.
    url : str, default=None
        Of a PostgreSQL database for the logs of new collections.
    """

    def __init__(
        self,
        folder: Path,
        encode: Encode | None = None,
        snapshot_every: int = SNAPSHOT_EVERY,
        url: str | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._encode, self._every, self.url = encode, snapshot_every, url
        self._lock: Any = (folder / "lock").open("ab")
        if lock(self._lock) is False:
            self._lock.close()
            raise InvalidInputError(
                f"{folder} is used by another service; end that one, or give another folder."
            )
        self._making = threading.Lock()
        self.collections: dict[str, Collection] = {}
        try:
            for path in sorted(folder.iterdir()):
                if path.name.startswith(_DELETED):
                    self._sweep(path)
                elif is_collection(path):
                    self._open(path.name, None)
        except BaseException:
            self.close()
            raise

    def _open(self, name: str, settings: Settings | None) -> Collection:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        collection = Collection(folder, settings, self._encode, self._every, self.url)
        self.collections[name] = collection
        return collection

    def make(self, name: str, settings: Settings) -> bool:
        """Make a collection; False if there is one with these settings."""
        if not NAME.fullmatch(name):
            raise InvalidInputError(
                "The name of a collection has up to 63 lower-case letters, digits, '-' and '_', "
                "and starts with a letter or digit."
            )
        with self._making:
            if name in self.collections:
                if self.collections[name].settings != settings:
                    raise OtherSettingsError(
                        f"The collection {name!r} exists with other settings, which stay as they "
                        "are; choose another name."
                    )
                return False
            if len(self.collections) >= MOST_COLLECTIONS:
                raise InvalidInputError(f"There can be {MOST_COLLECTIONS} collections at most.")
            self._open(name, settings)
            for each in (self.folder, self.folder / name):
                sync_folder(each)
            return True

    def delete(self, name: str) -> None:
        """Delete a collection with all its files."""
        with self._making:
            collection = self.get(name)
            # Who comes from now on finds none; who is here already is refused.
            del self.collections[name]
            collection.close()
            gone = self.folder / f"{_DELETED}{secrets.token_hex(8)}"
            (self.folder / name).rename(gone)
            sync_folder(self.folder)
            self._sweep(gone)

    def _sweep(self, gone: Path) -> None:
        """Remove what is left of a deleted collection."""
        if (gone / "collection.sqlite").is_file():
            database = Database(gone / "collection.sqlite")
            try:
                events = events_of(database, self.url)
                events.delete_all()
                events.close()
            finally:
                database.close()
        shutil.rmtree(gone)

    def get(self, name: str) -> Collection:
        """The collection of that name."""
        found = self.collections.get(name)
        if found is None:
            raise NotFoundError(
                f"There is no collection {name!r}; PUT /collections/{{name}} first."
            )
        return found

    def close(self) -> None:
        """Close all of them."""
        for collection in self.collections.values():
            collection.close()
        self.collections = {}
        self._lock.close()
