"""The randomness of a rollout, also when its windows are a share of a larger batch."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Generator, Tensor

from leapts.core.schedulers import Scheduler


class SharedLuck(NamedTuple):
    """The luck of some windows of a batch: what they would have had in the whole of it.

    Several processes that each take a share of a batch then explore as one process with all of it does.
    """

    generator: Generator  # alike in every process
    batch: int  # windows in the whole batch
    share: slice  # which of them are here


Luck = Generator | SharedLuck


def drawn(
    scheduler: Scheduler, first: Float[Tensor, "rows hidden"], luck: Luck | None
) -> Float[Tensor, "leaps rows noises"] | None:
    """The noise of every possible leap of each row; rows are variate after variate, and in each window after window."""
    rows = first.shape[0]
    if not isinstance(luck, SharedLuck):
        return scheduler.draw(rows, first, luck)
    variates = rows // len(range(luck.batch)[luck.share])
    noise = scheduler.draw(variates * luck.batch, first, luck.generator)
    return None if noise is None else noise.unflatten(1, (variates, luck.batch))[:, :, luck.share].flatten(1, 2)
