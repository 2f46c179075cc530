"""The command line as a whole: quick, without torch, and clear when something is wrong."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer

from streamlearn.cli.app import app
from streamlearn.version import VERSION

from .command import ENVIRONMENT, MAIN, streamlearn

LOADED = """
import sys
from streamlearn.cli import main
sys.argv = ["streamlearn", *sys.argv[1:]]
try:
    main()
except SystemExit as exit:
    sys.stderr.write(f"exit {exit.code} torch {'torch' in sys.modules} kafka {'kafka' in sys.modules}")
"""


def quickest(*arguments: str) -> float:
    """Seconds of processor time, which is the time on the clock where nothing else runs; the best of three."""
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        streamlearn(*arguments)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return min(times)


def test_help_is_quick() -> None:
    assert quickest("--help") < 0.5


def test_bad_settings_are_answered_quickly() -> None:
    assert quickest("config", "show", "--set", "learner.method=none", "--stream", "kafka://x") < 1.0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["--version"], 0),
        (["checkpoints", "--help"], 0),
        (["dead-letters", "list", "--state-dir", "/nowhere"], 2),
        (["config", "show", "--set", "learner.method=none"], 2),
        (["config", "show", "--stream", "kafka://localhost:9092/t"], 0),
        (["config", "schema"], 0),
        (["config", "example"], 0),
        (["serve", "--set", "learner.method=none"], 2),
        (["serve", "--demo", "--stream", "log:x"], 2),
        (["follow", "--snapshots", "/nowhere"], 2),
        (["status", "--url", "http://127.0.0.1:9"], 1),
        (["export", "--state-dir", "/nowhere", "--format", "onnx", "--output", "x"], 2),
        (["bench", "--only", "nonsense"], 2),
    ],
)
def test_torch_and_kafka_stay_out(arguments: list[str], code: int) -> None:
    done = subprocess.run([sys.executable, "-c", LOADED, *arguments], env=ENVIRONMENT, capture_output=True, text=True)
    assert done.stderr.endswith(f"exit {code} torch False kafka False")


def test_version() -> None:
    assert streamlearn("--version").stdout == f"streamlearn {VERSION}\n"


def commands_of(group: typer.Typer, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    own = [
        (*path, one.name or one.callback.__name__.replace("_", "-"))
        for one in group.registered_commands
        if one.callback
    ]
    for sub in group.registered_groups:
        assert sub.typer_instance is not None
        name = str(sub.typer_instance.info.name)
        own += [(*path, name), *commands_of(sub.typer_instance, (*path, name))]
    return own


@pytest.mark.parametrize("command", commands_of(app), ids=" ".join)
def test_every_command_explains_itself(command: tuple[str, ...]) -> None:
    done = streamlearn(*command, "--help")
    assert done.returncode == 0
    assert done.stderr == ""
    assert len(done.stdout) > 200


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["config", "shw"], ["config", "show", "--jsn"], ["dead-letters", "show", "x"]]
)
def test_usage_errors(arguments: list[str]) -> None:
    done = streamlearn(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_an_error_is_red_on_a_terminal_only_and_has_its_hint() -> None:
    done = streamlearn("dead-letters", "list", "--stream", "log:/nowhere/x")
    assert done.stderr.splitlines() == [
        "error: log:/nowhere/x: there is no such log",
        "hint: say where the records are with --stream or --state-dir",
    ]


def test_a_file_that_is_no_log_is_a_stream_error(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("something else, and long enough to be looked at" * 100)
    done = streamlearn("dead-letters", "list", "--stream", f"log:{tmp_path / 'x'}")
    assert done.returncode == 3
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = " ".join([f"'{part}'" for part in MAIN] + ["config", "schema"])
    done = subprocess.run(["bash", "-c", f"{command} | head -c 10"], env=ENVIRONMENT, capture_output=True, text=True)
    assert len(done.stdout) == 10
    assert done.stderr == ""


def test_an_interrupt_is_no_traceback(tmp_path: Path) -> None:
    """A named pipe that nobody writes to keeps the command waiting."""
    fifo = tmp_path / "s.toml"
    os.mkfifo(fifo)
    process = subprocess.Popen(
        [*MAIN, "config", "show", "--config", str(fifo)],
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        text=True,
        # What a shell starts in the background ignores interrupts, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while True:  # it can be opened for writing once the command reads it
        try:
            writer = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            break
        except OSError:
            time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    os.close(writer)
    assert process.returncode == 130
    assert errors == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(shell: str) -> None:
    done = streamlearn("--show-completion", shell, environment={"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"})
    assert done.returncode == 0
    assert "_STREAMLEARN_COMPLETE" in done.stdout
