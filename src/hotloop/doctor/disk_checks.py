"""Whether a dataset's disk is slow. A pure function of what was read."""

from __future__ import annotations

from hotloop.disk import DiskRead
from hotloop.doctor.check import Check, gib, ok, unknown, warning

SLOW = 100e6
"""Bytes/s to one reader: a spinning disk's. Any solid one gives several times that."""
QUICK_OPENING = 1000
"""Files a second. Where they come so quickly a low rate is the files' smallness, not the disk."""


def disk(read: DiskRead) -> Check:
    name = f"disk of {read.path}"
    if read.rate is None:
        found = f"too little came from the disk: {gib(read.size)} in {read.files} files"
        return unknown(name, found, "Name the folder of the dataset: hotloop doctor PATH")
    files = "1 file" if read.files == 1 else f"{read.files} files"
    seen = f"{read.rate / 1e6:,.0f} MB/s to one reader ({gib(read.size)} in {files})"
    if read.rate < SLOW and read.files / (read.size / read.rate) < QUICK_OPENING:
        remedy = "Copy the dataset to a local disk, pack small files, or read with more workers."
        return warning(name, seen, remedy)
    return ok(name, seen)
