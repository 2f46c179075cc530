"""Joint training: keeps every example and, when a class group ends, learns them all anew in random order.

The upper bound of the comparisons. Between the ends of groups it goes on as plain gradient descent does.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from streamlearn.errors import LearnerError
from streamlearn.learner.methods.sgd import GradientDescent
from streamlearn.learner.report import Batch, Step


class Joint(GradientDescent):
    def step(self, batch: Batch, seen: int) -> Step:
        if len(self.buffer) + len(batch) > self.buffer.capacity:
            raise LearnerError(
                f"method joint keeps every example, and its buffer of {self.buffer.capacity} is full",
                "give it a larger buffer_size, or use er+t, which remembers a fixed number",
            )
        return super().step(batch, seen)

    def end_group(self, seen: int) -> None:
        """From new weights, one pass over everything kept; at the end it is the network in force."""
        network = self.new_network()
        network.grow(self.network.outputs, self.chance)
        order = self.chance.arrays.permutation(self.buffer.filled())
        for start in range(0, len(order), self.settings.batch_size):
            slots = order[start : start + self.settings.batch_size]
            inputs = self.inputs.tensor(self.augmented(self.buffer.inputs[slots]))
            targets = torch.from_numpy(self.buffer.classes[slots].astype(np.int64))
            losses = F.cross_entropy(network.learning(inputs), targets, reduction="none")
            network.descend(losses, self.decay.rate(start))
        self.network.replace(network.body, network.head)
