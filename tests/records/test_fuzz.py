"""Thousands of damaged records: nothing but BadRecord may come out, and its reason is one of the closed set."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable

import numpy as np
import pytest

from streamlearn.errors import BadRecord
from streamlearn.records.decode import REASONS, Decoder
from streamlearn.records.encode import encode_event, encode_example
from streamlearn.records.record import Event, Example, Headers, Record

from .pictures import jpeg, jpeg_with_size, png, png_bomb

GREY = np.arange(784, dtype=np.uint8).reshape(28, 28)
PNG, JPEG, BOMB = png(GREY), jpeg(np.stack([GREY] * 3, -1)), png_bomb(5_000, 5_000)
WORDS = ["label", "id", "shape", "dtype", "split", "group", "event", "content-type", "x", "image", "other"]
VALUES = [
    "",
    "28,28",
    "784",
    "0",
    "-1",
    "1e9",
    "float32",
    "uint8",
    "eval",
    "flush",
    "image/png",
    "application/json",
    "é",
]


def damaged(data: bytes, rng: random.Random) -> bytes:
    data_ = bytearray(data)
    for _ in range(rng.choice([1, 1, 3, 20])):
        if not data_:
            break
        where = rng.randrange(len(data_))
        match rng.randrange(4):
            case 0:
                data_[where] = rng.randrange(256)
            case 1:
                del data_[where:]
            case 2:
                del data_[where : where + rng.randrange(1, 50)]
            case 3:
                data_[where:where] = rng.randbytes(rng.randrange(1, 20))
    return bytes(data_)


def some_json(rng: random.Random, depth: int = 0) -> object:
    match rng.randrange(9 if depth < 5 else 6):
        case 0:
            return rng.choice([None, True, False, 10**400, -(10**20), 1e308, -0.0])
        case 1 | 2:
            return rng.randrange(-2, 300)
        case 3:
            return rng.uniform(-1e40, 1e40)
        case 4:
            return rng.choice(VALUES)
        case 5:
            return base64.b64encode(damaged(rng.choice([PNG, JPEG, BOMB]), rng)).decode()
        case 6 | 7:
            return [some_json(rng, depth + 1)] * rng.randrange(4) + [some_json(rng, depth + 1)] * rng.randrange(2)
        case _:
            return {rng.choice(WORDS): some_json(rng, depth + 1) for _ in range(rng.randrange(5))}


def octets(rng: random.Random) -> Record:
    array = GREY if rng.random() < 0.5 else rng.choice([np.nan, np.inf, 1.0]) * np.ones(64, np.float32)
    headers = (("content-type", b"application/octet-stream"), ("shape", b"64"), ("dtype", b"float32"), ("label", b"a"))
    return encode_example(GREY, "boot", id="1") if array is GREY else Record(array.tobytes(), headers=headers)


def picture(rng: random.Random) -> Record:
    data = rng.choice([PNG, JPEG, BOMB, jpeg_with_size(65_000, 65_000)])
    return Record(damaged(data, rng), headers=(("content-type", b"image/png"), ("label", b"a")))


def body(rng: random.Random) -> Record:
    fields = {"x": some_json(rng), "label": rng.choice(["a", "a", some_json(rng)]), rng.choice(WORDS): some_json(rng)}
    if rng.random() < 0.5:
        fields["image"] = fields.pop("x")
    value = json.dumps(fields).encode()
    return Record(value if rng.random() < 0.7 else damaged(value, rng))


def noise(rng: random.Random) -> Record:
    return Record(rng.randbytes(rng.choice([0, 1, 10, 1000])), key=rng.choice([None, b"", b"\xff", b"k" * 300]))


def nested(rng: random.Random) -> Record:
    opening, closing = rng.choice([(b"[", b"]"), (b'{"x":', b"}")])
    depth = rng.choice([10, 150, 250, 5_000, 150_000])
    return Record(b'{"label":"a","x":' + opening * depth + b"1" + closing * rng.choice([0, depth]) + b"}")


def huge(rng: random.Random) -> Record:
    return Record(rng.choice([b"0", b"[", b'"', b"\x00"]) * rng.choice([1_048_576, 1_048_577]))


def with_odd_headers(record: Record, rng: random.Random) -> Record:
    headers: list[tuple[str, bytes]] = list(record.headers)
    for _ in range(rng.randrange(3)):
        value = rng.choice([rng.choice(VALUES).encode(), rng.randbytes(rng.randrange(300)), b"9" * 9_000])
        headers.insert(rng.randrange(len(headers) + 1), (rng.choice(WORDS), value))
    if headers and rng.random() < 0.2:
        headers.pop(rng.randrange(len(headers)))
    rng.shuffle(headers)
    odd: Headers = tuple(headers)
    return Record(record.value, record.key, odd)


MAKERS: list[Callable[[random.Random], Record]] = [octets, picture, body, body, noise]


def check(decoder: Decoder, record: Record) -> str:
    try:
        decoded = decoder.decode(record)
    except BadRecord as error:
        refusal = error
    else:
        check_decoded(decoded)
        return ""
    assert refusal.reason in REASONS
    assert len(refusal.message) < 300
    return refusal.reason


def check_decoded(decoded: Example | Event) -> None:
    if isinstance(decoded, Example):
        assert decoded.input.dtype in (np.uint8, np.float32)
        assert 1 <= decoded.input.ndim <= 3
        assert decoded.input.size
        assert np.isfinite(decoded.input).all()
        assert 0 < len(decoded.label.encode()) <= 128
    else:
        assert isinstance(decoded, Event)


def fuzz(count: int, seed: int) -> set[str]:
    rng, decoder = random.Random(seed), Decoder()
    found = {check(decoder, with_odd_headers(rng.choice(MAKERS)(rng), rng)) for _ in range(count)}
    found |= {check(decoder, make(rng)) for make in (nested, huge) for _ in range(count // 200)}
    return found | {check(decoder, encode_event("flush"))}


def test_only_bad_records_come_out() -> None:
    found = fuzz(10_000, seed=1)
    by_the_daemon = {"wrong-shape", "too-many-classes"}
    assert found == {"", *REASONS} - by_the_daemon, "the fuzz should reach every reason there is"


@pytest.mark.long
def test_only_bad_records_come_out_of_many_more() -> None:
    for seed in range(2, 52):
        fuzz(10_000, seed)
