"""`serve --demo`, run to its end without a terminal, and started again."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

COMMAND = "from streamlearn.cli import main; main()"


def demo(state_dir: Path) -> subprocess.CompletedProcess[str]:
    arguments = ["serve", "--demo", "--until-idle", "--http", "127.0.0.1:0", "--state-dir", str(state_dir)]
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments], capture_output=True, text=True, timeout=300, check=True
    )


def test_the_demo_remembers_what_plain_descent_forgets_and_resumes(tmp_path: Path) -> None:
    first = demo(tmp_path)
    summary = re.search(r"all ten\D+(\d+)%\D+(\d+)%", first.stdout)
    assert summary is not None, first.stdout
    ours, plain = map(int, summary.groups())
    assert ours > 65
    assert plain <= 25
    assert "Traceback" not in first.stderr
    again = demo(tmp_path)
    assert "all ten" in again.stdout
    assert '"message": "restored"' in again.stderr
    assert "new class" not in again.stderr  # nothing is learned twice
