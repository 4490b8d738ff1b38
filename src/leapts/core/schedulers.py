"""The seam of the schedule: what decides, leap by leap, which scale and how far."""

import math
from typing import NamedTuple, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from leapts.core.scales import ScaleGrid


class Decision(NamedTuple):
    """A leap as training sees it: exact in value, soft in gradient."""

    weights: Float[Tensor, "rows scales"]  # one-hot; its gradient is that of the soft distribution
    length: Float[Tensor, " rows"]  # a whole number; its gradient is that of the continuous length


class Choice(NamedTuple):
    """A leap as inference sees it."""

    scale: Int[Tensor, " rows"]
    length: Float[Tensor, " rows"]  # a whole number


@runtime_checkable
class Scheduler(Protocol):
    """Decides the next leap of every row. `decide` and `choose` agree in value for the same noise.

    The rollout, not the scheduler, enforces `max_leaps`: the last allowed leap takes all that remains.
    """

    grid: ScaleGrid
    max_leaps: int

    def draw(self, rows: int, like: Tensor, generator: Generator | None) -> Float[Tensor, "leaps rows noises"] | None:
        """All randomness of one rollout, drawn up front so that it does not matter which rows are done when.

        Without a generator a scheduler is deterministic.
        """

    def decide(
        self,
        hidden: Float[Tensor, "rows hidden"],
        remaining: Float[Tensor, " rows"],
        noise: Float[Tensor, "rows noises"] | None,
    ) -> Decision:
        """The next leap, differentiably."""

    def choose(
        self,
        hidden: Float[Tensor, "rows hidden"],
        remaining: Float[Tensor, " rows"],
        noise: Float[Tensor, "rows noises"] | None,
    ) -> Choice:
        """The next leap, at the least cost."""

    def probabilities(
        self, hidden: Float[Tensor, "rows hidden"], scale: Int[Tensor, " rows"]
    ) -> Float[Tensor, "rows scales"]:
        """How likely each scale was when `scale` was taken, for the trace."""


def straight_through(hard: Float[Tensor, "*shape"], soft: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The hard value, exactly, with the gradient of the soft one."""
    return hard + (soft - soft.detach())


def executed_length(length: Float[Tensor, " rows"], remaining: Float[Tensor, " rows"]) -> Float[Tensor, " rows"]:
    """A continuous length as executed: rounded and clipped to what remains, straight-through."""
    return straight_through(torch.minimum(length.detach().round(), remaining), length)


class _LengthDriven(nn.Module):
    """What the schedules without learned decisions share: the length comes first, and its scale follows."""

    def __init__(self, grid: ScaleGrid, *, max_leaps: int) -> None:
        super().__init__()
        self.grid = grid
        self.max_leaps = max_leaps
        self.anchors: Tensor
        anchors = torch.tensor(grid.longest[:-1], dtype=torch.get_default_dtype())
        self.register_buffer("anchors", anchors, persistent=False)

    def lengths(self, remaining: Tensor, noise: Tensor | None) -> Tensor:
        raise NotImplementedError

    def choose(self, hidden: Tensor, remaining: Tensor, noise: Tensor | None) -> Choice:  # noqa: ARG002
        length = self.lengths(remaining, noise)
        return Choice(torch.bucketize(length, self.anchors), length)

    def decide(self, hidden: Tensor, remaining: Tensor, noise: Tensor | None) -> Decision:
        scale, length = self.choose(hidden, remaining, noise)
        return Decision(F.one_hot(scale, len(self.grid)).to(hidden.dtype), length)

    def probabilities(self, hidden: Tensor, scale: Tensor) -> Tensor:
        return F.one_hot(scale, len(self.grid)).to(hidden.dtype)


class FixedStepScheduler(_LengthDriven):
    """Always the same length, such as one period of the data. Takes as many leaps as that needs."""

    def __init__(self, grid: ScaleGrid, *, step: int) -> None:
        super().__init__(grid, max_leaps=math.ceil(grid.horizon / step))
        self.step = step

    def draw(self, rows: int, like: Tensor, generator: Generator | None) -> None:  # noqa: ARG002
        """A fixed schedule needs no luck."""
        return

    def lengths(self, remaining: Tensor, noise: Tensor | None) -> Tensor:  # noqa: ARG002
        """One step, or what is left of the horizon."""
        return remaining.clamp(max=self.step)


class MonteCarloScheduler(_LengthDriven):
    """Random partitions of the horizon: every leap's length is uniform over what remains.

    Each rollout with one generator draws a new partition. Without a generator it draws from its own seed, so that
    inference can be repeated.
    """

    def __init__(self, grid: ScaleGrid, *, max_leaps: int, seed: int) -> None:
        super().__init__(grid, max_leaps=max_leaps)
        self.seed = seed

    def draw(self, rows: int, like: Tensor, generator: Generator | None) -> Tensor:
        """One uniform number for each possible leap of each row."""
        if generator is None:
            generator = Generator(like.device).manual_seed(self.seed)
        size = (self.max_leaps, rows, 1)
        return torch.rand(size, generator=generator, dtype=like.dtype, device=like.device)

    def lengths(self, remaining: Tensor, noise: Tensor | None) -> Tensor:
        """From one step to all that remains, each equally likely."""
        assert noise is not None
        return torch.minimum((noise.squeeze(1) * remaining).floor() + 1, remaining)
