"""The universal network: forecasts series it has never seen, from any history over any horizon.

A residual MLP encodes the context once. The coarse forecast is a mixture of simple forecasts, corrected by functions of
distance and phase; leaps correct it further, each over its own segment. A leap writes coefficients, not steps, so the
same weights tile a horizon of any length.
"""

import copy
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from leapts.model.context import (
    ENCODED,
    SIMPLE_FORECASTS,
    STEP_FEATURES,
    Context,
    context_of,
    encoder_inputs,
    simple_forecasts,
    step_features,
    view_of,
)
from leapts.model.inference import GroupedLinear, Mlp, hardswish
from leapts.model.network import Forecast, GatedFusion, Record, RunOptions
from leapts.model.normalization import QuantileOutputs, Units
from leapts.model.rollout import Rollout, SegmentHeads
from leapts.model.schedulers import HierarchicalController, ScaleGrid
from leapts.model.state_cells import Control, ControlledCell, ControlSignal, FactoredField

Written = Float[Tensor, "rows written"]
_COEFFICIENTS = SIMPLE_FORECASTS + 2 * STEP_FEATURES
_SUMMARY_BINS = 8  # parts of the horizon in which a segment is summarized


class UniversalConfig(NamedTuple):
    """Sizes of a universal network."""

    quantiles: tuple[float, ...]
    width: int = 512
    blocks: int = 3
    hidden: int = 64
    control: int = 16
    max_leaps: int = 4
    temperature: float = 1.0
    sharpness: float = 0.5


