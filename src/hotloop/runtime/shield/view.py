"""Where a path is to be read: the original, the mirror, or nowhere."""

from __future__ import annotations

import os
import posix
import stat
from typing import NamedTuple

from hotloop.runtime.shield.mirror import STAMP_BYTES, Mark, Mirror
from hotloop.runtime.shield.paths import Path, is_folder, is_link, join, link_text, resolve, status
from hotloop.runtime.shield.territory import Territory

UNTOUCHED = bytes(STAMP_BYTES)
MOST_FOLDERS = 10_000  # to remember


class Spot(NamedTuple):
    """How things stand with one path."""

    user: str
    """The path as the script may think of it: absolute, without links."""
    mirror: str | None = None
    """Its place in the mirror; None when it is not the user's and nothing is to be shielded."""
    kept: os.stat_result | None = None
    """What the mirror has there."""
    gone: bool = False


class Folder(NamedTuple):
    """What is remembered of a folder, as scripts open many files in few folders."""

    path: str
    touched: bool
    """Whether the mirror may have anything to say about the names in it."""
    is_plain: bool
    """The system finds the same folder there, and in it the same names."""


class View:
    def __init__(self, mirror: Mirror, territory: Territory) -> None:
        self.mirror = mirror
        self._territory = territory
        self._folders: dict[str, Folder] = {}
        self._seen = UNTOUCHED

    @property
    def is_untouched(self) -> bool:
        """No process of the trial has changed anything yet."""
        return self.mirror.stamp == UNTOUCHED

    def reading(self, path: Path, follow: bool = True) -> Path:
        """Where to read `path`; `path` itself, the very object, if just there."""
        if self.is_untouched:
            return path
        absolute = _absolute(path)
        # The usual case comes first, and costs little: data is read where nothing was written.
        folder = self._folder(absolute.rpartition("/")[0])
        if folder.is_plain and not (follow and is_link(absolute)):
            return path
        return _unless_same(path, self._place(self._spot(self.mirror.back(absolute), follow)))

    def outside(self, path: Path, spot: Spot) -> Path:
        """Where to do anything with a path that is not the user's."""
        return _unless_same(path, spot.user)

    def spot(self, path: Path, follow: bool = True) -> Spot:
        return self._spot(self.mirror.back(_absolute(path)), follow)

    def cwd(self) -> str:
        return self.mirror.back(posix.getcwd())

    def exists(self, spot: Spot) -> bool:
        return not spot.gone and (spot.kept is not None or status(spot.user) is not None)

    def is_folder(self, spot: Spot) -> bool:
        if spot.gone or spot.kept is None:
            return not spot.gone and is_folder(spot.user)
        return stat.S_ISDIR(spot.kept.st_mode)

    def names(self, spot: Spot) -> list[str]:
        """What is in a folder."""
        place = self._place(spot)
        if spot.kept is None or spot.mirror is None:
            return posix.listdir(place)
        mirrored = posix.listdir(spot.mirror)
        originals = posix.listdir(spot.user) if is_folder(spot.user) else []
        shown = [name for name in mirrored if self.mirror.find(join(spot.user, name)) != Mark.GONE]
        return [*set(originals).difference(mirrored), *shown]

    def _place(self, spot: Spot) -> str:
        if spot.gone:
            return self.mirror.nowhere
        if spot.kept is None or spot.mirror is None:
            return spot.user
        # A folder in both is its original, with the original's mode and times.
        both = stat.S_ISDIR(spot.kept.st_mode) and is_folder(spot.user)
        return spot.user if both else spot.mirror

    def _spot(self, absolute: str, follow: bool) -> Spot:
        head, _, name = absolute.rpartition("/")
        if name in ("", ".", ".."):
            return self._spot_at(resolve(absolute, self._link))
        folder = self._folder(head)
        user = join(folder.path, name)
        found = self.mirror.find(user) if folder.touched else None
        text = self._link_text(user, found) if follow else None
        if text is None:
            return self._judged(user, found)
        target = text if text.startswith("/") else join(folder.path, text)
        return self._spot_at(resolve(target, self._link))

    def _spot_at(self, user: str) -> Spot:
        return self._judged(user, self.mirror.find(user))

    def _judged(self, user: str, found: os.stat_result | Mark | None) -> Spot:
        if not self._territory.shields(user):
            return Spot(user)
        kept = None if isinstance(found, Mark) else found
        return Spot(user, self.mirror.of(user), kept, found is Mark.GONE)

    def _folder(self, head: str) -> Folder:
        if self.mirror.stamp != self._seen or len(self._folders) > MOST_FOLDERS:
            self._seen = self.mirror.stamp
            self._folders.clear()
        folder = self._folders.get(head)
        if folder is None:
            folder = self._folders[head] = self._looked_up(head)
        return folder

    def _looked_up(self, head: str) -> Folder:
        path = resolve(head, self._link)
        touched = self.mirror.find(path) is not None
        is_original = self.mirror.back(path) == path == resolve(head, link_text)
        return Folder(path, touched, is_original and not touched)

    def _link(self, path: str) -> str | None:
        return self._link_text(path, self.mirror.find(path))

    def _link_text(self, path: str, found: os.stat_result | Mark | None) -> str | None:
        """The text of a link, as the script sees it; None for what is no link."""
        if found is None:
            return link_text(path)
        is_link = not isinstance(found, Mark) and stat.S_ISLNK(found.st_mode)
        return posix.readlink(self.mirror.of(path)) if is_link else None


def _absolute(path: Path) -> str:
    """As the system takes it: the working folder may lie in the mirror."""
    text = path if isinstance(path, str) else os.fsdecode(path)
    return text if text.startswith("/") else f"{posix.getcwd()}/{text}"


def _unless_same(path: Path, place: str) -> Path:
    if place == _absolute(path):
        return path
    return os.fsencode(place) if isinstance(os.fspath(path), bytes) else place
