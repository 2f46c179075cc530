"""Plain gradient descent on the stream: what everything else is measured against.

It replays nothing. A buffer, if it has one, is there for fitting a bias correction.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from streamlearn.learner.methods.base import Method
from streamlearn.learner.report import Batch, Step


class GradientDescent(Method):
    def step(self, batch: Batch, seen: int) -> Step:
        rate = self.decay.rate(seen)
        inputs = self.inputs.tensor(self.augmented(batch.inputs))
        outputs = self.network.learning(inputs)
        losses = F.cross_entropy(outputs, torch.tensor(batch.outputs), reduction="none")
        found = self.network.descend(losses, rate)
        if self.buffer.capacity:
            self.buffer.offer(batch.inputs, batch.outputs, found, batch.ids, seen, self.chance)
        return Step(sum(found) / len(found), None, rate, outputs)
