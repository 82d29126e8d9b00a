"""A file is written whole or not at all: into a draft beside it, which then takes its place.

Whatever ends a run must not leave the draft behind. An error removes it in `put`, a signal by `discard`;
what nothing can catch (SIGKILL, a power cut) leaves one, which a later write of the same file removes.
Only `os` is used, a call for each thing that can fail: tests make every one of them fail.
"""

from __future__ import annotations

import errno
import os
import re
import select
import stat
import time
from contextlib import suppress

STALE_S = 24 * 3600
"""A draft older than this is nobody's any more."""

_STEM_BYTES = 100  # of the file's name in the draft's: names end at 255 bytes
_TAIL = re.compile(r"[0-9a-f]{8}\.part")
_DESCRIPTOR = re.compile(r"/dev/std(in|out|err)|(?:/dev/fd|/proc/self/fd)/(\d{1,9})")
_STANDARD = {"in": 0, "out": 1, "err": 2}

_drafts: set[str] = set()


def put(data: bytes, path: str) -> None:
    """Write a file: the old one stays until the new one is whole.

    A device or a pipe is written to, never replaced; so is a descriptor by its name (/dev/stdout), whatever
    it leads to: its name is a link in a folder of the system's.

    Raises:
        OSError: it could not be written; nothing was left behind.
    """
    descriptor = _descriptor(path)
    if descriptor is not None:
        _write(os.dup(descriptor), data)
        return
    mode = _mode(path)
    if mode is None or stat.S_ISREG(mode):
        replace(data, path, mode)
    elif stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    else:
        _write(os.open(path, os.O_WRONLY), data)


def append(data: bytes, path: str, limit: int) -> bool:
    """Add to the end of a file that others write to as well; what stands in it stays, whatever happens.

    Args:
        data: what to add, on a line of its own.
        path: a regular file, or none yet; neither a link nor a device is followed.
        limit: the size that the file may reach.

    Returns:
        Whether there was room.

    Raises:
        OSError: it could not be written.
    """
    how = os.O_RDWR | os.O_APPEND | os.O_CREAT
    for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):  # a pipe is never waited for
        how |= getattr(os, flag, 0)
    number = os.open(path, how, 0o666)
    try:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        if found.st_size and _last_byte(number, found.st_size) != b"\n":
            data = b"\n" + data
        if found.st_size + len(data) > limit:
            return False
        write_all(number, data)
    finally:
        os.close(number)
    return True


def _last_byte(number: int, size: int) -> bytes:
    os.lseek(number, size - 1, os.SEEK_SET)  # appending goes to the end all the same
    return os.read(number, 1)


def discard() -> None:
    """Remove the drafts that are being written; for a run that ends here and now."""
    for draft in _drafts:
        with suppress(OSError):
            os.unlink(draft)


def write_all(descriptor: int, data: bytes) -> None:
    """Write until nothing is left: a descriptor may take less than it is given, or nothing for now.

    Raises:
        OSError: it takes no more.
    """
    left = memoryview(data)
    while left:
        try:
            taken = os.write(descriptor, left)
        except BlockingIOError:  # another program made the terminal or pipe that we share non-blocking
            select.select([], [descriptor], [])
            continue
        if not taken:
            raise OSError(errno.EIO, "nothing more is taken")
        left = left[taken:]


def replace(data: bytes, path: str, mode: int | None = None) -> None:
    """Write a draft and let it take the place of whatever lies at a path, with the permissions of `mode`.

    Raises:
        OSError: it could not be written; nothing was left behind.
    """
    folder, name = os.path.split(path)
    stem = f".{os.fsencode(name)[:_STEM_BYTES].decode(errors='ignore')}."
    draft = os.path.join(folder, f"{stem}{os.urandom(4).hex()}.part")
    # created by us or not at all, with the permissions that any new file gets here
    how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    _drafts.add(draft)  # before it is there: a signal may come between
    try:
        _write(os.open(draft, how, 0o666), data)
        if mode is not None:
            os.chmod(draft, stat.S_IMODE(mode))
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
    finally:
        _drafts.discard(draft)
    _remove_stale(folder, stem)


def _write(descriptor: int, data: bytes) -> None:
    """All of the data; the descriptor is closed whatever happens."""
    try:
        write_all(descriptor, data)
    except BaseException:
        with suppress(OSError):  # the first error tells more
            os.close(descriptor)
        raise
    os.close(descriptor)  # a full disk may only be told here


def _remove_stale(folder: str, stem: str) -> None:
    """Remove drafts of the same file that a killed run left behind."""
    before = time.time() - STALE_S
    with suppress(OSError), os.scandir(folder or os.curdir) as entries:
        for entry in entries:
            is_draft = entry.name.startswith(stem) and _TAIL.fullmatch(entry.name, len(stem))
            if is_draft and entry.stat(follow_symlinks=False).st_mtime < before:
                os.unlink(entry.path)


def _mode(path: str) -> int | None:
    """What stands at a path, or None."""
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def _descriptor(path: str) -> int | None:
    """The number of a descriptor that is called by its name, or None."""
    named = _DESCRIPTOR.fullmatch(path) if os.name == "posix" else None
    if named is None:
        return None
    return _STANDARD[named[1]] if named[1] else int(named[2])
