"""What the encoder makes, the decoder takes, whatever the example."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from streamlearn.records.decode import Decoder
from streamlearn.records.encode import encode_example
from streamlearn.records.record import Example

SHAPES = npst.array_shapes(min_dims=1, max_dims=3, max_side=12)
BYTES = npst.arrays(np.uint8, SHAPES)
FLOATS = npst.arrays(np.float32, SHAPES, elements=st.floats(width=32, allow_nan=False, allow_infinity=False))


def names(limit: int) -> st.SearchStrategy[str]:
    return st.text(min_size=1, max_size=limit // 4)  # UTF-8 takes up to four bytes


@settings(deadline=None)  # other tests may hold the processor
@given(
    array=BYTES | FLOATS,
    label=names(128),
    id=st.none() | names(256),
    group=st.none() | names(128),
    split=st.sampled_from(["train", "eval"]),
)
def test_an_example_survives_the_stream(
    array: np.ndarray[Any, Any], label: str, id: str | None, group: str | None, split: Any
) -> None:
    decoded = Decoder().decode(encode_example(array, label, id=id, group=group, split=split))
    assert isinstance(decoded, Example)
    np.testing.assert_array_equal(decoded.input, array, strict=True)
    assert (decoded.label, decoded.id, decoded.group, decoded.split) == (label, id, group, split)
