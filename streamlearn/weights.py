"""Weights of a torchvision model from a local file."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from streamlearn.errors import SettingsError


def read_weights(path: Path | str) -> Mapping[str, Tensor]:
    """A .safetensors file, or a .pth file as torchvision publishes them. Only tensors are read: no code is run."""
    path = Path(path)
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise SettingsError([f"weights: there is no file {path}"]) from None
    except (OSError, RuntimeError, SafetensorError, pickle.UnpicklingError, EOFError) as error:
        raise SettingsError([f"weights: {path} cannot be read as weights: {str(error).splitlines()[0]}"]) from None
    if not isinstance(tensors, Mapping) or not all(isinstance(tensor, Tensor) for tensor in tensors.values()):
        raise SettingsError([f"weights: {path} holds something else than named tensors"])
    return tensors
