"""How well each class group is known, now and over time."""

from streamlearn.accuracy.accuracy import SOURCES, Accuracy, Source
from streamlearn.accuracy.history import History
from streamlearn.accuracy.tally import Tally

__all__ = ["SOURCES", "Accuracy", "History", "Source", "Tally"]
