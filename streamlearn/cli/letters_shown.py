"""Dead letters on the terminal: others wrote them, so nothing in them may paint it or break a line."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from streamlearn.cli.checkpoints import ago
from streamlearn.cli.letters import Letter
from streamlearn.logs import one_line

_PREVIEW_BYTES = 512


def described(letter: Letter) -> dict[str, Any]:
    return {
        "number": letter.number,
        "place": letter.place,
        "reason": letter.reason,
        "message": letter.message,
        "age_seconds": round(letter.age, 3),
        "bytes": len(letter.record.value),
        "replayed": letter.replayed,
        "key": None if letter.record.key is None else letter.record.key.decode(errors="replace"),
        "headers": {name: value.decode(errors="replace") for name, value in letter.record.headers},
    }


def print_table(url: str, letters: list[Letter]) -> None:
    # Into a pipe every letter stays on its line.
    console = Console(width=None if sys.stdout.isatty() else 250)
    table = Table(title=f"Dead letters in {url}", title_justify="left")
    for heading in ("Number", "Place", "Reason", "Message", "Age", "Bytes", "Replayed"):
        table.add_column(heading, justify="right" if heading in ("Number", "Bytes") else "left")
    for letter in letters:
        cells = (str(letter.number), letter.place, letter.reason, letter.message, ago(letter.age))
        row = (*cells, f"{len(letter.record.value):,}", "yes" if letter.replayed else "")
        table.add_row(*(Text(one_line(cell)) for cell in row))
    console.print(table)


def readable(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.hex(" ")


def preview(value: bytes) -> str:
    """Text as text, everything else as a hexdump."""
    start = value[:_PREVIEW_BYTES]
    more = f"\n... {len(value) - len(start):,} bytes more (--raw gives all)" if len(value) > len(start) else ""
    text = start.decode(errors="ignore")
    if len(text.encode()) >= len(start) - 3 and all(letter.isprintable() or letter in "\n\t" for letter in text):
        return "\n".join(one_line(line) for line in text.expandtabs().split("\n")) + more
    return "\n".join(_hex_line(value, at) for at in range(0, len(start), 16)) + more


def _hex_line(value: bytes, at: int) -> str:
    row = value[at : at + 16]
    return f"{at:06x}  {row.hex(' '):<47}  {''.join(chr(byte) if 32 <= byte < 127 else '.' for byte in row)}"
