"""Data sets as their makers publish them, read from local files: nothing here reaches for the network."""

from replay_producers.datasets.dataset import DataSet, Part

__all__ = ["DataSet", "Part"]
