"""TorchScript: for programs that load a model with libtorch, or with torch and without streamlearn."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable

import torch

from streamlearn.export.model import AnsweringModel


def encode(model: AnsweringModel) -> bytes:
    about = model.about()
    extra = {"classes.json": about["classes"], "about.json": json.dumps({k: json.loads(about[k]) for k in about})}
    content = io.BytesIO()
    with warnings.catch_warnings(), torch.no_grad():
        # torch would have everybody use torch.export. Who asks for TorchScript has a program that reads it.
        warnings.filterwarnings("ignore", r"`torch\.jit\.", FutureWarning)
        trace: Callable[..., torch.jit.ScriptModule] = torch.jit.trace  # torch gives it no types
        torch.jit.save(trace(model, (model.example(),), check_trace=False), content, _extra_files=extra)
    return content.getvalue()
