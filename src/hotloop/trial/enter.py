"""Runs a trial's command where it cannot reach the user's files.

    python -I -S enter.py ENTER.json

The launcher starts this small program, and it becomes the command. In between it ties the command
to the launcher's life, gives it its terminal, and, where the kernel allows it, covers the user's
folders: in a mount namespace of its own, each protected folder becomes an overlay whose lower layer
is the folder itself and whose upper layer lies in the trial's scratch space. Whatever the command
writes, renames or deletes there, the folder itself is never touched; killing the command at any
moment changes nothing about that.

Where the kernel does not allow it, the command's environment says HOTLOOP_SHIELD=savers, and
`hotloop.runtime.shield` stands in front of Python's own ways to write. It does so beside overlays,
too, for all that they do not cover.

Only the standard library, and of it only what starts quickly: this runs before every trial.
"""

import fcntl
import json
import os
import signal
import stat
import sys
import termios
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

if __name__ == "__main__":  # started by its path, and isolated: it finds its own package alone
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from hotloop.trial import kernel

LAYERS = "layers"  # under the scratch folder; `hotloop.trial.shielded` reads them after the trial

# Through these the kernel speaks; no file in them is the user's.
KERNEL_FOLDERS = ("/dev", "/proc", "/sys")
KERNEL_FILE_SYSTEMS = frozenset((
    "autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts",
    "devtmpfs", "efivarfs", "fusectl", "hugetlbfs", "mqueue", "nsfs", "proc", "pstore",
    "rpc_pipefs", "securityfs", "selinuxfs", "sysfs", "tracefs",
))  # fmt: skip


def main(order_file: str) -> NoReturn:
    with open(order_file, encoding="utf-8") as file:
        order = json.load(file)
    report = Report(order["report"])
    die_with(order["parent"])
    take_terminal()
    why, protected = cover(order)
    way = "savers" if why else "overlay"
    report.add(way=way, protected=protected, why=why)
    become(order["argv"], order["cwd"], {**order["env"], "HOTLOOP_SHIELD": way}, report)


