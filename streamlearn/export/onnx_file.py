"""ONNX: for onnxruntime and everything else that reads it. One file, weights inside."""

from __future__ import annotations

import onnx
import torch

from streamlearn.errors import SettingsError, StreamlearnError
from streamlearn.export.model import AnsweringModel

MOST_BYTES = 2**31 - 2**20  # a protobuf message ends at 2 GiB; some of it is not weights


def encode(model: AnsweringModel) -> bytes:
    size = sum(tensor.nbytes for tensor in model.state_dict().values())
    if size > MOST_BYTES:
        raise SettingsError([f"{size:,} bytes of weights do not fit into one ONNX file"], "use torchscript")
    try:
        with torch.no_grad():
            program = torch.onnx.export(
                model,
                (model.example(),),
                input_names=["inputs"],
                output_names=["probabilities"],
                dynamic_shapes=({0: torch.export.Dim("batch")},),
                dynamo=True,
                verbose=False,
            )
    except torch.onnx.OnnxExporterError as error:
        why = str(error).strip().splitlines()[0]
        raise StreamlearnError(
            f"torch cannot write model {model.settings.model} as ONNX: {why}", "use torchscript"
        ) from error
    assert program is not None
    proto = program.model_proto
    for node in proto.graph.node:
        node.ClearField("metadata_props")  # where in whose Python files it came from: nobody else's business
    onnx.helper.set_model_props(proto, model.about())
    onnx.checker.check_model(proto)
    content: bytes = proto.SerializeToString()
    return content
