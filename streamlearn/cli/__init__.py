"""The command line: one file a command. What is heavy is imported by the command that needs it."""

from __future__ import annotations


def main() -> None:
    """The entry point `streamlearn`."""
    from streamlearn.cli.app import run

    run()