class Report:
    """What the launcher is told. Opened at once: its folder may be covered before it is written."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        self._told: dict[str, Any] = {}

    def add(self, **told: Any) -> None:
        self._told |= told
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, json.dumps(self._told).encode(), 0)


def die_with(parent: int) -> None:
    """Let the kernel kill this process when the launcher dies, even of SIGKILL."""
    if sys.platform != "linux":
        return
    kernel.libc().prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before it could be watched
        sys.exit("hotloop: the launcher is gone")


def take_terminal() -> None:
    """Make our terminal the controlling one, so that Ctrl-C and /dev/tty work as usual."""
    ours = next(filter(os.isatty, range(3)), None)  # not on stdin where something is piped in
    if ours is not None and os.getsid(0) == os.getpid():
        with suppress(OSError):  # it already is, or is another session's
            fcntl.ioctl(ours, termios.TIOCSCTTY, 0)


def become(argv: list[str], cwd: str, env: dict[str, str], report: Report) -> NoReturn:
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by this interpreter; exec would pass it on
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.chdir(cwd)  # anew, although it is the working folder: to come to stand in the overlay
        os.execve(argv[0], argv, env)
    except OSError as error:
        report.add(exec_error=str(error))
        os._exit(127)


# -- the overlay ----------------------------------------------------------------------------------


class Refused(Exception):
    """The overlay is not possible here; the text says why."""


class Layer(NamedTuple):
    path: str
    overlaid: bool
    """True: covered by an overlay. False: the original, bound back on top of one."""


def cover(order: dict[str, Any]) -> tuple[str | None, list[str]]:
    """Cover the protected folders. Returns why not (None: done), and what is protected."""
    scratch = os.path.realpath(order["scratch"])
    try:
        if not order["overlay"]:
            raise Refused("not asked for")
        if sys.platform != "linux":
            raise Refused("only Linux has overlay mounts")
        rehearse(order, scratch)
        return None, lay_all(order, os.path.join(scratch, LAYERS), scratch)
    except (Refused, OSError) as error:
        return str(error), sorted({os.path.realpath(folder) for folder in order["protect"]})


def rehearse(order: dict[str, Any], scratch: str) -> None:
    """Do everything in a forked child first, because a process cannot leave a namespace again.

    With the user's folders, one of our own is covered, and treated as training scripts treat
    theirs: a kernel may allow the mount and then fail to delete in it.
    """
    stage = os.path.join(scratch, "rehearsal")
    folder = os.path.join(stage, "folder")
    before = set_stage(folder)
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        try:
            protect = [*order["protect"], folder]
            lay_all({**order, "protect": protect}, os.path.join(stage, LAYERS), scratch)
            play(folder)
            os._exit(0)
        except BaseException as error:
            os.write(writer, (str(error) or repr(error)).encode())
        finally:
            os._exit(1)
    os.close(writer)
    with open(reader, encoding="utf-8") as pipe:
        why = pipe.read()
    if os.waitpid(child, 0)[1] != 0:
        raise Refused(why or "the rehearsal died")
    if contents(folder) != before:
        raise Refused("what was written in the overlay reached the folder below it")


def set_stage(folder: str) -> dict[str, str]:
    os.makedirs(os.path.join(folder, "old"))
    for name in ("best.pt", "old/1.pt", "old/2.pt"):
        with open(os.path.join(folder, name), "w") as file:
            file.write("before")
    return contents(folder)


def play(folder: str) -> None:
    """Save anew over a checkpoint, delete a folder of old ones, make it again."""
    os.chdir(folder)
    with open("best.pt.tmp", "w") as file:
        file.write("after")
    os.replace("best.pt.tmp", "best.pt")
    for name in os.listdir("old"):
        os.unlink(os.path.join("old", name))
    os.rmdir("old")
    os.mkdir("old")
    with open("old/2.pt", "a") as file:
        file.write("after")
    if contents(folder) != {"best.pt": "after", "old/2.pt": "after"}:
        raise Refused("the overlay does not show what was written in it")


def contents(folder: str) -> dict[str, str]:
    texts = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            with open(path) as file:
                texts[os.path.relpath(path, folder)] = file.read()
    return texts


def lay_all(order: dict[str, Any], store: str, scratch: str) -> list[str]:
    """Enter a namespace and lay every layer in it. Returns the folders that are overlaid."""
    foreign = not_our_own([order["cwd"], *order["protect"]])
    if kernel.enter_namespace() and foreign:
        raise Refused(f"{foreign} belongs to another user or group")
    options = "redirect_dir=on" if kernel.in_first_user_namespace() else "userxattr"
    layers = plan(order["protect"], order["passthrough"], scratch)
    # All originals are opened before any is covered. Descriptors of the old namespace would not
    # do: the kernel refuses to mount from there.
    originals = [(layer, open_folder(layer.path)) for layer in layers]
    for number, (layer, original) in enumerate(originals):
        if original is None:
            continue
        if layer.overlaid:
            overlay(layer.path, original, os.path.join(store, str(number)), options)
        else:
            kernel.mount(through(original), layer.path, None, kernel.MS_BIND | kernel.MS_REC)
    return [layer.path for layer, original in originals if layer.overlaid and original is not None]


def plan(protect: Sequence[str], passthrough: Sequence[str], scratch: str) -> list[Layer]:
    """What to lay, outermost first. The innermost folder that was named decides for a path."""
    named = {nearest_folder(folder): True for folder in protect}
    named |= dict.fromkeys(KERNEL_FOLDERS, False)
    named |= {os.path.realpath(folder): False for folder in passthrough if os.path.isdir(folder)}
    for folder, overlaid in named.items():
        if overlaid and within(scratch, folder):
            raise Refused(f"{folder} holds the scratch space {scratch}")
    needed = {
        folder: overlaid
        for folder, overlaid in named.items()
        if overlaid != decided(os.path.dirname(folder), named)
    }
    # An overlay hides what is mounted below it.
    for folder, file_system in kernel.mounts():
        if folder not in needed and decided(folder, named):
            needed[folder] = file_system not in KERNEL_FILE_SYSTEMS
    return [Layer(*item) for item in sorted(needed.items())]


def not_our_own(folders: Sequence[str]) -> str | None:
    """The first folder in which one may write, and which belongs to another user or group.

    A user namespace without privilege knows one user and one group; a file of any other cannot be
    copied up, and a script that may write it as a member of a second group would fail. Looking at
    the folders it works in finds the usual case, a shared folder.
    """
    ours = (os.geteuid(), os.getegid())
    for folder in map(nearest_folder, folders):
        status = os.stat(folder)
        if (status.st_uid, status.st_gid) != ours and os.access(folder, os.W_OK):
            return folder
    return None


def nearest_folder(path: str) -> str:
    """`path`, or what exists of it: a folder that the command would create is protected so."""
    path = os.path.realpath(path)
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def decided(path: str, named: dict[str, bool]) -> bool:
    while path not in named and path != "/":
        path = os.path.dirname(path)
    return named.get(path, False)


def within(path: str, folder: str) -> bool:
    return os.path.commonpath((path, folder)) == folder


def open_folder(path: str) -> int | None:
    try:
        return os.open(path, os.O_PATH | os.O_DIRECTORY)
    except FileNotFoundError:
        return None  # a mount that a later one hides
    except NotADirectoryError as error:
        raise Refused(f"a single file is mounted at {path}") from error


def through(descriptor: int) -> str:
    """A path free of the commas and colons that mean something in mount options."""
    return f"/proc/self/fd/{descriptor}"


def overlay(path: str, original: int, store: str, options: str) -> None:
    upper, work = os.path.join(store, "upper"), os.path.join(store, "work")
    os.makedirs(upper)
    os.makedirs(work)
    with open(os.path.join(store, "path"), "wb") as file:
        file.write(os.fsencode(path))
    resemble(path, upper)
    layers = f"lowerdir={through(original)}"
    for name, folder in (("upperdir", upper), ("workdir", work)):
        layers += f",{name}={through(os.open(folder, os.O_PATH | os.O_DIRECTORY))}"
    kernel.mount("overlay", path, "overlay", 0, f"{layers},{options}")


def resemble(original: str, upper: str) -> None:
    """The root of an overlay shows its upper folder's owner, mode and times."""
    status = os.stat(original)
    with suppress(OSError):  # only root may give a folder away
        os.chown(upper, status.st_uid, status.st_gid)
    os.chmod(upper, stat.S_IMODE(status.st_mode))
    os.utime(upper, ns=(status.st_atime_ns, status.st_mtime_ns))


if __name__ == "__main__":
    main(sys.argv[1])
