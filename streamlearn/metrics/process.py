"""What the operating system knows of a process, from /proc; elsewhere than on Linux, nothing."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from streamlearn.metrics.values import Values


def is_alive(pid: int) -> bool:
    if pid == os.getpid():
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return pid > 0


def resident_bytes(pid: int) -> int | None:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def cpu_seconds(pid: int) -> float | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()  # the name before may hold anything
        return (int(fields[11]) + int(fields[12])) / _ticks()
    except (OSError, ValueError, IndexError):
        return None


@cache
def _ticks() -> int:
    return os.sysconf("SC_CLK_TCK")


def add_memory(values: Values, process: str, pids: list[int]) -> None:
    sizes = [size for size in map(resident_bytes, pids) if size is not None]
    if sizes:
        values.add("process_resident_memory_bytes", sum(sizes), process)
