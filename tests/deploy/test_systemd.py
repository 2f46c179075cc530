"""deploy/systemd: read by systemd's own tools, and in agreement with the daemon."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from streamlearn.daemon.supervisor import REASONS, STOP_SECONDS
from streamlearn.settings.describe import example_toml
from tests.conftest import missing

from .commands import DEPLOY, check_environment, settings_of_serve

FOLDER = DEPLOY / "systemd"
UNIT = FOLDER / "streamlearn.service"


class _Unit(ConfigParser):
    def optionxform(self, optionstr: str) -> str:
        return optionstr


def service() -> dict[str, str]:
    unit = _Unit(strict=False, interpolation=None)  # not strict: a key may come again
    unit.read(UNIT)
    return dict(unit["Service"])


@pytest.fixture
def analyze(tmp_path: Path) -> list[str]:
    """`systemd-analyze`, without the unit's installation, which this machine need not have."""
    if shutil.which("systemd-analyze") is None:
        missing("systemd-analyze, of the package systemd")
    text = UNIT.read_text()
    command = re.search(r"^ExecStart=(\S+)", text, re.MULTILINE)
    assert command is not None
    (tmp_path / UNIT.name).write_text(text.replace(f"ExecStart={command.group(1)} ", f"ExecStart={sys.executable} "))
    return ["systemd-analyze", "UNIT", str(tmp_path / UNIT.name)]


def test_systemd_understands_every_line(analyze: list[str]) -> None:
    tool, _, unit = analyze
    done = subprocess.run([tool, "verify", unit], capture_output=True, text=True)
    ours = [line for line in (done.stdout + done.stderr).splitlines() if UNIT.name in line]
    assert ours == []  # what it cannot parse is told there; the exit code stays 0


def test_systemd_finds_little_exposed(analyze: list[str]) -> None:
    tool, _, unit = analyze
    done = subprocess.run([tool, "security", "--offline=yes", "--no-pager", unit], capture_output=True, text=True)
    level = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert level is not None, done.stderr
    assert float(level.group(1)) < 2  # of 10


def test_it_agrees_with_the_daemon() -> None:
    unit = service()
    assert unit["Type"] == "notify"
    assert tuple(map(int, unit["RestartPreventExitStatus"].split())) == REASONS
    assert int(unit["TimeoutStopSec"]) > STOP_SECONDS + 1
    assert unit["KillMode"] == "mixed"


def test_its_command_and_its_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    unit = service()
    command = unit["ExecStart"].replace("${STATE_DIRECTORY}", "/var/lib/streamlearn")
    command = command.replace("${CREDENTIALS_DIRECTORY}", str(tmp_path)).replace("/etc/streamlearn", str(FOLDER))
    settings = settings_of_serve(monkeypatch, shlex.split(command)[1:], {})
    assert settings.http.token is not None
    assert settings.http.token.get_secret_value() == "secret"
    assert settings.http.host == "127.0.0.1"
    assert str(settings.state_dir) == f"/var/lib/{unit['StateDirectory']}"
    name, _, path = unit["LoadCredential"].partition(":")
    assert (name, path) == ("token", "/etc/streamlearn/token")


def test_what_its_examples_leave_commented_out_is_right(tmp_path: Path) -> None:
    lines = (FOLDER / "streamlearn.env").read_text().splitlines()
    pairs = [line[1:].split("=", 1) for line in lines if re.match(r"#[A-Z_]+=", line)]
    assert pairs
    check_environment(dict(pairs))
    for line in (FOLDER / "streamlearn.toml").read_text().splitlines():
        if re.match(r"#\w", line):
            assert line.partition(" = ")[0] in example_toml()
