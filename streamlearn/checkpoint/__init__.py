"""Checkpoints: the whole state of a daemon on disk, complete or not there at all."""

from streamlearn.checkpoint.folder import CheckpointInfo
from streamlearn.checkpoint.reader import FileCheck
from streamlearn.checkpoint.retention import Retention
from streamlearn.checkpoint.store import CheckpointStore, Loaded, Skipped
from streamlearn.checkpoint.tree import Rows, Tree

__all__ = [
    "CheckpointInfo",
    "CheckpointStore",
    "FileCheck",
    "Loaded",
    "Retention",
    "Rows",
    "Skipped",
    "Tree",
]
