"""The command line: one file a command. What is heavy is imported by the command that needs it."""

from __future__ import annotations

import sys


def main() -> None:
    """The entry point `streamlearn`."""
    try:
        from streamlearn.cli.app import run

        run()
    except KeyboardInterrupt:  # also while still importing
        sys.exit(130)
