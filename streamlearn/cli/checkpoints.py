"""`streamlearn checkpoints`: what is kept in a state directory, whether it is whole, and the way back."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from streamlearn.errors import SettingsError, StateCorrupt
from streamlearn.lock import DirectoryLock

if TYPE_CHECKING:  # numpy comes with it, which `--help` need not wait for
    from streamlearn.checkpoint import CheckpointInfo, CheckpointStore, FileCheck
    from streamlearn.checkpoint.manifest import Manifest

app = typer.Typer(name="checkpoints", help="What is kept in a state directory, and the way back.", no_args_is_help=True)

StateDir = Annotated[
    Path,
    typer.Option("--state-dir", envvar="STREAMLEARN_STATE_DIR", help="The directory of the daemon.", show_default=True),
]
AsJson = Annotated[bool, typer.Option("--json", help="For scripts.")]
_HERE = Path("streamlearn-state")


@app.command("list")
def list_checkpoints(state_dir: StateDir = _HERE, as_json: AsJson = False) -> None:
    """All checkpoints, the newest first."""
    store = _open(state_dir)
    infos = list(reversed(store.list()))
    damaged = sorted(set(store.numbers()) - {info.number for info in infos}, reverse=True)
    if as_json:
        unreadable = [{"number": number, "damaged": True} for number in damaged]
        return _print_json([*map(_plain, infos), *unreadable])
    if not infos and not damaged:
        return Console().print(f"No checkpoints in {state_dir} yet.")
    table = Table(title=f"Checkpoints in {state_dir}", title_justify="left")
    for heading in ("Number", "Saved", "Examples", "Size", "Written", "Took"):
        table.add_column(heading, justify="left" if heading == "Saved" else "right")
    table.add_column("State")
    for info in infos:
        table.add_row(
            str(info.number),
            ago(time.time() - info.created_at),
            f"{info.examples_seen:,}",
            megabytes(info.bytes_total),
            megabytes(info.bytes_written),
            f"{info.seconds:.2f} s",
            f"{info.sha256[:12]}…",
        )
    for number in damaged:
        table.add_row(str(number), "", "", "", "", "", Text("damaged manifest", style="red"))
    Console().print(table)


@app.command()
def show(
    number: Annotated[int | None, typer.Argument(help="Which one; without it the newest.")] = None,
    state_dir: StateDir = _HERE,
    as_json: AsJson = False,
) -> None:
    """One checkpoint: what it holds, and the digest of its state."""
    info, manifest = _open(state_dir).show(number)
    if as_json:
        return _print_json(_plain(info) | _contents(manifest))
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_row("Checkpoint", str(info.number))
    table.add_row("Saved", f"{ago(time.time() - info.created_at)} ({_iso(info.created_at)}), in {info.seconds:.2f} s")
    table.add_row("Examples seen", f"{info.examples_seen:,}")
    table.add_row("Position", json.dumps(info.position))
    table.add_row("Size", f"{megabytes(info.bytes_total)}, of which {megabytes(info.bytes_written)} written anew")
    for name, stored in manifest.rows.items():
        kind = f"{stored.slots:,} slots of {'×'.join(map(str, stored.kind.shape)) or 'one'} {stored.kind.dtype}"
        table.add_row("Rows", f"{name}: {kind}, shards: {len(stored.shards)}")
    table.add_row("SHA-256", info.sha256)
    table.add_row("Made with", ", ".join(f"{library} {version}" for library, version in manifest.libraries.items()))
    table.add_row("File", str(info.path))
    Console().print(table, soft_wrap=True)


@app.command()
def verify(
    number: Annotated[int | None, typer.Argument(help="Which one; without it all.")] = None,
    state_dir: StateDir = _HERE,
    as_json: AsJson = False,
) -> None:
    """Read every byte and compare it with what was saved. Exit code 5 if anything is damaged."""
    results = _open(state_dir).verify(number)
    if as_json:
        _print_json([_verified(number, checks) for number, checks in sorted(results.items(), reverse=True)])
    else:
        _print_checks(results)
    bad = [number for number, checks in results.items() if any(check.problem for check in checks)]
    if bad:
        raise StateCorrupt(
            f"damaged in {state_dir}: {', '.join(f'checkpoint {number}' for number in bad)}",
            hint="the daemon starts from the newest one that is whole",
        )


@app.command()
def rollback(
    number: Annotated[int, typer.Argument(help="The checkpoint to go back to.")], state_dir: StateDir = _HERE
) -> None:
    """Make an older checkpoint the newest again. Not while a daemon runs on the directory."""
    store = _open(state_dir)
    with DirectoryLock(state_dir):
        discarded = store.rollback(number)
    console = Console()
    if not discarded:
        return console.print(f"Checkpoint {number} is the newest already; nothing changed.")
    from streamlearn.checkpoint import CheckpointInfo

    console.print(f"The newest checkpoint in {state_dir} is now {number}. Discarded:")
    for gone in discarded:
        if isinstance(gone, CheckpointInfo):
            age = ago(time.time() - gone.created_at)
            console.print(f"  {gone.number}: {gone.examples_seen:,} examples, saved {age}", highlight=False)
        else:
            console.print(f"  {gone.number}: {gone.reason}", highlight=False)
    console.print("Their files go when the daemon saves next; the stream is read again from the older position.")


def ago(seconds: float) -> str:
    """An age as one would say it."""
    for size, word in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {word}{'s' if count > 1 else ''} ago"
    return "just now" if seconds < 5 else f"{int(seconds)} seconds ago"


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 100_000 else f"{size / 1e6:.3f} MB"


def _open(state_dir: Path) -> CheckpointStore:
    if not state_dir.is_dir():
        raise SettingsError([f"--state-dir: {state_dir} is not a directory"])
    from streamlearn.checkpoint import CheckpointStore

    return CheckpointStore(state_dir)


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plain(info: CheckpointInfo) -> dict[str, Any]:
    return asdict(info) | {"created_at": _iso(info.created_at), "path": str(info.path)}


def _contents(manifest: Manifest) -> dict[str, Any]:
    rows = {
        name: {
            "dtype": stored.kind.dtype,
            "row_shape": list(stored.kind.shape),
            "slots": stored.slots,
            "shards": len(stored.shards),
        }
        for name, stored in manifest.rows.items()
    }
    return {"format": manifest.format, "libraries": manifest.libraries, "rows": rows}


def _verified(number: int, checks: Sequence[FileCheck]) -> dict[str, Any]:
    files = [{"path": str(check.path), "bytes": check.bytes, "problem": check.problem or None} for check in checks]
    return {"number": number, "whole": not any(check.problem for check in checks), "files": files}


def _print_checks(results: dict[int, Sequence[FileCheck]]) -> None:
    console = Console()
    if not results:
        return console.print("No checkpoints to verify.")
    for number, checks in sorted(results.items(), reverse=True):
        bad = [check for check in checks if check.problem]
        size = megabytes(sum(check.bytes for check in checks))
        if not bad:
            console.print(f"[green]whole[/]    checkpoint {number}: {len(checks)} files, {size}", highlight=False)
        for check in bad:
            console.print(f"[red]damaged[/]  checkpoint {number}: {check.path}: {check.problem}", highlight=False)


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2))
