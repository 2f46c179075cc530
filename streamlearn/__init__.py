"""streamlearn: learns from a stream for as long as it runs, and does not forget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamlearn.version import VERSION

if TYPE_CHECKING:
    from streamlearn.learner import Answers, Learner, Report
    from streamlearn.settings.learner import LearnerSettings
    from streamlearn.weights import read_weights

__version__ = VERSION
__all__ = ["Answers", "Learner", "LearnerSettings", "Report", "__version__", "read_weights"]

_HOMES = {
    "Answers": "streamlearn.learner",
    "Learner": "streamlearn.learner",
    "LearnerSettings": "streamlearn.settings.learner",
    "Report": "streamlearn.learner",
    "read_weights": "streamlearn.weights",
}


def __getattr__(name: str) -> Any:
    """Import on first use: the command line must answer before torch, which takes seconds, is there."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
