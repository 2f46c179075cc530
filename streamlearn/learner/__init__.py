"""The method: experience replay with a bag of tricks, in pure torch and numpy."""

from streamlearn.learner.learner import Learner
from streamlearn.learner.report import Answers, Report

__all__ = ["Answers", "Learner", "Report"]
