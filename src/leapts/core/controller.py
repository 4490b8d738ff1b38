"""The learned schedules: the hierarchical controller of the paper, and the same without its scale level."""

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from leapts.core.scales import ScaleGrid
from leapts.core.schedulers import Choice, Decision, executed_length, straight_through


class _LearnedLengths(nn.Module):
    """Maps logits into the grid's intervals by a sigmoid."""

    def __init__(self, grid: ScaleGrid, *, max_leaps: int) -> None:
        super().__init__()
        self.grid = grid
        self.max_leaps = max_leaps
        self.shortest: Tensor
        self.span: Tensor
        dtype = torch.get_default_dtype()
        shortest, longest = torch.tensor(grid.shortest, dtype=dtype), torch.tensor(grid.longest, dtype=dtype)
        # Whole numbers, so exact in every dtype the model is moved to.
        self.register_buffer("shortest", shortest, persistent=False)
        self.register_buffer("span", longest - shortest, persistent=False)

    def lengths(self, logits: Float[Tensor, "rows scales"]) -> Float[Tensor, "rows scales"]:
        """The length each scale would take."""
        return torch.addcmul(self.shortest, torch.sigmoid(logits), self.span)


class HierarchicalController(_LearnedLengths):
    """Picks a scale by Gumbel-softmax, then a length inside that scale's interval by the scale's own head.

    Both are linear in the state, so one product gives every logit.
    """

    def __init__(self, grid: ScaleGrid, *, hidden: int, max_leaps: int, temperature: float) -> None:
        super().__init__(grid, max_leaps=max_leaps)
        self.temperature = temperature
        self.logits = nn.Linear(hidden, 2 * len(grid))

    def draw(self, rows: int, like: Tensor, generator: Generator | None) -> Tensor | None:
        """Gumbel noise for every possible leap of each row; none without a generator."""
        if generator is None:
            return None
        size = (self.max_leaps, rows, len(self.grid))
        uniform = torch.rand(size, generator=generator, dtype=like.dtype, device=like.device)
        return uniform.log_().neg_().log_().neg_()

    def decide(
        self,
        hidden: Float[Tensor, "rows hidden"],
        remaining: Float[Tensor, " rows"],
        noise: Float[Tensor, "rows scales"] | None,
    ) -> Decision:
        """Hard one-hot scale and whole length forward, soft distribution and continuous length backward."""
        scale_logits, length_logits = self.logits(hidden).chunk(2, 1)
        if noise is not None:
            scale_logits = scale_logits + noise
        # Over the few scales torch is ten times faster when they come first.
        soft = torch.softmax(scale_logits.t() / self.temperature, 0).t().contiguous()
        hard = torch.zeros_like(soft).scatter_(1, scale_logits.argmax(1, keepdim=True), 1.0)
        weights = straight_through(hard, soft)
        length = (weights * self.lengths(length_logits)).sum(1)
        return Decision(weights, executed_length(length, remaining))

    def choose(
        self,
        hidden: Float[Tensor, "rows hidden"],
        remaining: Float[Tensor, " rows"],
        noise: Float[Tensor, "rows scales"] | None,
    ) -> Choice:
        """The most likely scale and its length."""
        scale_logits, length_logits = self.logits(hidden).chunk(2, 1)
        if noise is not None:
            scale_logits = scale_logits + noise
        scale = scale_logits.argmax(1)
        length = self.lengths(length_logits).gather(1, scale.unsqueeze(1)).squeeze(1)
        return Choice(scale, torch.minimum(length.round(), remaining))

    def probabilities(
        self,
        hidden: Float[Tensor, "rows hidden"],
        scale: Int[Tensor, " rows"],  # noqa: ARG002
    ) -> Float[Tensor, "rows scales"]:
        """The scale distribution, free of noise."""
        return torch.softmax(self.logits(hidden).chunk(2, 1)[0] / self.temperature, 1)


class FlatScheduler(_LearnedLengths):
    """A length straight from the state, anywhere in the horizon, without choosing a scale first.

    It serves the single-level rule of short horizons and the ablation without the high level.
    """

    def __init__(self, horizon: int, *, hidden: int, max_leaps: int) -> None:
        super().__init__(ScaleGrid.single_level(horizon), max_leaps=max_leaps)
        self.logits = nn.Linear(hidden, 1)

    def draw(self, rows: int, like: Tensor, generator: Generator | None) -> None:
        """Nothing is sampled: there is no scale to sample."""

    def decide(
        self,
        hidden: Float[Tensor, "rows hidden"],
        remaining: Float[Tensor, " rows"],
        noise: Tensor | None,  # noqa: ARG002
    ) -> Decision:
        """The one scale, and a length that learns straight-through."""
        length = self.lengths(self.logits(hidden)).squeeze(1)
        return Decision(torch.ones_like(length).unsqueeze(1), executed_length(length, remaining))

    def choose(
        self,
        hidden: Float[Tensor, "rows hidden"],
        remaining: Float[Tensor, " rows"],
        noise: Tensor | None,  # noqa: ARG002
    ) -> Choice:
        """The one scale and its length."""
        length = self.lengths(self.logits(hidden)).squeeze(1)
        return Choice(remaining.new_zeros(remaining.shape, dtype=torch.int64), torch.minimum(length.round(), remaining))

    def probabilities(
        self,
        hidden: Float[Tensor, "rows hidden"],
        scale: Int[Tensor, " rows"],  # noqa: ARG002
    ) -> Float[Tensor, "rows 1"]:
        """The one scale is certain."""
        return torch.ones_like(hidden[:, :1])
