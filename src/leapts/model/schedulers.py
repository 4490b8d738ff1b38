"""Schedulers: decide, leap by leap, which scale to use and how many steps to forecast; and the grid of scales."""

import copy
import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

Hidden = Float[Tensor, "rows hidden"]
Length = Float[Tensor, " rows"]  # in steps
Noise = Float[Tensor, "rows noise"] | None  # of one leap
RolloutNoise = Float[Tensor, "leaps rows noise"] | None
SCALE_NAMES = ("short", "mid", "long")


@dataclass(frozen=True)
class ScaleGrid:
    """The closed intervals of leap lengths: short, mid and long, or a single one for a short horizon."""

    shortest: tuple[int, ...]
    longest: tuple[int, ...]

    @classmethod
    def for_window(cls, lookback: int, horizon: int) -> "ScaleGrid":
        """Compute the grid of the paper, whose scales end at L / 4, L / 2 and the horizon."""
        if horizon <= lookback // 4 + 1:
            return cls.single_level(horizon)
        short = max(1, min(lookback // 4, horizon - 1))
        mid = max(short + 1, min(lookback // 2, horizon - 1))
        shortest_mid = max(2, min(mid, short + 1))
        shortest_long = max(3, min(horizon, max(mid + 1, horizon // 2)))
        # The paper's minimum of 3 exceeds a horizon of 2; the long interval is then the horizon itself.
        return cls(shortest=(1, shortest_mid, min(shortest_long, horizon)), longest=(short, mid, horizon))

    @classmethod
    def single_level(cls, horizon: int) -> "ScaleGrid":
        """Make a grid with one interval, from one step to the whole horizon."""
        return cls(shortest=(1,), longest=(horizon,))

    def __len__(self) -> int:
        return len(self.longest)

    @property
    def horizon(self) -> int:
        """Return the number of steps to forecast."""
        return self.longest[-1]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the name of each scale; a single scale is called long."""
        return SCALE_NAMES[-len(self) :]


class Decision(NamedTuple):
    """A leap in training: exact values, soft gradients."""

    weights: Float[Tensor, "rows scales"]  # one-hot, with the gradient of the soft distribution
    length: Length  # a whole number, with the gradient of the continuous length


class Choice(NamedTuple):
    """A leap in inference."""

    scale: Int[Tensor, " rows"]
    length: Length  # a whole number


class Scheduler(nn.Module):
    """Decides the next leap of every row; the rollout makes the last of `max_leaps` take all remaining steps."""

    def __init__(self, grid: ScaleGrid, *, max_leaps: int) -> None:
        super().__init__()
        self.grid = grid
        self.max_leaps = max_leaps

    def draw(self, rows: int, like: Tensor, generator: Generator | None) -> RolloutNoise:  # noqa: ARG002
        """Draw the noise of all leaps in advance, so that it does not depend on which rows are done; default: none."""
        return None

    def decide(self, hidden: Hidden, remaining: Length, noise: Noise) -> Decision:
        """Decide the next leap, differentiably."""
        raise NotImplementedError

    def choose(self, hidden: Hidden, remaining: Length, noise: Noise) -> Choice:
        """Decide the next leap without gradients; equals `decide` in value."""
        weights, length = self.decide(hidden, remaining, noise)
        return Choice(weights.argmax(1), length)

    def probabilities(self, hidden: Hidden, scale: Int[Tensor, " rows"]) -> Float[Tensor, "rows scales"]:
        """Compute the probability of each scale when `scale` was chosen; default: it was certain."""
        return F.one_hot(scale, len(self.grid)).to(hidden.dtype)


def straight_through(hard: Float[Tensor, "*shape"], soft: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Return the hard value exactly, with the gradient of the soft one."""
    return hard + (soft - soft.detach())


def executed_length(length: Length, remaining: Length) -> Length:
    """Round a continuous length and limit it to the remaining steps, straight-through."""
    return straight_through(torch.minimum(length.detach().round(), remaining), length)


class _UnlearnedScheduler(Scheduler):
    """Chooses the length first; the scale is the interval that contains it."""

    def __init__(self, grid: ScaleGrid, *, max_leaps: int) -> None:
        super().__init__(grid, max_leaps=max_leaps)
        self.anchors: Tensor
        anchors = torch.tensor(grid.longest[:-1], dtype=torch.get_default_dtype(), device="cpu")
        self.register_buffer("anchors", anchors, persistent=False)

    def lengths(self, remaining: Length, noise: Noise) -> Length:
        raise NotImplementedError

    def choose(self, hidden: Hidden, remaining: Length, noise: Noise) -> Choice:  # noqa: ARG002
        length = self.lengths(remaining, noise)
        return Choice(torch.bucketize(length, self.anchors), length)

    def decide(self, hidden: Hidden, remaining: Length, noise: Noise) -> Decision:
        scale, length = self.choose(hidden, remaining, noise)
        return Decision(self.probabilities(hidden, scale), length)


class FixedStepScheduler(_UnlearnedScheduler):
    """Takes leaps of one length, such as one season, until the horizon is full."""

    def __init__(self, grid: ScaleGrid, *, step: int) -> None:
        super().__init__(grid, max_leaps=math.ceil(grid.horizon / step))
        self.step = step

    def lengths(self, remaining: Length, noise: Noise) -> Length:  # noqa: ARG002
        """Return the fixed step, or the remaining steps where there are fewer."""
        return remaining.clamp(max=self.step)


class MonteCarloScheduler(_UnlearnedScheduler):
    """Partitions the horizon at random; without a generator it draws from its own seed, so that it is repeatable."""

    def __init__(self, grid: ScaleGrid, *, max_leaps: int, seed: int) -> None:
        super().__init__(grid, max_leaps=max_leaps)
        self.seed = seed

    def draw(self, rows: int, like: Tensor, generator: Generator | None) -> Float[Tensor, "leaps rows 1"]:
        """Draw a uniform number for each leap of each row."""
        if generator is None:
            generator = Generator(like.device).manual_seed(self.seed)
        return torch.rand((self.max_leaps, rows, 1), generator=generator, dtype=like.dtype, device=like.device)

    def lengths(self, remaining: Length, noise: Noise) -> Length:
        """Map uniform noise to lengths from one step to all remaining steps."""
        assert noise is not None
        return torch.minimum((noise.squeeze(1) * remaining).floor() + 1, remaining)


class _LearnedScheduler(Scheduler):
    """Maps logits into the intervals of the grid by a sigmoid."""

    def __init__(self, grid: ScaleGrid, *, max_leaps: int) -> None:
        super().__init__(grid, max_leaps=max_leaps)
        self.shortest: Tensor
        self.span: Tensor
        # Whole numbers, and therefore exact in every dtype that the model is moved to.
        dtype = torch.get_default_dtype()
        shortest = torch.tensor(grid.shortest, dtype=dtype, device="cpu")
        longest = torch.tensor(grid.longest, dtype=dtype, device="cpu")
        self.register_buffer("shortest", shortest, persistent=False)
        self.register_buffer("span", longest - shortest, persistent=False)

    def lengths(self, logits: Float[Tensor, "rows scales"]) -> Float[Tensor, "rows scales"]:
        """Compute the continuous length that each scale would take."""
        return torch.addcmul(self.shortest, torch.sigmoid(logits), self.span)


class HierarchicalController(_LearnedScheduler):
    """Samples a scale by Gumbel-softmax, then takes a length inside its interval from that scale's own head."""

    def __init__(self, grid: ScaleGrid, *, hidden: int, max_leaps: int, temperature: float) -> None:
        super().__init__(grid, max_leaps=max_leaps)
        self.temperature = temperature
        self.logits = nn.Linear(hidden, 2 * len(grid))  # of the scales, then of their lengths

    def over(self, grid: ScaleGrid) -> "HierarchicalController":
        """Return this scheduler, with the same weights, for another grid of as many scales."""
        other = copy.copy(self)
        other.grid = grid
        shortest, longest = (self.shortest.new_tensor(ends) for ends in (grid.shortest, grid.longest))
        other._buffers = {"shortest": shortest, "span": longest - shortest}
        return other

    def draw(self, rows: int, like: Tensor, generator: Generator | None) -> RolloutNoise:
        """Draw Gumbel noise for each leap of each row; none without a generator."""
        if generator is None:
            return None
        size = (self.max_leaps, rows, len(self.grid))
        uniform = torch.rand(size, generator=generator, dtype=like.dtype, device=like.device)
        return uniform.log_().neg_().log_().neg_()

    def decide(self, hidden: Hidden, remaining: Length, noise: Noise) -> Decision:
        """Decide on a hard scale and a whole length, with soft gradients."""
        scale_logits, length_logits = self._split_logits(hidden, noise)
        # Over the few scales torch is ten times faster when they come first.
        soft = torch.softmax(scale_logits.t() / self.temperature, 0).t().contiguous()
        hard = torch.zeros_like(soft).scatter_(1, scale_logits.argmax(1, keepdim=True), 1.0)
        weights = straight_through(hard, soft)
        length = (weights * self.lengths(length_logits)).sum(1)
        return Decision(weights, executed_length(length, remaining))

    def choose(self, hidden: Hidden, remaining: Length, noise: Noise) -> Choice:
        """Choose the most likely scale and its length."""
        scale_logits, length_logits = self._split_logits(hidden, noise)
        scale = scale_logits.argmax(1)
        length = self.lengths(length_logits).gather(1, scale.unsqueeze(1)).squeeze(1)
        return Choice(scale, torch.minimum(length.round(), remaining))

    def probabilities(self, hidden: Hidden, scale: Int[Tensor, " rows"]) -> Float[Tensor, "rows scales"]:  # noqa: ARG002
        """Compute the distribution over scales without noise."""
        return torch.softmax(self._split_logits(hidden, None)[0] / self.temperature, 1)

    def _split_logits(self, hidden: Hidden, noise: Noise) -> tuple[Tensor, Tensor]:
        scale_logits, length_logits = self.logits(hidden).chunk(2, 1)
        return scale_logits if noise is None else scale_logits + noise, length_logits


class FlatScheduler(_LearnedScheduler):
    """Decides a length anywhere in the horizon, without a scale: for short horizons and as an ablation."""

    def __init__(self, grid: ScaleGrid, *, hidden: int, max_leaps: int) -> None:
        super().__init__(ScaleGrid.single_level(grid.horizon), max_leaps=max_leaps)
        self.logits = nn.Linear(hidden, 1)

    def decide(self, hidden: Hidden, remaining: Length, noise: Noise) -> Decision:  # noqa: ARG002
        """Decide on a whole length with the gradient of the continuous one."""
        length = self.lengths(self.logits(hidden)).squeeze(1)
        return Decision(torch.ones_like(length).unsqueeze(1), executed_length(length, remaining))

    def choose(self, hidden: Hidden, remaining: Length, noise: Noise) -> Choice:  # noqa: ARG002
        """Choose the length; the scale is always the only one."""
        length = self.lengths(self.logits(hidden)).squeeze(1)
        return Choice(remaining.new_zeros(remaining.shape, dtype=torch.int64), torch.minimum(length.round(), remaining))


class SharedNoise(NamedTuple):
    """Noise for one process's share of a batch, equal to the noise of its windows in the whole batch."""

    generator: Generator  # in the same state in every process
    batch: int  # windows in the whole batch
    share: slice  # the windows of this process


NoiseSource = Generator | SharedNoise


def draw_noise(scheduler: Scheduler, first: Hidden, source: NoiseSource | None) -> RolloutNoise:
    """Draw the noise of a rollout for every row; rows are sorted by series, then by window."""
    rows = first.shape[0]
    if not isinstance(source, SharedNoise):
        return scheduler.draw(rows, first, source)
    series = rows // len(range(source.batch)[source.share])
    noise = scheduler.draw(series * source.batch, first, source.generator)
    return None if noise is None else noise.unflatten(1, (series, source.batch))[:, :, source.share].flatten(1, 2)
