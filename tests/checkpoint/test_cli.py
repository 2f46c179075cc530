from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from streamlearn.cli.checkpoints import ago, app, megabytes
from streamlearn.errors import SettingsError, StateCorrupt, StateLocked
from streamlearn.lock import DirectoryLock
from tests.checkpoint.test_store import saved


def run(*args: object) -> str:
    result = CliRunner().invoke(app, [str(arg) for arg in args], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


@pytest.fixture
def store(tmp_path):
    return saved(tmp_path, 3)


def test_list(store, tmp_path):
    text = run("list", "--state-dir", tmp_path)
    assert "just now" in text
    rows = [line.split("│")[1].strip() for line in text.splitlines() if line.startswith("│")]
    assert rows == ["3", "2", "1"]
    found = json.loads(run("list", "--json", "--state-dir", tmp_path))
    assert [one["number"] for one in found] == [3, 2, 1]
    assert found[0]["sha256"] == store.list()[-1].sha256
    assert found[0]["examples_seen"] == 30
    store.folder.manifest_path(2).write_bytes(b"")
    assert "damaged" in run("list", "--state-dir", tmp_path)
    assert json.loads(run("list", "--json", "--state-dir", tmp_path))[-1] == {"number": 2, "damaged": True}


def test_list_of_nothing(tmp_path):
    assert "No checkpoints" in run("list", "--state-dir", tmp_path)
    assert json.loads(run("list", "--json", "--state-dir", tmp_path)) == []
    with pytest.raises(SettingsError, match="not a directory"):
        run("list", "--state-dir", tmp_path / "missing")


def test_the_directory_from_the_environment(store, tmp_path, monkeypatch):
    monkeypatch.setenv("STREAMLEARN_STATE_DIR", str(tmp_path))
    assert len(json.loads(run("list", "--json"))) == 3


def test_show(store, tmp_path):
    newest = store.list()[-1]
    text = run("show", "--state-dir", tmp_path)
    assert newest.sha256 in text
    assert "20 slots of 16 uint8" in text
    found = json.loads(run("show", 2, "--json", "--state-dir", tmp_path))
    assert (found["number"], found["format"], found["position"]) == (2, 1, {"0": 2})
    assert found["sha256"] == store.list()[1].sha256
    assert found["libraries"].keys() >= {"python", "numpy", "streamlearn"}
    with pytest.raises(SettingsError, match="no checkpoint 8"):
        run("show", 8, "--state-dir", tmp_path)
    store.folder.manifest_path(3).write_bytes(b"")
    with pytest.raises(StateCorrupt, match="checkpoint 3"):
        run("show", "--state-dir", tmp_path)


def test_verify(store, tmp_path):
    assert run("verify", "--state-dir", tmp_path).count("whole") == 3
    assert run("verify", 1, "--state-dir", tmp_path).count("whole") == 1
    found = json.loads(run("verify", "--json", "--state-dir", tmp_path))
    assert [(one["number"], one["whole"], len(one["files"])) for one in found] == [
        (3, True, 3),
        (2, True, 3),
        (1, True, 3),
    ]
    store.folder.arrays_path(2).write_bytes(b"?")
    with pytest.raises(StateCorrupt, match="checkpoint 2"):
        run("verify", "--state-dir", tmp_path)
    result = CliRunner().invoke(app, ["verify", "--json", "--state-dir", str(tmp_path)])
    assert isinstance(result.exception, StateCorrupt)
    problems = [check["problem"] for one in json.loads(result.stdout) for check in one["files"] if check["problem"]]
    assert problems == ["00000002.safetensors has 1 bytes instead of 896"]


def test_rollback(store, tmp_path):
    text = run("rollback", 1, "--state-dir", tmp_path)
    assert "2: 20 examples" in text
    assert "3: 30 examples" in text
    assert store.load().tree["step"] == 1
    assert "nothing changed" in run("rollback", 1, "--state-dir", tmp_path)


def test_rollback_is_refused_while_a_daemon_runs(store, tmp_path):
    with DirectoryLock(tmp_path), pytest.raises(StateLocked):
        run("rollback", 1, "--state-dir", tmp_path)
    assert store.numbers() == [1, 2, 3]


def test_ages_and_sizes():
    assert [ago(seconds) for seconds in (-1, 30, 60, 7300, 90_000, 900_000)] == [
        "just now", "30 seconds ago", "1 minute ago", "2 hours ago", "1 day ago", "10 days ago",
    ]  # fmt: skip
    assert [megabytes(size) for size in (900, 1_500_000, 3_000_000_000)] == ["0.001 MB", "1.5 MB", "3,000.0 MB"]


def test_torch_is_not_needed():
    code = "import sys, streamlearn.cli.checkpoints; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
