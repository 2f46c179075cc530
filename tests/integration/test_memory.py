"""However many records come: the daemon's memory stays what it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamlearn.stream.url import open_stream
from tests.records.mixed import examples
from tests.serving import Serve

SETTINGS = {
    "learner.method": "er",
    "learner.model": "linear",
    "learner.buffer_size": 1000,
    "learner.batch_size": 100,
    "checkpoint.every_seconds": 0,
}


def resident(process: int) -> int:
    """Bytes of a process in memory now."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


def check_growth(tmp_path: Path, first: int, last: int) -> None:
    url = f"log:{tmp_path / 'stream.log'}"
    stream = open_stream(url)
    records = examples(first, length=4)

    def grow(daemon: Serve, begin: int, end: int) -> int:
        for _ in range(begin, end, first):
            stream.append(records)
        daemon.learned(end)
        return resident(daemon.process.pid)

    with Serve(tmp_path / "state", url, settings={**SETTINGS, "checkpoint.every_examples": first}) as daemon:
        before = grow(daemon, 0, first)
        after = grow(daemon, first, last)
        assert daemon.stop() == 0
    stream.close()
    assert after < 1.05 * before, f"{before / 1e6:.1f} MB became {after / 1e6:.1f} MB"


def test_memory_from_20000_to_100000_records(tmp_path: Path) -> None:
    check_growth(tmp_path, 20_000, 100_000)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_memory_from_200000_to_a_million_records(tmp_path: Path) -> None:
    check_growth(tmp_path, 200_000, 1_000_000)