class ResidualBlock(nn.Module):
    """Adds a two-layer MLP of the normalized input, which starts at zero."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, width)
        self.outer = nn.Linear(width, width)
        nn.init.zeros_(self.outer.weight)

    def forward(self, x: Float[Tensor, "rows width"]) -> Float[Tensor, "rows width"]:
        """Add the correction."""
        correction: Tensor = self.outer(hardswish(self.inner(self.norm(x))))
        return x + correction


class StepBasis(NamedTuple):
    """Simple forecasts and features of each step, which coefficients combine into a forecast."""

    simple: Float[Tensor, "rows forecasts horizon"]
    features: Float[Tensor, "rows features horizon"]

    def expand(self, mixture: Tensor, coefficients: Float[Tensor, "rows coefficients"]) -> Written:
        """Compute median and spread of every step, side by side."""
        of_median, of_spread = coefficients.split(STEP_FEATURES, 1)
        median = torch.bmm(mixture.unsqueeze(1), self.simple) + torch.bmm(of_median.unsqueeze(1), self.features)
        spread = torch.bmm(of_spread.unsqueeze(1), self.features)
        return torch.cat([median, spread], 1).transpose(1, 2).flatten(1)


class CoefficientHeads(SegmentHeads):
    """One linear head per scale, whose coefficients become a segment by the basis of the windows."""

    def __init__(self, trunk: Mlp, heads: GroupedLinear, basis: StepBasis) -> None:
        super().__init__(trunk, heads)
        self.basis = basis

    def blend(self, hidden: Float[Tensor, "rows hidden"], weights: Float[Tensor, "rows scales"]) -> Written:
        """Compute the segment of the weighted sum of all heads."""
        mixture, rest = super().blend(hidden, weights).split([SIMPLE_FORECASTS, 2 * STEP_FEATURES], 1)
        # A leap moves weight between simple forecasts: its weights add up to zero.
        return self.basis.expand(mixture - mixture.mean(1, keepdim=True), rest)


class PooledControl(ControlSignal):
    """A control signal that summarizes segments over a horizon of any length."""

    def __init__(self, *, scales: int, summary: int, control: int) -> None:
        super().__init__(
            horizon=1, outputs=2 * _SUMMARY_BINS, scales=scales, summary=summary, control=control,
            temporal_clip=(0.05, 1.0),
        )  # fmt: skip

    def over(self, horizon: int) -> "PooledControl":
        """Return the same control for another horizon."""
        other = copy.copy(self)
        other.horizon = horizon
        return other

    def forward(self, left: Tensor, length: Tensor, one_hot: Tensor, segment: Tensor, previous: Tensor) -> Control:
        """Compute the signal from a summary of the segment in equal parts of the horizon."""
        parts = F.adaptive_avg_pool1d(segment.unflatten(1, (-1, 2)).transpose(1, 2), _SUMMARY_BINS)
        return super().forward(left, length, one_hot, parts.flatten(1), previous)


def relative_grid(horizon: int) -> ScaleGrid:
    """Scales of a horizon of any length: up to an eighth, up to a third, and up to all of it."""
    short = max(1, horizon // 8)
    mid = min(horizon, max(short + 1, horizon // 3))
    return ScaleGrid(shortest=(1, min(short + 1, mid), min(mid + 1, horizon)), longest=(short, mid, horizon))


class UniversalModel(nn.Module):
    """Forecasts quantiles of unseen series, and records every leap."""

    def __init__(self, config: UniversalConfig) -> None:
        super().__init__()
        hidden, scales = config.hidden, 3
        self.config = config
        self.enter = nn.Linear(ENCODED, config.width)
        self.blocks = nn.ModuleList(ResidualBlock(config.width) for _ in range(config.blocks))
        self.leave = nn.LayerNorm(config.width)
        self.outputs = QuantileOutputs(config.quantiles)
        # The coefficients of the coarse forecast, the first state, and the features of the window.
        self.parts = [_COEFFICIENTS, hidden, self.outputs.features]
        self.head = nn.Linear(config.width, sum(self.parts))
        nn.init.zeros_(self.head.bias)
        self.head.weight.data[:_COEFFICIENTS] *= 0.1  # training starts near the mean of the simple forecasts
        self.scheduler = HierarchicalController(
            relative_grid(24), hidden=hidden, max_leaps=config.max_leaps, temperature=config.temperature
        )
        self.trunk = Mlp(hidden, hidden, layers=1)
        self.heads = GroupedLinear(scales, hidden, _COEFFICIENTS)
        self.heads.weight.data *= 0.1
        self.control = PooledControl(scales=scales, summary=config.control, control=config.control)
        field = FactoredField(clusters=1, hidden=hidden, control=config.control, width=hidden, rank=hidden)
        self.cell = ControlledCell(field)
        self.gate_logit = nn.Parameter(torch.zeros(()))

    def forward(self, context: Context, horizon: int, options: RunOptions) -> Forecast:
        """Forecast in the units of the context."""
        latent = self.enter(encoder_inputs(context))
        for block in self.blocks:
            latent = block(latent)
        coefficients, first, features = self.head(self.leave(hardswish(latent))).split(self.parts, 1)
        basis = StepBasis(simple_forecasts(context, horizon), step_features(context, horizon))
        mixture, rest = coefficients.split([SIMPLE_FORECASTS, 2 * STEP_FEATURES], 1)
        coarse = basis.expand(mixture.softmax(1), rest)
        fused = self.fusion(horizon, basis)(coarse, first, [len(first)], options)
        units = Units(torch.zeros_like(context.center), torch.ones_like(context.scale))
        return Forecast(self.outputs(fused.values, features, units), self.outputs.point(coarse, units), fused.trace)

    def fusion(self, horizon: int, basis: StepBasis) -> GatedFusion:
        """Join the parts of the rollout for a horizon; their weights are shared."""
        rollout = Rollout(
            hidden=self.config.hidden,
            scheduler=self.scheduler.over(relative_grid(horizon)),
            heads=CoefficientHeads(self.trunk, self.heads, basis),
            control=self.control.over(horizon),
            cell=self.cell,
            sharpness=self.config.sharpness,
            outputs_per_step=2,
        )
        fusion = GatedFusion(rollout)
        fusion.gate_logit = self.gate_logit
        return fusion

    @torch.inference_mode()
    def forecast(self, history: Float[Tensor, "rows steps"], horizon: int, record: Record = "nothing") -> Forecast:
        """Forecast quantiles of histories of any length, in their own units; missing values are NaN."""
        context = context_of(view_of(history))
        found = self(context, horizon, RunOptions(None, "dense", record))
        units = Units(context.center, context.scale)
        coarse = None if found.coarse is None else units.restore(found.coarse)
        return Forecast(units.restore(found.values), coarse, found.trace)
