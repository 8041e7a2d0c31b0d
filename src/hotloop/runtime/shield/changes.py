"""What writing, renaming and deleting do: all of it to the mirror, none of it to the originals.

Each function checks what the system would have checked, so that a script is refused what it would
be refused without a shield, and nothing else. Errors are raised without the paths that the script
gave; those who called know them.
"""

from __future__ import annotations

import errno
import os
import posix
import shutil
import stat
import sys

from hotloop.runtime.shield.paths import Path, erase, fail, is_folder, parent
from hotloop.runtime.shield.view import Spot, View

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
UNNAMED_FILE: int = getattr(os, "O_TMPFILE", -1)


class Changes:
    def __init__(self, view: View) -> None:
        self._view = view
        self._mirror = view.mirror

    # -- where to do it; also for paths that are not the user's

    def writing(self, path: Path, flags: int) -> Path:
        """Where to open `path` with these flags, at least one of which is for writing."""
        if flags & os.O_CREAT and flags & os.O_EXCL:
            return self.creating(path)
        spot = self._view.spot(path, follow=not flags & os.O_NOFOLLOW)
        if spot.mirror is None:
            return self._view.outside(path, spot)
        if not self._view.exists(spot):
            return self._room_for(spot) if flags & os.O_CREAT else self._mirror.nowhere
        if self._view.is_folder(spot):
            return self._unnamed_in(spot, flags)
        if spot.kept is None:
            return self._copied_for(spot, flags)
        return spot.mirror

    def altering(self, path: Path, follow: bool = True) -> Path:
        """Where to change the mode, times or other attributes of `path`."""
        spot = self._view.spot(path, follow)
        if spot.mirror is None:
            return self._view.outside(path, spot)
        if not self._view.exists(spot):
            return self._mirror.nowhere
        if self._view.is_folder(spot):
            self._mirror.make_folder(spot.user)
        elif spot.kept is None:
            self._copy(spot.user)
        return spot.mirror

    def creating(self, path: Path, follow: bool = False) -> Path:
        """Where to make what must not be there yet."""
        spot = self._view.spot(path, follow)
        if spot.mirror is None:
            return self._view.outside(path, spot)
        if self._view.exists(spot):
            fail(errno.EEXIST)
        return self._room_for(spot)

    # -- doing it

    def mkdir(self, path: Path, mode: int = 0o777) -> None:
        posix.mkdir(self.creating(path), mode)
        spot = self._view.spot(path, follow=False)
        if spot.mirror is not None:
            self._mirror.hide_originals(spot.user)
            self._mirror.renew_stamp()

    def symlink(self, text: Path, path: Path) -> None:
        posix.symlink(text, self.creating(path))
        self._mirror.renew_stamp()

    def link(self, source: Path, path: Path) -> None:
        follow = sys.platform == "darwin"  # see link(2) of either system
        spot = self._view.spot(source, follow)
        if not self._view.exists(spot):
            fail(errno.ENOENT)
        if self._view.is_folder(spot):
            fail(errno.EPERM)
        # Never to the original itself: to write the one would be to write the other.
        posix.link(self.altering(source, follow), self.creating(path), follow_symlinks=False)

    def remove(self, path: Path) -> None:
        spot = self._view.spot(path, follow=False)
        if spot.mirror is None:
            return posix.unlink(self._view.outside(path, spot))
        if not self._view.exists(spot):
            fail(errno.ENOENT)
        if self._view.is_folder(spot):
            fail(errno.EPERM if sys.platform == "darwin" else errno.EISDIR)
        self._check_folder(spot)
        self._mirror.delete(spot.user)

    def rmdir(self, path: Path) -> None:
        spot = self._view.spot(path, follow=False)
        if spot.mirror is None:
            return posix.rmdir(self._view.outside(path, spot))
        if not self._view.is_folder(spot):
            fail(errno.ENOTDIR if self._view.exists(spot) else errno.ENOENT)
        if self._view.names(spot):
            fail(errno.ENOTEMPTY)
        self._check_folder(spot)
        self._mirror.delete(spot.user)

    def rename(self, path: Path, new_path: Path) -> None:
        old, new = (self._view.spot(each, follow=False) for each in (path, new_path))
        if old.mirror is None and new.mirror is None:
            return posix.rename(old.user, new.user)
        self._check_rename(old, new)
        if old.user == new.user:
            return
        source = self._whole(old, new)
        if new.mirror is not None:
            self._room_for(new)
            if is_folder(new.mirror):  # empty, but for marks
                erase(new.mirror)
        _move(source, new.mirror or new.user)
        if old.mirror is not None:
            self._mirror.delete(old.user)
        if new.mirror is not None and is_folder(new.mirror):
            self._mirror.hide_originals(new.user)
        self._mirror.renew_stamp()

    # -- parts of the above

    def _room_for(self, spot: Spot) -> str:
        """Its place in the mirror, with the folders above it and without a mark on it."""
        self._check_folder(spot)
        self._mirror.make_folder(parent(spot.user))
        self._mirror.unmark(spot.user)
        return self._mirror.of(spot.user)

    def _check_folder(self, spot: Spot) -> None:
        """May names be added to and taken from the folder it is in?"""
        folder = self._view.spot(parent(spot.user))
        if not self._view.is_folder(folder):
            fail(errno.ENOTDIR if self._view.exists(folder) else errno.ENOENT)
        if folder.kept is None and not posix.access(folder.user, os.W_OK | os.X_OK):
            fail(errno.EACCES)

    def _unnamed_in(self, spot: Spot, flags: int) -> str:
        """A folder can be opened for writing in one case: for a file without a name in it."""
        if flags & UNNAMED_FILE != UNNAMED_FILE:
            fail(errno.EISDIR)
        self._mirror.make_folder(spot.user)
        return self._mirror.of(spot.user)

    def _copied_for(self, spot: Spot, flags: int) -> str:
        """The original's copy in the mirror, empty where it would be emptied anyway."""
        original = posix.lstat(spot.user)
        if not stat.S_ISREG(original.st_mode):
            return spot.user  # writing to a pipe or a device leaves it as it is
        if not posix.access(spot.user, os.W_OK):
            fail(errno.EACCES)
        self._copy(spot.user, with_contents=not flags & os.O_TRUNC)
        return self._mirror.of(spot.user)

    def _copy(self, user: str, with_contents: bool = True) -> None:
        """Made elsewhere first: other processes see the whole copy or none."""
        copy = self._mirror.new_path()
        if with_contents:
            shutil.copy2(user, copy, follow_symlinks=False)
        else:
            posix.close(posix.open(copy, NEW_FILE | os.O_EXCL, 0o600))
            shutil.copymode(user, copy)
        self._mirror.make_folder(parent(user))
        posix.rename(copy, self._mirror.of(user))

    def _whole(self, old: Spot, new: Spot) -> str:
        """Where all that is to be moved lies, in one piece and free to be taken away."""
        if old.mirror is None:
            return old.user
        if not self._view.is_folder(old):
            if old.kept is None:
                self._copy(old.user)
            return old.mirror
        if is_folder(old.user) or new.mirror is None:  # parts of it, or marks in it, stay behind
            copy = self._mirror.new_path()
            shutil.copytree(old.user, copy, symlinks=True)
            return copy
        return old.mirror

    def _check_rename(self, old: Spot, new: Spot) -> None:
        view = self._view
        if not view.exists(old):
            fail(errno.ENOENT)
        for spot in (old, new):
            if spot.mirror is not None:
                self._check_folder(spot)
        if view.is_folder(old):
            if new.user.startswith(f"{old.user}/"):
                fail(errno.EINVAL)
            if view.exists(new) and not view.is_folder(new):
                fail(errno.ENOTDIR)
            if view.is_folder(new) and old.user != new.user and view.names(new):
                fail(errno.ENOTEMPTY)
        elif view.is_folder(new):
            fail(errno.EISDIR)


def _move(source: str, target: str) -> None:
    try:
        posix.rename(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        # Where the script has one file system, the scratch space may lie on another.
        if is_folder(target):
            posix.rmdir(target)
        shutil.move(source, target)
