"""Every form a record may take, and what becomes of it."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import numpy as np
import pytest

from streamlearn.errors import BadRecord
from streamlearn.records.decode import REASONS, Decoder, Limits
from streamlearn.records.encode import encode_event, encode_example
from streamlearn.records.record import Event, Example, Record

from .pictures import jpeg, png

GREY = np.arange(12, dtype=np.uint8).reshape(3, 4)
COLOUR = np.arange(36, dtype=np.uint8).reshape(3, 4, 3)


def record(value: bytes, key: bytes | None = None, **headers: str | bytes) -> Record:
    pairs = ((k.replace("_", "-"), v if isinstance(v, bytes) else v.encode()) for k, v in headers.items())
    return Record(value, key, tuple(pairs))


def octets(array: np.ndarray[Any, Any] = GREY, **headers: str | bytes) -> Record:
    defaults = {"content_type": "application/octet-stream", "shape": ",".join(map(str, array.shape)), "label": "boot"}
    return record(array.tobytes(), **{**defaults, **headers})


def body(**fields: object) -> Record:
    return Record(json.dumps(fields).encode())


def example(record: Record, limits: Limits | None = None) -> Example:
    decoded = Decoder(limits).decode(record)
    assert isinstance(decoded, Example)
    return decoded


def reason(record: Record, limits: Limits | None = None) -> str:
    with pytest.raises(BadRecord) as caught:
        Decoder(limits).decode(record)
    assert caught.value.reason in REASONS
    assert len(caught.value.message) < 300
    assert "\n" not in caught.value.message
    return caught.value.reason


class TestOctets:
    @pytest.mark.parametrize("array", [GREY, COLOUR, GREY.ravel()])
    def test_bytes_without_dtype(self, array: np.ndarray[Any, Any]) -> None:
        decoded = example(octets(array))
        assert decoded.input.dtype == np.uint8
        np.testing.assert_array_equal(decoded.input, array)
        assert (decoded.label, decoded.id, decoded.group, decoded.split) == ("boot", None, None, "train")

    def test_floats(self) -> None:
        array = np.array([0.5, -1e30, 3e-42], np.float32)
        decoded = example(octets(array, dtype="float32"))
        assert decoded.input.dtype == np.float32
        np.testing.assert_array_equal(decoded.input, array)

    def test_nothing_is_copied(self) -> None:
        value = bytes(784)
        decoded = example(record(value, content_type="application/octet-stream", shape="28,28", label="a"))
        assert not decoded.input.flags.owndata
        assert decoded.input.ctypes.data == np.frombuffer(value, np.uint8).ctypes.data

    def test_all_headers(self) -> None:
        decoded = example(octets(id="7", split="eval", group="shoes", label="botte d’été", traceparent=b"\xff"))
        assert (decoded.label, decoded.id, decoded.group, decoded.split) == ("botte d’été", "7", "shoes", "eval")

    @pytest.mark.parametrize(
        ("headers", "expected"),
        [
            ({"shape": "3,5"}, "bad-shape"),
            ({"shape": "0,4"}, "bad-shape"),
            ({"shape": "-3,-4"}, "bad-shape"),
            ({"shape": ""}, "bad-shape"),
            ({"shape": "1,3,4,1"}, "bad-shape"),
            ({"shape": "3,4,"}, "bad-shape"),
            ({"shape": "٣,٤"}, "bad-shape"),
            ({"shape": "9" * 5000}, "bad-shape"),
            ({"shape": "99999,99999"}, "image-too-large"),
            ({"shape": b"\xff"}, "bad-utf8"),
            ({"dtype": "float32"}, "bad-shape"),
            ({"dtype": "float64"}, "bad-dtype"),
            ({"dtype": "object"}, "bad-dtype"),
            ({"label": ""}, "bad-label"),
            ({"label": "x" * 129}, "bad-label"),
            ({"label": b"\xc3"}, "bad-utf8"),
            ({"id": "x" * 257}, "bad-header"),
            ({"group": "x" * 129}, "bad-header"),
            ({"split": "test"}, "bad-split"),
            ({"event": "stop"}, "unknown-event"),
            ({"content_type": "application/x-pickle"}, "unknown-content-type"),
        ],
    )
    def test_refused(self, headers: dict[str, str | bytes], expected: str) -> None:
        assert reason(octets(**headers)) == expected

    def test_missing_parts(self) -> None:
        whole = octets()
        for name, expected in (("shape", "bad-shape"), ("label", "no-label")):
            headers = tuple(header for header in whole.headers if header[0] != name)
            assert reason(Record(whole.value, headers=headers)) == expected
        assert reason(Record(b"", headers=whole.headers)) == "empty"
        assert reason(octets(), Limits(record_bytes=11)) == "too-large"

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_not_finite(self, bad: float) -> None:
        assert reason(octets(np.array([0, bad, 1], np.float32), dtype="float32")) == "not-finite"

    def test_the_last_of_two_headers_holds(self) -> None:
        whole = octets()
        twice = Record(whole.value, headers=(*whole.headers, ("label", b"shoe"), ("split", b"eval")))
        assert (example(twice).label, example(twice).split) == ("shoe", "eval")

    @pytest.mark.parametrize(
        ("key", "expected"), [(b"k1", "k1"), (b"", None), (None, None), (b"\xff\x00", "ff00"), ("é".encode(), "é")]
    )
    def test_the_key_is_the_id_where_no_header_is(self, key: bytes | None, expected: str | None) -> None:
        whole = octets()
        assert example(Record(whole.value, key, whole.headers)).id == expected
        assert example(Record(whole.value, key, (*whole.headers, ("id", b"own")))).id == "own"

    def test_a_key_too_long_to_be_an_id(self) -> None:
        whole = octets()
        assert reason(Record(whole.value, b"k" * 257, whole.headers)) == "bad-header"

    def test_caches_stay_small_and_right(self) -> None:
        decoder = Decoder()
        for number in range(5000):
            decoded = decoder.decode(octets(label=f"c{number}", group=f"g{number}"))
            assert isinstance(decoded, Example)
            assert (decoded.label, decoded.group) == (f"c{number}", f"g{number}")
        assert len(decoder._labels) <= 2048
        assert len(decoder._meanings) <= 2048


class TestEvents:
    @pytest.mark.parametrize("kind", ["end-of-group", "flush"])
    def test_in_a_header_or_in_a_body(self, kind: Any) -> None:
        assert Decoder().decode(encode_event(kind)) == Event(kind)
        assert Decoder().decode(body(event=kind)) == Event(kind)

    def test_the_header_wins(self) -> None:
        assert Decoder().decode(record(b'{"event": "flush"}', event="end-of-group")) == Event("end-of-group")
        assert reason(record(b'{"event": "flush"}', event="example")) == "no-label"

    def test_an_event_that_says_it_is_an_example_is_one(self) -> None:
        assert example(octets(event="example")).label == "boot"
        assert example(body(event="example", label="a", x=[1])).label == "a"


class TestJson:
    def test_integers_in_rows_are_a_picture(self) -> None:
        for array in (GREY, COLOUR):
            decoded = example(body(x=array.tolist(), label="boot"))
            assert decoded.input.dtype == np.uint8
            np.testing.assert_array_equal(decoded.input, array)

    @pytest.mark.parametrize("x", [[1, 2, 300], [0.5, 1, -2], [[0.5, 1], [2, 3]], [1e-50]])
    def test_everything_else_is_floats(self, x: list[Any]) -> None:
        decoded = example(body(x=x, label="boot"))
        assert decoded.input.dtype == np.float32
        np.testing.assert_array_equal(decoded.input, np.array(x, np.float32))

    def test_shape_and_dtype_headers_decide(self) -> None:
        flat = json.dumps({"x": list(range(12)), "label": "boot"}).encode()
        np.testing.assert_array_equal(example(record(flat, shape="3,4")).input, GREY)
        assert example(record(flat, shape="3,4", dtype="float32")).input.dtype == np.float32
        assert example(record(flat, dtype="uint8")).input.dtype == np.uint8
        assert reason(record(flat, shape="3,5")) == "bad-shape"
        assert reason(record(b'{"x": [0.5], "label": "a"}', dtype="uint8")) == "bad-dtype"

    def test_fields_of_the_body(self) -> None:
        decoded = example(body(x=[1], label="boot", id="7", group="shoes", split="eval", more={"a": None}))
        assert (decoded.label, decoded.id, decoded.group, decoded.split) == ("boot", "7", "shoes", "eval")
        assert example(body(x=[1], label="boot", id=7)).id == "7"
        assert example(Record(b'{"x": [1], "label": "a"}', b"key")).id == "key"

    def test_headers_win_over_the_body(self) -> None:
        value = json.dumps({"x": [1], "label": "a", "id": "a", "group": "a", "split": "train"}).encode()
        decoded = example(record(value, label="b", id="b", group="b", split="eval"))
        assert (decoded.label, decoded.id, decoded.group, decoded.split) == ("b", "b", "b", "eval")

    @pytest.mark.parametrize("encode", [png, jpeg])
    def test_a_picture_in_base64(self, encode: Any) -> None:
        decoded = example(body(image=base64.b64encode(encode(GREY)).decode(), label="boot"))
        assert decoded.input.shape == (3, 4)

    def test_content_type_with_parameters(self) -> None:
        assert example(record(b'{"x":[1],"label":"a"}', content_type="Application/JSON; charset=utf-8")).label == "a"

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (b"{", "bad-json"),
            (b"[1]", "bad-json"),
            (b"null", "bad-json"),
            (b'{"x": [1], "label": "\xff"}', "bad-utf8"),
            (b'{"x": [1], "label": "\\ud800"}', "bad-json"),
            (b'{"x": [NaN], "label": "a"}', "bad-json"),
            (b'{"x": [Infinity], "label": "a"}', "bad-json"),
            (b'{"x": [1]}', "no-label"),
            (b'{"x": [1], "label": null}', "no-label"),
            (b'{"x": [1], "label": ""}', "bad-label"),
            (b'{"x": [1], "label": 3}', "bad-label"),
            (b'{"x": [1], "label": "%s"}' % (b"x" * 129), "bad-label"),
            (b'{"label": "a"}', "no-input"),
            (b'{"label": "a", "x": [1], "image": ""}', "no-input"),
            (b'{"label": "a", "x": 1}', "bad-shape"),
            (b'{"label": "a", "x": []}', "bad-shape"),
            (b'{"label": "a", "x": [[]]}', "bad-shape"),
            (b'{"label": "a", "x": [[1, 2], [3]]}', "bad-shape"),
            (b'{"label": "a", "x": [[1], 2]}', "bad-shape"),
            (b'{"label": "a", "x": [1, [2]]}', "bad-shape"),
            (b'{"label": "a", "x": [[[[1]]]]}', "bad-shape"),
            (b'{"label": "a", "x": ["1"]}', "bad-dtype"),
            (b'{"label": "a", "x": [true]}', "bad-dtype"),
            (b'{"label": "a", "x": [null]}', "bad-dtype"),
            (b'{"label": "a", "x": [[1, 256]]}', "bad-dtype"),
            (b'{"label": "a", "x": [[1, -1]]}', "bad-dtype"),
            (b'{"label": "a", "x": [1e39]}', "not-finite"),
            (b'{"label": "a", "x": [-1e308]}', "not-finite"),
            (b'{"label": "a", "x": [1%s]}' % (b"0" * 400), "not-finite"),
            (b'{"label": "a", "x": [[1%s]]}' % (b"0" * 400), "bad-dtype"),
            (b'{"label": "a", "x": [1%s]}' % (b"0" * 100_000), "bad-json"),
            (b'{"label": "a", "x": [1], "split": "test"}', "bad-split"),
            (b'{"label": "a", "x": [1], "split": 1}', "bad-split"),
            (b'{"label": "a", "x": [1], "group": 1}', "bad-header"),
            (b'{"label": "a", "x": [1], "id": [1]}', "bad-header"),
            (b'{"label": "a", "x": [1], "event": "stop"}', "unknown-event"),
            (b'{"label": "a", "image": "%%%"}', "bad-image"),
            (b'{"label": "a", "image": "\xc3\xa9"}', "bad-image"),
            (b'{"label": "a", "image": "aGVsbG8="}', "bad-image"),
            (b'{"label": "a", "image": 1}', "bad-image"),
            (b"[" * 1_000_000, "bad-json"),
            (b'{"a":' * 200_000, "bad-json"),
        ],
        ids=range(42),
    )
    def test_refused(self, value: bytes, expected: str) -> None:
        assert reason(Record(value)) == expected

    def test_many_pixels_in_a_small_limit(self) -> None:
        assert reason(body(x=GREY.tolist(), label="a"), Limits(image_pixels=11)) == "image-too-large"


class TestEncode:
    @pytest.mark.parametrize(
        ("array", "label", "expected"),
        [
            (np.zeros(3, np.int64), "a", "bad-dtype"),
            (np.zeros(3, bool), "a", "bad-dtype"),
            (np.zeros((1, 1, 1, 1), np.uint8), "a", "bad-shape"),
            (np.float32(1), "a", "bad-shape"),
            (np.zeros((0, 3), np.uint8), "a", "bad-shape"),
            (np.array([np.nan]), "a", "not-finite"),
            (np.array([1e300]), "a", "not-finite"),
            (np.zeros(3), "", "bad-label"),
            (np.zeros(3), "\ud800", "bad-utf8"),
        ],
    )
    def test_refuses_what_the_decoder_would(self, array: np.ndarray[Any, Any], label: str, expected: str) -> None:
        with pytest.raises(BadRecord) as caught:
            encode_example(array, label)
        assert caught.value.reason == expected

    def test_doubles_are_sent_as_float32(self) -> None:
        assert example(encode_example(np.array([0.1, 2]), "a")).input.dtype == np.float32

    def test_an_array_in_another_order(self) -> None:
        turned = np.asfortranarray(COLOUR)
        np.testing.assert_array_equal(example(encode_example(turned, "a")).input, COLOUR)

    def test_timestamp(self) -> None:
        assert encode_example(GREY, "a", timestamp=5).timestamp == 5
        assert abs(encode_example(GREY, "a").timestamp / 1000 - time.time()) < 60


def test_decoding_an_array_costs_microseconds() -> None:
    """Measured 3 on the development machine; the bound leaves room for a busy one."""
    records = [encode_example(np.zeros((28, 28), np.uint8), f"class {n % 10}", id=str(n)) for n in range(5000)]
    decoder, best = Decoder(), float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for one in records:
            decoder.decode(one)
        best = min(best, (time.perf_counter() - start) / len(records))
    assert best < 20e-6
