"""Dead letters as the command line sees them: which there are, which were replayed, and how one is repaired.

A letter cannot be changed where it lies, so a replay leaves a note beside it: a letter with the reason `replayed` and
the number of the one that was sent. The note is written first. A replay that is killed in between has then sent too
little, which its user sees, and not too much, which the model would have learned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from streamlearn.errors import StreamlearnError
from streamlearn.records.headers import NAMES
from streamlearn.records.record import Headers, Record
from streamlearn.stream.dead_letters import PREFIX
from streamlearn.stream.interface import Stream

REPLAYED_FROM: Final = "streamlearn.replayed-from"
REPAIRABLE: Final = tuple(sorted({"label", "id", *NAMES}))

_NOTE: Final = "replayed"  # the reason of a note
_NOTES: Final = -1  # the partition of a note: no record is ever refused from there
_READ_FIRST: Final = 256
_SENT_AT_ONCE: Final = 500


@dataclass(frozen=True)
class Letter:
    number: int
    reason: str
    message: str
    place: str  # partition:offset of the record in its stream
    record: Record  # as it was refused
    replayed: bool = False

    @property
    def age(self) -> float:
        return max(0.0, time.time() - self.record.timestamp / 1000)


def newest_letters(stream: Stream, limit: int) -> list[Letter]:
    return _letters(stream, lambda found: len(found) >= limit)[-limit:]


def letters_numbered(stream: Stream, numbers: Iterable[int]) -> list[Letter]:
    """Those of them that are there, by number."""
    wanted = set(numbers)
    found = _letters(stream, lambda some: bool(some) and some[0].number <= min(wanted))
    return [letter for letter in found if letter.number in wanted]


def all_letters(stream: Stream) -> list[Letter]:
    return _understood(stream.dead_letters(None))


def repaired(letter: Letter, headers: Mapping[str, str], value: bytes | None = None) -> Record:
    """The record to send: without what was said about it, with these headers (an empty one is taken away)."""
    kept = [(name, old) for name, old in letter.record.headers if name not in headers and name != REPLAYED_FROM]
    new = [(name, text.encode()) for name, text in headers.items() if text]
    origin = (REPLAYED_FROM, b"%d" % letter.number)
    return letter.record._replace(
        value=letter.record.value if value is None else value,
        headers=(*kept, *new, origin),
        timestamp=time.time_ns() // 1_000_000,  # it is sent now: with its old time Kafka might delete it at once
    )


def send_back(stream: Stream, letters: Sequence[tuple[Letter, Record]]) -> None:
    for start in range(0, len(letters), _SENT_AT_ONCE):
        some = letters[start : start + _SENT_AT_ONCE]
        for letter, _ in some:
            stream.send_dead_letter(_note(letter), _NOTE, f"letter {letter.number} was sent back to the stream")
        try:
            stream.append([record for _, record in some])
        except StreamlearnError as error:
            numbers = " ".join(str(letter.number) for letter, _ in some)
            error.hint = f"perhaps none of these was sent; if so, replay them with --again: {numbers}"
            raise


def _note(letter: Letter) -> Record:
    return Record(
        b"",
        headers=((REPLAYED_FROM, b"%d" % letter.number),),
        timestamp=time.time_ns() // 1_000_000,
        partition=_NOTES,
        offset=letter.number,
    )


def _letters(stream: Stream, enough: Callable[[Sequence[Letter]], bool]) -> list[Letter]:
    """From the newest backwards until there are enough. A note is newer than its letter, so it is never missed."""
    limit = _READ_FIRST
    while True:
        raw = stream.dead_letters(limit)
        letters = _understood(raw)
        if len(raw) < limit or enough(letters):
            return letters
        limit *= 4


def _understood(raw: Sequence[Record]) -> list[Letter]:
    letters, replayed = [], set()
    for record in raw:
        letter = _understand(record)
        if letter.reason == _NOTE:
            replayed.add(_text(record.headers, REPLAYED_FROM))
        else:
            letters.append(letter)
    return [replace(letter, replayed=str(letter.number) in replayed) for letter in letters]


def _understand(record: Record) -> Letter:
    about = {name: _text(record.headers, PREFIX + name) for name in ("reason", "message", "partition", "offset")}
    own = tuple(header for header in record.headers if not header[0].startswith(PREFIX))
    place = f"{about['partition']}:{about['offset']}"
    return Letter(record.offset, about["reason"], about["message"], place, record._replace(headers=own))


def _text(headers: Headers, name: str) -> str:
    """Others may write to the topic as well: nothing is certain about these."""
    return next((value.decode(errors="replace") for key, value in headers if key == name), "")
