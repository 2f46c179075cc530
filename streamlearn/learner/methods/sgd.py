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
        losses = F.cross_entropy(outputs, torch.from_numpy(batch.outputs), reduction="none")
        self.network.descend(losses.mean(), rate)
        found = losses.detach().numpy()
        if self.buffer.capacity:
            self.buffer.offer(batch.inputs, batch.outputs, found, batch.ids, seen, self.rng)
        return Step(float(found.mean()), None, rate, outputs.detach().numpy())
