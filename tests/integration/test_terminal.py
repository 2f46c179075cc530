"""What a person sees at a terminal, and what a program sees at a pipe."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import time
from pathlib import Path

from streamlearn.stream.url import open_stream
from tests.cli.command import ENVIRONMENT, MAIN
from tests.records.mixed import mixed
from tests.serving import SMALL, run

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def new_log(tmp_path: Path, records: int) -> str:
    url = f"log:{tmp_path / 'stream.log'}"
    stream = open_stream(url)
    stream.append(mixed(records))
    stream.close()
    return url


def at_a_terminal(state_dir: Path, url: str, *arguments: str) -> tuple[int, str]:
    """Exit code, and everything that was written to a wide terminal."""
    ours, theirs = pty.openpty()
    command = [*MAIN, "serve", "--until-idle", "--http", "127.0.0.1:0", "--state-dir", str(state_dir)]
    command += ["--stream", url, *arguments]
    for name, value in SMALL.items():
        command += ["--set", f"{name}={value}"]
    environment = {name: value for name, value in ENVIRONMENT.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    size = {"COLUMNS": "250", "LINES": "50", "TERM": "xterm-256color"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment | size)
    os.close(theirs)
    written = b""
    deadline = time.monotonic() + 120
    try:
        while time.monotonic() < deadline:
            try:
                written += os.read(ours, 65536)
            except OSError:  # the other side is closed
                return process.wait(10), written.decode()
        raise AssertionError(f"still running:\n{written.decode()[-2000:]}")
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def screen(written: str) -> list[str]:
    """What stands on the terminal in the end: of all its codes, only those that move or erase."""
    rows, row, column = [""], 0, 0
    for code, letter in re.findall(r"\x1b\[([0-9;?]*[A-Za-z])|([^\x1b])", written):
        if code.endswith("A"):
            row -= int(code[:-1] or 1)
        elif code.endswith("K"):
            rows[row] = ""
        elif letter == "\r":
            column = 0
        elif letter == "\n":
            row += 1
            rows += [""] * (row + 1 - len(rows))
        elif letter:
            rows[row] = f"{rows[row]:<{column}}"[:column] + letter + rows[row][column + 1 :]
            column += 1
    return [line.rstrip() for line in rows]


def test_live_lines_at_a_terminal(tmp_path: Path) -> None:
    code, written = at_a_terminal(tmp_path / "state", new_log(tmp_path, 6000))
    assert code == 0
    assert "Traceback" not in written
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h") > 0, "the cursor must be shown again"
    frames = re.findall(r"(idle|learning|stopped)\s+[\d,]+ examples", ESCAPES.sub("", written))
    assert len(frames) > 3, "drawn again and again"
    *log, first, second, headings, one, two, three = [line for line in screen(written) if line]
    for line in log:
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (info|warning) +[a-z]", line), line
    assert any("following the stream  url=log:" in line for line in log)
    assert re.search(r"info +stopped  examples=\d+  checkpoint=\d+$", log[-1])
    assert re.match(
        r" stopped   5,\d{3} examples  [\d,]+/s  lag 0  7 classes  learning rate 0\.0\d+  \d+ refused", first
    )
    assert re.search(r"log:.* buffer 60 of 60  checkpoint \d+ s ago at 5,\d{3}", second)
    assert headings.split() == ["class", "group", "accuracy", "on", "the", "stream", "forgotten"]
    for line, classes in ((one, "ant, bee"), (two, "cat, dog, elk"), (three, "fox, gnu")):
        assert {*line[:20].replace(",", " ").split()} >= set(classes.split(", ")), line
        assert re.search(r"\d+\.\d%\s+━+\s+\d+\.\d%\s+\d+\.\d%", line), line


def test_quiet_at_a_terminal_shows_the_log_only(tmp_path: Path) -> None:
    code, written = at_a_terminal(tmp_path / "state", new_log(tmp_path, 600), "--quiet")
    assert code == 0
    text = ESCAPES.sub("", written)
    assert " examples  " not in text
    assert "━" not in text
    for line in text.splitlines():
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (info|warning)", line), line


def test_a_pipe_gets_one_json_object_a_line(tmp_path: Path) -> None:
    daemon = run(tmp_path / "state", new_log(tmp_path, 600))
    lines = daemon.output.splitlines()
    assert len(lines) > 5
    for line in lines:
        assert {"time", "level", "logger", "message"} <= json.loads(line).keys()
    assert "\x1b" not in daemon.output
