from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from streamlearn.errors import PositionLost, StreamAway, StreamError
from streamlearn.records.record import Position, Record
from streamlearn.settings.stream import EmbeddedLogSettings
from streamlearn.stream import log as log_module
from streamlearn.stream.headers import MOST_KNOWN, _known_names, decode_headers, encode_headers
from streamlearn.stream.log import LogStream
from tests.stream.examples import number, numbered, raised_within, read

APPEND = """
import sys
from streamlearn.records.record import Record
from streamlearn.stream.url import open_stream
stream = open_stream("log:" + sys.argv[1])
for i in range(int(sys.argv[3])):
    stream.append([Record(f"{sys.argv[2]} {3 * i + j}".encode()) for j in range(3)])
    print(3 * i + 3, flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "examples.log"


def test_only_the_owner_can_read_it(path: Path) -> None:
    mask = os.umask(0)
    try:
        stream = LogStream(path)
        stream.append(numbered(0, 1))
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
        stream.close()
    finally:
        os.umask(mask)
    assert modes == {"examples.log": 0o600, "examples.log-wal": 0o600, "examples.log-shm": 0o600}


def test_several_processes_append_at_once_and_make_the_file_together(path: Path) -> None:
    appenders = [
        subprocess.Popen([sys.executable, "-c", APPEND, path, str(name), "40"], stdout=subprocess.DEVNULL)
        for name in range(4)
    ]
    stream = LogStream(path)
    stream.open(None)
    records = read(stream, 4 * 120, seconds=60)
    assert [appender.wait() for appender in appenders] == [0] * 4
    assert stream.poll(10, 0.0) == []
    stream.close()
    assert [record.offset for record in records] == list(range(480))
    by_appender: dict[str, list[int]] = {}
    for record in records:
        name, n = record.value.decode().split()
        by_appender.setdefault(name, []).append(int(n))
    assert by_appender == {str(name): list(range(120)) for name in range(4)}


def test_what_was_acknowledged_survives_the_appenders_death(path: Path) -> None:
    appender = subprocess.Popen([sys.executable, "-c", APPEND, path, "x", "100000"], stdout=subprocess.PIPE)
    assert appender.stdout is not None
    acknowledged = 0
    while acknowledged < 60:
        acknowledged = int(appender.stdout.readline())
    appender.kill()
    acknowledged = int(([acknowledged, *appender.stdout.read().split(b"\n")[:-1]])[-1])
    appender.stdout.close()
    appender.wait()
    stream = LogStream(path)
    stream.open(None)
    (end,) = stream.ends().values()
    # The last append may have become durable without being acknowledged; never in part.
    assert end in (acknowledged, acknowledged + 3)
    assert [record.value for record in read(stream, end)] == [b"x %d" % i for i in range(end)]
    stream.close()


def test_appending_syncs_every_commit(path: Path) -> None:
    stream = LogStream(path)
    stream.append(numbered(0, 1))
    assert stream._writer is not None
    assert stream._writer.execute("PRAGMA synchronous").fetchone() == (2,)
    assert stream._writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    stream.close()


def test_passed_records_go_and_their_space_is_used_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "SWEEP_CHUNK", 100)
    stream = LogStream(path, EmbeddedLogSettings(retention="passed"))
    begin = stream.open(None)
    sizes = []
    for turn in range(8):
        stream.append([Record(bytes(1000)) for _ in range(500)])
        read(stream, 500, limit=50)
        stream.passed(stream.position(), stream.position())
        # The rest is deleted along with reading, a chunk at a time, and when there is nothing to read.
        for _ in range(6):
            assert stream.poll(10, 0.0) == []
        sizes.append(path.stat().st_size)
        assert stream.open(None).offsets == {0: 500 * (turn + 1)}
    # 4 MB went through it.
    assert sizes[-1] < 1_500_000
    with pytest.raises(PositionLost, match="wanted offset 0, available are 4000 to 4000"):
        stream.open(begin)
    assert stream.open(begin, allow_gap=True).offsets == {0: 4000}
    stream.append(numbered(0, 1))
    assert read(stream, 1)[0].offset == 4000
    stream.close()


def test_everything_is_kept_unless_asked_otherwise(path: Path) -> None:
    stream = LogStream(path)
    stream.append(numbered(0, 10))
    stream.open(None)
    read(stream, 10)
    stream.passed(stream.position(), stream.position())
    assert stream.open(None).offsets == {0: 0}
    stream.close()


def test_what_the_oldest_checkpoint_needs_is_kept(path: Path) -> None:
    stream = LogStream(path, EmbeddedLogSettings(retention="passed"))
    stream.append(numbered(0, 10))
    stream.open(None)
    read(stream, 4)
    oldest = stream.position()
    read(stream, 6)
    stream.passed(stream.position(), Position({0: 10}, "another"))
    assert stream.open(None).offsets == {0: 0}
    stream.passed(Position({0: 10}, oldest.stream_id), oldest)
    assert stream.open(None) == oldest
    assert [number(r) for r in read(stream, 6)] == list(range(4, 10))
    stream.close()


def test_records_deleted_under_the_reader_are_a_lost_position(path: Path) -> None:
    stream = LogStream(path)
    stream.append(numbered(0, 10))
    stream.open(None)
    read(stream, 2)
    other = sqlite3.connect(path)
    other.execute("DELETE FROM records WHERE offset < 5")
    other.commit()
    other.close()
    with pytest.raises(PositionLost, match="wanted offset 2, available from 5"):
        stream.poll(10, 1.0)
    stream.close()


def test_a_log_replaced_while_it_is_followed_is_noticed(path: Path) -> None:
    stream = LogStream(path)
    stream.append(numbered(0, 10))
    stream.open(None)
    read(stream, 10)
    for file in path.parent.glob("examples.log*"):
        file.unlink()
    raised_within(5, StreamAway, lambda: stream.poll(10, 0.1))
    other = LogStream(path)
    other.append(numbered(0, 20))
    lost = raised_within(5, PositionLost, lambda: stream.poll(10, 0.1))
    assert "wanted offset 10" in str(lost)
    # Appending went to the file that is there, too, not to the deleted one.
    stream.append(numbered(20, 21))
    assert other.ends() == {0: 21}
    other.close()
    stream.close()


def test_a_log_moved_away_and_back_goes_on(path: Path, tmp_path: Path) -> None:
    stream = LogStream(path)
    stream.append(numbered(0, 10))
    stream.open(None)
    read(stream, 4)
    stream.close()
    stream.open(stream.position())
    shutil.copy(path, tmp_path / "copy")
    os.replace(tmp_path / "copy", path)
    time.sleep(1.1)
    assert [number(r) for r in read(stream, 6)] == list(range(4, 10))
    stream.close()


@pytest.mark.parametrize("content", [b"not a database at all, " * 100, b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_file_that_is_something_else(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StreamError, match="is not a streamlearn log") as raised:
        LogStream(path).open(None)
    assert not isinstance(raised.value, StreamAway)
    assert path.read_bytes() == content


def test_another_programs_database(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE records (x)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(StreamError, match="is not a streamlearn log"):
        LogStream(path).append(numbered(0, 1))
    assert path.read_bytes() == before


def test_a_newer_format_is_refused_with_both_numbers(path: Path) -> None:
    stream = LogStream(path)
    stream.open(None)
    stream.close()
    other = sqlite3.connect(path)
    other.execute("PRAGMA user_version=7")
    other.close()
    with pytest.raises(StreamError, match="format 7, this streamlearn knows formats up to 1"):
        LogStream(path).open(None)


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StreamError, match="cannot make the log: No such file") as raised:
        LogStream(tmp_path / "none" / "x.log").open(None)
    assert "directory must exist" in raised.value.hint
    with pytest.raises(StreamError, match="cannot be opened"):
        LogStream(tmp_path).open(None)


def test_asking_about_a_log_does_not_make_it(path: Path) -> None:
    for ask in (lambda: LogStream(path).ends(), lambda: LogStream(path).dead_letters()):
        with pytest.raises(StreamAway, match="there is no log yet"):
            ask()
    assert not path.exists()


def test_a_full_disk_is_told_and_passes(path: Path) -> None:
    stream = LogStream(path)
    stream.append(numbered(0, 10))
    stream.open(None)
    assert stream._writer is not None
    (pages,) = stream._writer.execute("PRAGMA page_count").fetchone()
    # SQLite's own limit raises what a full disk raises.
    stream._writer.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(StreamAway, match="the disk is full") as raised:
        stream.append([Record(bytes(100_000))])
    assert "free some space" in raised.value.hint
    assert stream.ends() == {0: 10}
    stream._writer.execute("PRAGMA max_page_count=1000000")
    stream.append([Record(bytes(100_000))])
    assert len(read(stream, 11)) == 11
    stream.close()


def test_a_read_only_file_is_told(path: Path) -> None:
    stream = LogStream(path)
    stream.append(numbered(0, 1))
    assert stream._writer is not None
    stream._writer.execute("PRAGMA query_only=1")
    with pytest.raises(StreamAway, match="cannot be written"):
        stream.append(numbered(0, 1))
    stream.close()


def test_a_writer_that_never_ends_is_told(path: Path) -> None:
    stream = LogStream(path, EmbeddedLogSettings(busy_timeout=0.2))
    stream.append(numbered(0, 1))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StreamAway, match="another process has been writing"):
        stream.append(numbered(1, 2))
    # Reading goes on meanwhile.
    stream.open(None)
    assert len(read(stream, 1)) == 1
    other.execute("COMMIT")
    other.close()
    stream.append(numbered(1, 2))
    stream.close()


def test_idle_following_costs_next_to_nothing(path: Path) -> None:
    stream = LogStream(path)
    stream.append(numbered(0, 1))
    stream.open(None)
    read(stream, 1)
    before = time.process_time()
    assert stream.poll(1, 1.0) == []
    assert time.process_time() - before < 0.05
    stream.close()


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (("", b""),),
        (("label", b"boot"),),
        (("label", b"boot"), ("label", b"boot"), ("id", b"")),
        (("a\x01b", b"x"), ("c", b"\x01")),
        (("a\0b", b"x"), ("c", b"\0")),
        (("ünï \U0001f9e0", bytes(range(256))),),
        (("", b"\xff"),),
    ],
)
def test_headers_come_back(headers: tuple[tuple[str, bytes], ...]) -> None:
    assert decode_headers(encode_headers(headers)) == headers


def test_endlessly_many_header_names_do_not_fill_the_memory() -> None:
    for i in range(2 * MOST_KNOWN + 10):
        decode_headers(encode_headers(((f"name {i}", b"x"),)))
    assert len(_known_names) <= MOST_KNOWN


def test_several_may_make_the_same_log_at_once(tmp_path: Path) -> None:
    faults: list[BaseException] = []

    def make(path: Path) -> None:
        stream = LogStream(path)
        try:
            stream.open(None)
        except StreamError as error:
            faults.append(error)
        stream.close()

    for turn in range(30):
        makers = [threading.Thread(target=make, args=(tmp_path / f"{turn}.log",)) for _ in range(6)]
        for maker in makers:
            maker.start()
        for maker in makers:
            maker.join()
    assert not faults
