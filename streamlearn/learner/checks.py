"""Is this call one the learner can carry out? Answered before anything changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from streamlearn.errors import BadInput, TooManyClasses
from streamlearn.learner.inputs import Inputs
from streamlearn.records.record import Array

if TYPE_CHECKING:
    from streamlearn.learner.learner import Learner


def check_inputs(inputs: object, like: Inputs | None) -> None:
    """A batch of uint8 pictures or float32 vectors, of the kind learned before if there was one."""
    if not isinstance(inputs, np.ndarray):
        raise BadInput(f"inputs must be a numpy array, not {type(inputs).__name__}")
    if like is not None and inputs.dtype == like.dtype == np.uint8 and inputs.shape[1:] == like.shape:
        return  # what comes nearly always is let through at once
    if inputs.dtype == np.uint8:
        if inputs.ndim not in (3, 4):
            raise BadInput(
                f"uint8 inputs have shape {inputs.shape}", "a batch of pictures is (count, height, width[, channels])"
            )
    elif inputs.dtype == np.float32:
        if inputs.ndim != 2:
            raise BadInput(f"float32 inputs have shape {inputs.shape}", "a batch of feature vectors is (count, length)")
    else:
        raise BadInput(f"inputs are {inputs.dtype}", "give pictures as uint8 and features as float32")
    if 0 in inputs.shape[1:]:
        raise BadInput(f"inputs have shape {inputs.shape}: there is nothing in them")
    if like is not None and (inputs.shape[1:] != like.shape or inputs.dtype != like.dtype):
        raise BadInput(
            f"inputs are {inputs.dtype} of shape {inputs.shape[1:]}, "
            f"but this learner knows {like.dtype} of shape {like.shape}"
        )
    if inputs.dtype == np.float32 and not np.isfinite(inputs).all():
        raise BadInput("inputs hold values that are not finite")


def check_call(
    learner: Learner,
    inputs: Array,
    labels: Sequence[str],
    groups: Sequence[str | None] | None,
    ids: Sequence[str | None] | None,
) -> None:
    check_inputs(inputs, learner.method.inputs if learner.method else None)
    if isinstance(labels, str):
        raise BadInput("labels is one string: give a sequence with a label for each input")
    count, known = len(inputs), learner.classes.index
    if not (len(labels) == count and (groups is None or len(groups) == count) and (ids is None or len(ids) == count)):
        for name, given in (("labels", labels), ("groups", groups), ("ids", ids)):
            if given is not None and len(given) != count:
                raise BadInput(f"there are {count} inputs but {len(given)} {name}")
    strangers = {label for label in labels if label not in known}
    if not strangers:
        return
    for label in strangers:
        if not isinstance(label, str):
            raise BadInput(f"label {label!r} is not a string", "labels are class names, such as 'boot'")
        if not label:
            raise BadInput("a label is empty")
    most = learner.settings.max_classes
    if len(known) + len(strangers) > most:
        raise TooManyClasses(
            f"{len(strangers)} new classes would make {len(known) + len(strangers)}, more than max_classes {most}",
            f"the first is {sorted(strangers)[0]!r}; raise max_classes if they are meant",
        )
