"""The learned model as a file that others can load: raw input in, a probability for each known class out."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from importlib.util import find_spec
from typing import Any

from streamlearn.errors import SettingsError

__all__ = ["Format", "check_installed", "export_model"]


class Format(StrEnum):
    SAFETENSORS = "safetensors"
    ONNX = "onnx"
    TORCHSCRIPT = "torchscript"


def check_installed(file_format: Format) -> None:
    """Say what is missing before anything is loaded; only ONNX needs more than streamlearn itself does."""
    missing = [name for name in ("onnx", "onnxscript") if file_format is Format.ONNX and find_spec(name) is None]
    if missing:
        raise SettingsError(
            [f"the {file_format} format needs {' and '.join(missing)}"], hint="pip install 'streamlearn[export]'"
        )


def export_model(state: Mapping[str, Any], file_format: Format) -> bytes:
    """The content of the file for a state as `Learner.state_dict` makes it. The buffer in it is not looked at."""
    check_installed(file_format)
    from streamlearn.export.model import AnsweringModel  # imports torch, which the command line does without

    model = AnsweringModel(state)
    if file_format is Format.SAFETENSORS:
        from streamlearn.export.safetensors_file import encode
    elif file_format is Format.ONNX:
        from streamlearn.export.onnx_file import encode
    else:
        from streamlearn.export.torchscript_file import encode
    return encode(model)
