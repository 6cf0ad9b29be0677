"""Folders of the user's cache folder for what compilers made in runs of the tests: of this clone, and of others."""

import fcntl
import os
import pathlib
import shutil
import time

KEPT_SECONDS = 14 * 24 * 3600


def kept_folder(name: str = "") -> pathlib.Path | None:
    """tenon-tests/NAME, which this user alone may read; None if there is no place for it."""
    folder = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tenon-tests", name)
    if not folder.is_absolute():
        return None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    return folder


def forget_old(folder: pathlib.Path, most: int) -> None:
    """Removes files that are older than two weeks, and the oldest of the others until they have `most` bytes. Other runs may do the same."""
    files = []
    for file in folder.iterdir():
        try:
            files.append((file.stat().st_mtime, file.stat().st_size, file))
        except OSError:  # Another run was first.
            continue
    left = sum(size for _, size, _ in files)
    for made, size, file in sorted(files):
        if time.time() - made > KEPT_SECONDS or left > most:
            file.unlink(missing_ok=True)
            left -= size


def folder_of_one_run(name: str, most: int) -> tuple[pathlib.Path, int] | None:
    """A folder that no other run uses until the second, the descriptor of its lock, is closed. It is emptied if it has more than `most`
    bytes. None if there is no place for one, or other runs have all of them."""
    parent = kept_folder(name)
    for i in range(4) if parent else ():
        lock = os.open(parent / f"{i}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            continue
        folder = parent / str(i)
        if sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) > most:
            shutil.rmtree(folder)
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder, lock
    return None
