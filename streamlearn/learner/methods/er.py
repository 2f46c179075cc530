"""Experience replay, and with its settings turned on one by one, the bag of tricks (ER+T).

The paper's steps, in order. The fifth trick, bias control, belongs to predictions and is not here: see bias.py.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from streamlearn.learner.methods.base import Method
from streamlearn.learner.report import Batch, Step


class ExperienceReplay(Method):
    def step(self, batch: Batch, seen: int) -> Step:
        count = len(batch)

        # 1. ELRD: the learning rate follows the number of examples seen in the whole life.
        rate = self.decay.rate(seen)

        # 2. Draw from the filled slots of the buffer, without replacement.
        slots = self.buffer.draw(self.settings.replay_batch, self.chance)
        replayed, classes = self.buffer.inputs[slots], self.buffer.classes[slots].tolist()

        # 3. IBA: the buffer holds examples as they came; stream and replay are varied independently, then normalised.
        fresh = self.augmented(batch.inputs)
        remembered = batch.inputs if self.settings.buffer_augment else fresh
        if self.settings.buffer_augment:
            replayed = self.augmented(replayed)
        inputs = self.inputs.tensor(fresh, replayed)

        # 4. One forward pass over both, the loss of each example, one step of gradient descent on their mean.
        outputs = self.network.learning(inputs)
        losses = F.cross_entropy(outputs, torch.from_numpy(np.array(batch.outputs + classes)), reduction="none")
        found = self.network.descend(losses, rate)

        # 5. LARS and BRS: replayed slots get their new loss, then each stream example is offered with its own.
        self.buffer.refresh(slots, classes, found[count:])
        self.buffer.offer(remembered, batch.outputs, found[:count], batch.ids, seen, self.chance)

        return Step(
            loss_stream=sum(found[:count]) / count,
            loss_replay=sum(found[count:]) / len(slots) if len(slots) else None,
            learning_rate=rate,
            outputs=outputs,
        )
