"""The tree in scratch space that lies over the user's: what was written, and marks for the deleted.

What the script sees at `/a/b` is what the mirror has at `<scratch>/mirror/a/b`, and if it has
nothing there, the original. A folder in both shows the names of both. A deleted path is a link to
itself, for three reasons: it is made in one step; it is told from everything else, since nobody
makes such links; and it answers for all that was below it, since the kernel reports a loop for
every path through it. So one look at the mirror tells how things stand with a path.
"""

from __future__ import annotations

import errno
import itertools
import mmap
import os
import posix
import stat
import time
from enum import Enum

from hotloop.runtime.shield.paths import erase, is_folder, join, link_text, parent, status

STAMP_BYTES = 8


class Mark(Enum):
    GONE = "deleted, or below something that was"


class Mirror:
    def __init__(self, scratch: str) -> None:
        self.root = join(scratch, "mirror")
        self.nowhere = join(scratch, "nowhere/nothing")
        """A path at which there is nothing: opening it fails as opening a deleted file should."""
        self._workshop = join(scratch, "workshop")
        for folder in (self.root, self._workshop):
            os.makedirs(folder, exist_ok=True)
        self._stamp = _shared_memory(join(scratch, "stamp"))
        self._numbers = itertools.count()

    def of(self, user: str) -> str:
        return self.root + user

    def back(self, path: str) -> str:
        """The user's path for one in the mirror; others stay as they are."""
        if path == self.root:
            return "/"
        return path[len(self.root) :] if path.startswith(f"{self.root}/") else path

    def find(self, user: str) -> os.stat_result | Mark | None:
        """None: the mirror has nothing to say, and the original counts."""
        path = self.of(user)
        try:
            found = posix.lstat(path)
        except OSError as error:
            below_deleted = error.errno in (errno.ELOOP, errno.ENOTDIR)
            return Mark.GONE if below_deleted else None
        return Mark.GONE if stat.S_ISLNK(found.st_mode) and _links_to_itself(path) else found

    # -- for all processes of the trial to see that what they remember is out of date

    @property
    def stamp(self) -> bytes:
        """Differs after folders, links or deletions were added; zeros as long as all is empty."""
        return self._stamp[:STAMP_BYTES]

    def renew_stamp(self) -> None:
        self._stamp[:STAMP_BYTES] = time.monotonic_ns().to_bytes(STAMP_BYTES, "little")

    # -- changing the tree

    def make_folder(self, user: str) -> None:
        """As a place for something in it: it shows the original's names as well."""
        missing = []
        while not is_folder(self.of(user)):
            missing.append(user)
            if user == "/":
                raise FileNotFoundError(
                    errno.ENOENT, "the trial's scratch space is gone", self.root
                )
            user = parent(user)
        for folder in reversed(missing):
            try:
                posix.mkdir(self.of(folder))
            except FileExistsError:
                continue  # another process was faster
        if missing:
            self.renew_stamp()

    def new_path(self) -> str:
        """To make things at, before they move to their place in one step."""
        return join(self._workshop, f"{posix.getpid()}-{next(self._numbers)}")

    def delete(self, user: str) -> None:
        """Empty the place, and mark it if there is an original to hide."""
        place = self.of(user)
        if is_folder(place):
            erase(place)
        if status(user) is not None:
            self.make_folder(parent(user))
            mark = self.new_path()
            posix.symlink(os.path.basename(user), mark)
            posix.rename(mark, place)
        elif status(place) is not None:
            erase(place)
        self.renew_stamp()

    def unmark(self, user: str) -> None:
        if _links_to_itself(self.of(user)):
            posix.unlink(self.of(user))
            self.renew_stamp()

    def hide_originals(self, user: str) -> None:
        """Mark all names of the original folder that this one, made or moved here, lacks."""
        try:
            names = posix.listdir(user)  # through a link as well: that too would show
        except OSError:
            return
        for name in names:
            below = join(user, name)
            if self.find(below) is None:
                self.delete(below)
            elif is_folder(self.of(below)):
                self.hide_originals(below)


def _links_to_itself(path: str) -> bool:
    return link_text(path) == os.path.basename(path)


def _shared_memory(path: str) -> mmap.mmap:
    descriptor = posix.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        posix.ftruncate(descriptor, STAMP_BYTES)
        return mmap.mmap(descriptor, STAMP_BYTES)
    finally:
        posix.close(descriptor)
