"""`streamlearn dead-letters` on a real embedded log."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamlearn.cli.letters import letters_numbered, newest_letters
from streamlearn.errors import BadRecord
from streamlearn.records.decode import Decoder
from streamlearn.records.encode import encode_example
from streamlearn.records.record import Example, Record
from streamlearn.stream.url import open_stream

from .command import ENVIRONMENT, MAIN, streamlearn

OCTETS = (("content-type", b"application/octet-stream"),)
BAD = [
    Record(b'{"x": [1, 2]}', b"key"),
    Record(bytes(range(4)), None, (*OCTETS, ("shape", b"3,3"), ("label", b"a"), ("trace", b"\xff\x00"))),
    Record(b"\x1b[31mnot json\n", None, (("label", b"\x1b[31m"),)),
]


def refuse(url: str, records: Sequence[Record]) -> None:
    """What the daemon does: read to the end, bad ones to the dead letters."""
    stream = open_stream(url)
    stream.open(None)
    end = sum(stream.ends().values())
    stream.append(records)
    for record in stream.poll(10_000, 1):
        try:
            if record.offset >= end:
                Decoder().decode(record)
        except BadRecord as error:
            stream.send_dead_letter(record, error.reason, error.message)
    stream.close()


def records_of(url: str) -> Sequence[Record]:
    stream = open_stream(url)
    stream.open(None)
    records = stream.poll(10_000, 0.1)
    stream.close()
    return records


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"log:{tmp_path / 'stream.log'}"
    refuse(url, [encode_example(np.zeros((2, 2), np.uint8), "a"), *BAD])
    return url


def command(*arguments: str | Path, code: int = 0) -> str:
    done = streamlearn("dead-letters", *arguments)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    return done.stderr if code else done.stdout


def listed(url: str) -> list[dict[str, Any]]:
    letters: list[dict[str, Any]] = json.loads(command("list", "--stream", url, "--json"))
    return letters


def test_list(url: str, tmp_path: Path) -> None:
    letters = listed(url)
    assert [(one["number"], one["place"], one["reason"]) for one in letters] == [
        (0, "0:1", "no-label"),
        (1, "0:2", "bad-shape"),
        (2, "0:3", "bad-json"),
    ]
    assert letters[1]["bytes"] == 4
    assert 0 <= letters[1]["age_seconds"] < 60
    table = command("list", "--state-dir", tmp_path)
    assert table.count("\n") == 8
    assert "ask for 9 bytes; there are 4" in table
    assert [one["number"] for one in json.loads(command("list", "--stream", url, "--json", "--limit", "1"))] == [2]


def test_list_of_nothing(tmp_path: Path) -> None:
    refuse(f"log:{tmp_path / 'stream.log'}", [])
    assert "No dead letters" in command("list", "--state-dir", tmp_path)


def test_a_log_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    assert "there is no such log" in command("list", "--state-dir", tmp_path, code=2)
    assert list(tmp_path.iterdir()) == []


def test_show(url: str) -> None:
    text = command("show", "1", "--stream", url)
    for expected in ("bad-shape: shape and dtype ask for 9 bytes", "0:2", "header trace", "ff 00", "00 01 02 03"):
        assert expected in text
    assert "not json" in command("show", "2", "--stream", url)
    assert json.loads(command("show", "0", "--stream", url, "--json"))["key"] == "key"
    assert "there is no dead letter 9" in command("show", "9", "--stream", url, code=2)


def test_show_raw_gives_every_byte(url: str) -> None:
    done = subprocess.run(
        [*MAIN, "dead-letters", "show", "1", "--raw", "--stream", url], env=ENVIRONMENT, capture_output=True, check=True
    )
    assert done.stdout == BAD[1].value


def test_replay_repaired(url: str) -> None:
    text = command("replay", "0", "--stream", url, "--set", "label=boot", "--set", "id=")
    assert text == f"sent letter 0 (no-label)\nSent 1 of 1 to {url}.\n"
    sent = records_of(url)[-1]
    assert (sent.value, sent.key) == (BAD[0].value, b"key")
    assert sent.headers == (("label", b"boot"), ("streamlearn.replayed-from", b"0"))
    decoded = Decoder().decode(sent)
    assert isinstance(decoded, Example)
    assert decoded.label == "boot"
    assert [one["replayed"] for one in listed(url)] == [True, False, False]


def test_replay_keeps_headers_that_are_not_repaired(url: str) -> None:
    command("replay", "1", "--stream", url, "--set", "shape=2,2")
    headers = dict(records_of(url)[-1].headers)
    expected = {"content-type": OCTETS[0][1], "shape": b"2,2", "label": b"a", "trace": b"\xff\x00"}
    assert headers == expected | {"streamlearn.replayed-from": b"1"}


def test_replay_with_another_value(url: str, tmp_path: Path) -> None:
    (tmp_path / "value").write_bytes(bytes(9))
    command("replay", "1", "--stream", url, "--value-file", tmp_path / "value")
    assert records_of(url)[-1].value == bytes(9)
    assert "goes with one number" in command("replay", "--all", "-s", url, "--value-file", tmp_path / "value", code=2)
    assert "cannot be read" in command("replay", "1", "-s", url, "--value-file", tmp_path / "none", code=2)


def test_never_twice_by_accident(url: str) -> None:
    command("replay", "0", "--stream", url, "--set", "label=boot")
    before = len(records_of(url))
    assert "letter 0 was replayed before" in command("replay", "0", "--stream", url, "--set", "label=boot", code=2)
    assert "Sent 0 of 3" in command("replay", "--all", "--stream", url)
    assert len(records_of(url)) == before
    assert "Sent 1 of 1" in command("replay", "0", "--again", "--stream", url, "--set", "label=boot")
    assert len(records_of(url)) == before + 1


def test_what_would_be_refused_again_is_not_sent(url: str) -> None:
    before = len(records_of(url))
    assert "letter 2 would be refused again: bad-json" in command("replay", "2", "--stream", url, code=2)
    text = command("replay", "--all", "--stream", url, "--set", "label=boot", "--set", "shape=2,2", "--dry-run")
    assert "Would send 1 of 3" in text, "letter 0 has two numbers, not four"
    assert len(records_of(url)) == before
    command("replay", "2", "--stream", url, "--force")
    assert records_of(url)[-1].value == BAD[2].value


def test_all_of_one_reason(url: str) -> None:
    text = command("replay", "--all", "--reason", "no-label", "--stream", url, "--set", "label=boot")
    assert text == f"sent letter 0 (no-label)\nSent 1 of 1 to {url}.\n"


def test_a_letter_that_is_refused_once_more_is_a_letter_of_its_own(url: str) -> None:
    command("replay", "2", "--stream", url, "--force")
    again = records_of(url)[-1]
    stream = open_stream(url)
    stream.send_dead_letter(again, "bad-json", "still")
    stream.close()
    *_, newest = listed(url)
    assert newest["headers"]["streamlearn.replayed-from"] == "2"
    assert not newest["replayed"]
    command("replay", str(newest["number"]), "--stream", url, "--force")
    sent = [value for name, value in records_of(url)[-1].headers if name == "streamlearn.replayed-from"]
    assert sent == [str(newest["number"]).encode()]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "give the numbers of letters, or --all"),
        (["1", "--all"], "give the numbers of letters, or --all"),
        (["1", "--reason", "no-label"], "--reason: goes with --all"),
        (["1", "--set", "lable=x"], "--set lable: no such header; did you mean label?"),
        (["1", "--set", "label"], "expected NAME=VALUE"),
        (["1", "7", "8"], "there is no dead letter 7"),
    ],
)
def test_replay_misunderstood(url: str, arguments: list[str], expected: str) -> None:
    before = len(records_of(url))
    assert expected in command("replay", "--stream", url, *arguments, code=2)
    assert len(records_of(url)) == before


def test_many_letters_are_read_from_the_newest_back(tmp_path: Path) -> None:
    url = f"log:{tmp_path / 'stream.log'}"
    refuse(url, [Record(b"x%d" % number) for number in range(1500)])
    stream = open_stream(url)
    assert [letter.number for letter in newest_letters(stream, 3)] == [1497, 1498, 1499]
    assert len(newest_letters(stream, 1200)) == 1200
    assert [letter.record.value for letter in letters_numbered(stream, [5, 1400])] == [b"x5", b"x1400"]
    stream.close()
    assert command("replay", "--all", "--force", "--stream", url).endswith(f"Sent 1500 of 1500 to {url}.\n")
    assert len(records_of(url)) == 3000
