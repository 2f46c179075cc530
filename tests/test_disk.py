"""The disk and the lock of a state directory."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import time

import pytest

from streamlearn import disk
from streamlearn.errors import StateError, StateLocked
from streamlearn.lock import DirectoryLock
from tests.checkpoint.states import FaultyDisk


def test_write_file(tmp_path):
    path = tmp_path / "a"
    assert disk.write_file(path, [b"one", bytearray(b" two"), memoryview(b" three")]) == 13
    assert path.read_bytes() == b"one two three"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert disk.write_file(path, []) == 0
    assert path.read_bytes() == b""


def test_order_of_operations(tmp_path):
    with FaultyDisk()() as watched:
        disk.write_file(tmp_path / "a", [b"content"])
    assert watched.done == [("write", ""), ("fsync", ""), ("rename", "a"), ("fsync_directory", tmp_path.name)]


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
@pytest.mark.parametrize("number", range(4))
def test_a_failure_leaves_the_old_file_or_the_new(tmp_path, number, error):
    path = tmp_path / "a"
    disk.write_file(path, [b"old"])
    with FaultyDisk(number, error=error)(), pytest.raises(OSError, match="on purpose") as raised:
        disk.write_file(path, [b"new"])
    assert raised.value.errno == error
    assert path.read_bytes() == (b"new" if number == 3 else b"old")
    assert os.listdir(tmp_path) == ["a"]


def test_short_writes_are_continued(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "write", lambda descriptor, data: os.write(descriptor, data[:1000]))
    content = os.urandom(12_345)
    disk.write_file(tmp_path / "a", [content])
    assert (tmp_path / "a").read_bytes() == content


def test_an_error_between_writes_leaves_nothing(tmp_path):
    def pieces():
        yield b"one"
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        disk.write_file(tmp_path / "a", pieces())
    assert os.listdir(tmp_path) == []


def test_the_digest_is_that_of_the_content(tmp_path):
    with disk.NewFile(tmp_path) as file:
        file.write(b"abc")
        assert file.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        file.publish("a")
        with pytest.raises(RuntimeError):
            file.publish("b")


def test_directories_belong_to_their_owner(tmp_path):
    disk.make_directory(tmp_path / "a" / "b")
    disk.make_directory(tmp_path / "a" / "b")
    for path in (tmp_path / "a", tmp_path / "a" / "b"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_move_and_remove(tmp_path):
    disk.make_directory(tmp_path / "other")
    disk.write_file(tmp_path / "a", [b"content"])
    disk.move(tmp_path / "a", tmp_path / "other" / "b")
    assert (tmp_path / "other" / "b").read_bytes() == b"content"
    disk.remove([tmp_path / "a", tmp_path / "other" / "b"])
    assert os.listdir(tmp_path / "other") == []


OWNER = """
import sys, time
from pathlib import Path
from streamlearn.lock import DirectoryLock
with DirectoryLock(Path(sys.argv[1])):
    sys.stdout.write("locked\\n")
    sys.stdout.flush()
    time.sleep(60)
"""


@pytest.fixture
def owner(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path / "state")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "locked\n"
    yield process
    process.kill()
    process.stdout.close()
    process.wait()


def test_a_second_owner_is_refused_by_name(tmp_path, owner):
    begun = time.monotonic()
    with pytest.raises(StateLocked, match=f"process {owner.pid}") as raised:
        DirectoryLock(tmp_path / "state").acquire()
    assert time.monotonic() - begun < 2
    assert raised.value.exit_code == 5
    assert owner.poll() is None


def test_the_lock_dies_with_its_owner(tmp_path, owner):
    owner.kill()
    owner.wait()
    with DirectoryLock(tmp_path / "state"):
        pid = (tmp_path / "state" / "lock").read_text()
        assert int(pid) == os.getpid()


def test_the_lock_is_not_for_children(tmp_path):
    """A server that outlives its supervisor must not keep the directory."""
    with DirectoryLock(tmp_path):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], close_fds=False)
    try:
        with DirectoryLock(tmp_path):
            pass
    finally:
        child.kill()
        child.wait()


def test_the_lock_can_be_taken_again(tmp_path):
    lock = DirectoryLock(tmp_path)
    for _ in range(2):
        lock.acquire()
        with pytest.raises(RuntimeError):
            lock.acquire()
        with pytest.raises(StateLocked):
            DirectoryLock(tmp_path).acquire()
        lock.release()
        lock.release()
    assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == 0o600


def test_a_directory_that_cannot_be_locked(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="cannot lock"):
        DirectoryLock(tmp_path / "file" / "state").acquire()
    (tmp_path / "lock").symlink_to("/etc/hosts")
    with pytest.raises(StateError, match="cannot lock"):
        DirectoryLock(tmp_path).acquire()
