"""What `enter` asks of the Linux kernel: a mount namespace, mounts in it, and where they are."""

import ctypes
import os
from collections.abc import Iterator

# <linux/sched.h>, <linux/mount.h>, <linux/prctl.h>
CLONE_NEWNS, CLONE_NEWUSER = 0x0002_0000, 0x1000_0000
MS_BIND, MS_REC, MS_PRIVATE = 1 << 12, 1 << 14, 1 << 18
PR_SET_PDEATHSIG = 1


def enter_namespace() -> bool:
    """A mount namespace of our own. True: without privilege, it took a user namespace as well."""
    uid, gid = os.geteuid(), os.getegid()
    try:
        unshare(CLONE_NEWNS)
        alone = False
    except PermissionError:
        unshare(CLONE_NEWUSER | CLONE_NEWNS)
        tell_kernel("setgroups", "deny")  # before gid_map, see user_namespaces(7)
        tell_kernel("uid_map", f"{uid} {uid} 1")
        tell_kernel("gid_map", f"{gid} {gid} 1")
        alone = True
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    return alone


def in_first_user_namespace() -> bool:
    """Only there may an overlay keep its marks in trusted attributes, and so rename folders."""
    with open("/proc/self/uid_map") as file:
        return file.read().split() == ["0", "0", str(2**32 - 1)]


def tell_kernel(name: str, text: str) -> None:
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)


def libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    if libc().unshare(flags) != 0:
        raise kernel_error("a private mount namespace")


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    arguments = (os.fsencode(source), os.fsencode(target), kind and kind.encode())
    if libc().mount(*arguments, ctypes.c_ulong(flags), options.encode()) != 0:
        raise kernel_error(f"{kind or 'mount'} at {target}")


def kernel_error(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")


def mounts() -> Iterator[tuple[str, str]]:
    """Where something is mounted, and which file system. See proc_pid_mountinfo(5)."""
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            place, _, source = line.partition(b" - ")
            path = place.split()[4].decode("unicode_escape").encode("latin-1")
            yield os.fsdecode(path), source.split()[0].decode()
