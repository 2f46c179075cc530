"""The methods by name. Each is one file; base.py has the contract."""

from streamlearn.learner.methods.base import Method, Parts
from streamlearn.learner.methods.er import ExperienceReplay
from streamlearn.learner.methods.joint import Joint
from streamlearn.learner.methods.sgd import GradientDescent

METHODS: dict[str, type[Method]] = {
    "sgd": GradientDescent,
    "joint": Joint,
    "er": ExperienceReplay,
    "er+t": ExperienceReplay,  # the same code: the tricks are settings
}

__all__ = ["METHODS", "Method", "Parts"]
