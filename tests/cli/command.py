"""The real command in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("STREAMLEARN_")}
MAIN = [sys.executable, "-c", "from streamlearn.cli import main; main()"]


def streamlearn(
    *arguments: str | Path, environment: dict[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MAIN, *map(str, arguments)],
        env=ENVIRONMENT | {"COLUMNS": "200"} | (environment or {}),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
    )
