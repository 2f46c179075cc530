"""safetensors: the network's weights under their own names, and all else that an answer needs in the metadata."""

from __future__ import annotations

from safetensors.torch import save

from streamlearn.export.model import AnsweringModel


def encode(model: AnsweringModel) -> bytes:
    weights = {name: tensor.contiguous() for name, tensor in model.network.state_dict().items()}
    return save(weights, metadata=model.about())
