"""`streamlearn dead-letters`: look at the records that could not be learned, and send them back once they can."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamlearn.cli.options import ConfigFile, StateDir, StreamUrl, assignments, load_from_flags
from streamlearn.errors import BadRecord, SettingsError

if TYPE_CHECKING:
    from streamlearn.cli.letters import Letter
    from streamlearn.records.record import Record
    from streamlearn.settings.daemon import Settings
    from streamlearn.stream.interface import Stream

app = typer.Typer(
    name="dead-letters",
    help="Records that could not be learned: list them, look at one, repair them and send them back.",
    epilog="A record that cannot be an example is kept untouched with the reason: in <topic>.dead-letters on Kafka, in "
    "a table of its own in the embedded log.",
    no_args_is_help=True,
)

AsJson = Annotated[bool, typer.Option("--json", help="For scripts.")]


@app.command("list")
def list_letters(
    stream: StreamUrl = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="The newest so many.")] = 50,
    as_json: AsJson = False,
) -> None:
    """The newest dead letters, the newest last: number, place in the stream, reason, age and size."""
    from streamlearn.cli.letters import newest_letters
    from streamlearn.cli.letters_shown import described, print_table

    with _opened(config, stream, state_dir) as (source, _):
        letters = newest_letters(source, limit)
    if as_json:
        typer.echo(json.dumps([described(letter) for letter in letters], indent=2))
    elif not letters:
        typer.echo(f"No dead letters in {source.url}.")
    else:
        print_table(source.url, letters)


@app.command()
def show(
    number: Annotated[int, typer.Argument(help="The number that list gives.")],
    stream: StreamUrl = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
    raw: Annotated[bool, typer.Option("--raw", help="Only the value, byte for byte: show 3 --raw > FILE.")] = False,
) -> None:
    """One dead letter: why it was refused, its headers, and the beginning of its value."""
    from streamlearn.cli.letters_shown import described, preview, readable
    from streamlearn.logs import one_line

    with _opened(config, stream, state_dir) as (source, _):
        (letter,) = _numbered(source, [number])
    if raw:
        sys.stdout.buffer.write(letter.record.value)
        sys.stdout.buffer.flush()
        return
    if as_json:
        typer.echo(json.dumps(described(letter), indent=2))
        return
    lines = {"letter": str(number), "refused as": f"{letter.reason}: {letter.message}", "place": letter.place}
    lines |= {"replayed": "yes" if letter.replayed else "no", "size": f"{len(letter.record.value):,} bytes"}
    if letter.record.key is not None:
        lines["key"] = readable(letter.record.key)
    lines |= {f"header {name}": readable(value) for name, value in letter.record.headers}
    for name, text in lines.items():
        typer.echo(f"{typer.style(f'{name:<22}', bold=True)} {one_line(text)}")
    typer.echo(preview(letter.record.value))


@app.command()
def replay(
    numbers: Annotated[list[int] | None, typer.Argument(help="The numbers that list gives.")] = None,
    stream: StreamUrl = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    everything: Annotated[bool, typer.Option("--all", help="Every letter that was not replayed yet.")] = False,
    reason: Annotated[str | None, typer.Option("--reason", help="With --all: only those refused as this.")] = None,
    headers: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="HEADER=VALUE",
            help="Repair a header, such as label=boot or shape=28,28; HEADER= takes it away. May be repeated.",
        ),
    ] = None,
    value_file: Annotated[
        Path | None, typer.Option("--value-file", metavar="FILE", help="Send this as the value (of one letter).")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Also what was replayed before.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Also what would be refused again.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be sent, and send nothing.")] = False,
) -> None:
    """Send letters back to the stream, as they are or repaired, to be learned like any other record.

    What was replayed is remembered, and not replayed again by accident. What would be refused again is not sent: with
    --all it is left out, by number it is an error. The records that are sent have the header streamlearn.replayed-from.
    """
    from streamlearn.cli.letters import all_letters, repaired, send_back

    if bool(numbers) == everything:
        raise SettingsError(["replay: give the numbers of letters, or --all"])
    if reason is not None and not everything:
        raise SettingsError(["--reason: goes with --all"])
    repairs = _repairs(headers)
    value = _value(value_file, numbers)
    with _opened(config, stream, state_dir) as (source, settings):
        if everything:
            chosen = [letter for letter in all_letters(source) if reason in (None, letter.reason)]
        else:
            chosen = _numbered(source, numbers or [])
        fresh = [letter for letter in chosen if again or not letter.replayed]
        records = [(letter, repaired(letter, repairs, value)) for letter in fresh]
        refusals = {} if force else _refusals(records, settings)
        if not everything:
            _insist(chosen, fresh, refusals)
        good = [(letter, record) for letter, record in records if letter.number not in refusals]
        if not dry_run:
            send_back(source, good)
    for letter, _ in good:
        typer.echo(f"{'would send' if dry_run else 'sent'} letter {letter.number} ({letter.reason})")
    for number, why in refusals.items():
        typer.echo(f"left out letter {number}: it would be refused again: {why}")
    before = f", {len(chosen) - len(fresh)} replayed before" if len(chosen) > len(fresh) else ""
    typer.echo(f"{'Would send' if dry_run else 'Sent'} {len(good)} of {len(chosen)} to {source.url}{before}.")


@contextmanager
def _opened(config: Path | None, url: str | None, state_dir: Path | None) -> Iterator[tuple[Stream, Settings]]:
    settings = load_from_flags(config, url, state_dir).settings
    from streamlearn.stream.url import LogAddress, open_stream, parse_url

    address = parse_url(settings.stream_url)
    if isinstance(address, LogAddress) and not address.path.is_file():
        raise SettingsError(
            [f"{settings.stream_url}: there is no such log"],
            hint="say where the records are with --stream or --state-dir",
        )
    stream = open_stream(settings.stream_url, settings.stream)
    try:
        yield stream, settings
    finally:
        stream.close()


def _numbered(stream: Stream, numbers: list[int]) -> list[Letter]:
    from streamlearn.cli.letters import letters_numbered

    letters = letters_numbered(stream, numbers)
    found = {letter.number for letter in letters}
    if missing := [number for number in numbers if number not in found]:
        raise SettingsError(
            [f"there is no dead letter {number} in {stream.url}" for number in missing],
            hint="streamlearn dead-letters list shows their numbers",
        )
    return letters


def _repairs(headers: list[str] | None) -> dict[str, str]:
    from difflib import get_close_matches

    from streamlearn.cli.letters import REPAIRABLE

    repairs = dict(assignments(headers or ()))
    faults = []
    for name in repairs.keys() - set(REPAIRABLE):
        near = get_close_matches(name, REPAIRABLE, 1)
        meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(REPAIRABLE)}"
        faults.append(f"--set {name}: no such header; {meant}")
    if faults:
        raise SettingsError(sorted(faults))
    return repairs


def _value(file: Path | None, numbers: list[int] | None) -> bytes | None:
    if file is None:
        return None
    if len(numbers or ()) != 1:
        raise SettingsError(["--value-file: goes with one number, each letter has a value of its own"])
    try:
        return file.read_bytes()
    except OSError as error:
        raise SettingsError([f"--value-file: {file} cannot be read: {error.strerror}"]) from error


def _refusals(records: list[tuple[Letter, Record]], settings: Settings) -> dict[int, str]:
    """Which of them the daemon would refuse again, as far as one can tell without what it has learned."""
    from streamlearn.records.decode import Decoder

    decoder, refusals = Decoder(settings.records.limits()), {}
    for letter, record in records:
        try:
            decoder.decode(record)
        except BadRecord as error:
            refusals[letter.number] = f"{error.reason}: {error.message}"
    return refusals


def _insist(chosen: list[Letter], fresh: list[Letter], refusals: dict[int, str]) -> None:
    """What was asked for by number is sent completely or not at all."""
    faults = [f"letter {letter.number} was replayed before" for letter in chosen if letter not in fresh]
    hints = ["--again sends it once more"] if faults else []
    if refusals:
        faults += [f"letter {number} would be refused again: {why}" for number, why in refusals.items()]
        hints.append("repair it with --set or --value-file; --force sends it anyway")
    if faults:
        raise SettingsError(faults, hint="; ".join(hints))
