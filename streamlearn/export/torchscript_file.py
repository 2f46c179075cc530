"""TorchScript: for programs that load a model with libtorch, or with torch and without streamlearn."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable

import torch
from torch.jit._trace import TracerWarning

from streamlearn.errors import StreamlearnError
from streamlearn.export.model import AnsweringModel


def encode(model: AnsweringModel) -> bytes:
    about = model.about()
    extra = {"classes.json": about["classes"], "about.json": json.dumps({k: json.loads(about[k]) for k in about})}
    content = io.BytesIO()
    with warnings.catch_warnings(), torch.no_grad():
        # torch would have everybody use torch.export. Who asks for TorchScript has a program that reads it.
        warnings.filterwarnings("ignore", r"`torch\.jit\.", FutureWarning)
        # What a model asks about its input while it is traced becomes a constant. Only the batch's size varies later,
        # so whether that did any harm is tried below instead of guessed here.
        warnings.simplefilter("ignore", TracerWarning)
        trace: Callable[..., torch.jit.ScriptModule] = torch.jit.trace  # torch gives it no types
        traced = trace(model, (model.example(),), check_trace=False)
        _try_another_batch(model, traced)
        torch.jit.save(traced, content, _extra_files=extra)
    return content.getvalue()


def _try_another_batch(model: AnsweringModel, traced: torch.jit.ScriptModule) -> None:
    inputs = model.example(3)
    try:
        same = torch.allclose(traced(inputs), model(inputs), atol=1e-5)
    except RuntimeError:
        same = False
    if not same:
        raise StreamlearnError(
            f"model {model.settings.model} as TorchScript would work for one batch size only", "use onnx"
        )
