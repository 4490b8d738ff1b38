"""Run a network again with its decisions replayed or forced, and keep what each leap writes.

A replayed schedule is constant, so that gradients are those of the forecast as it is: the soft gradients of training
would add the effect of schedules that were not taken.
"""

import copy
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from leapts.errors import ConfigError
from leapts.forecasting.networks import Ensemble, UniversalNetwork
from leapts.model import ScheduleTrace
from leapts.model.network import CoarseOnly, Forecast, Fused, GatedFusion, Record, RunOptions
from leapts.model.schedulers import Decision, Hidden, HierarchicalController, Length, Noise, RolloutNoise, Scheduler
from leapts.model.state_cells import Control, Segment
from leapts.model.trace import TraceRecorder

_CERTAIN = 1e9  # a logit beside which all others vanish

# Scale, length and gate of each leap; NaN where the model decides.
Decisions = Float[Tensor, "rows leaps 3"]


def recorded_decisions(trace: ScheduleTrace, leaps: int = 0) -> Decisions:
    """Force every decision of a trace; after the last leap, and up to `leaps`, there is none."""
    recorded = torch.stack([trace.scale.float(), trace.length.float()], -1)
    recorded = recorded.masked_fill(~trace.taken.unsqueeze(-1), torch.nan)
    return F.pad(recorded, (0, 1, 0, max(0, leaps - recorded.shape[1])), value=torch.nan)


class ForcedScheduler(Scheduler):
    """Takes the decisions it is given, which travel as the noise of each leap, and else those of another scheduler."""

    def __init__(self, free: Scheduler, decisions: Float[Tensor, "leaps rows 2"]) -> None:
        super().__init__(free.grid, max_leaps=len(decisions))
        self.free = free
        self.decisions = decisions

    def draw(self, rows: int, like: Tensor, generator: Any) -> RolloutNoise:
        """Return the decisions, followed by the noise of the other scheduler."""
        noise = self.free.draw(rows, like, generator)
        if noise is None:
            return self.decisions
        leaps = torch.arange(self.max_leaps).clamp(max=len(noise) - 1)
        return torch.cat([self.decisions, noise[leaps]], 2)

    def decide(self, hidden: Hidden, remaining: Length, noise: Noise) -> Decision:
        """Decide as forced; a scale alone takes the length that it would choose itself."""
        assert noise is not None
        scale, length = noise[:, 0], noise[:, 1]
        is_forced, own = ~scale.isnan(), noise[:, 2:]
        forced = F.one_hot(scale.nan_to_num().long(), len(self.grid)) * is_forced.unsqueeze(1)
        if isinstance(self.free, HierarchicalController):
            own = forced * _CERTAIN + (own if own.shape[1] else 0.0)
        found = self.free.choose(hidden, remaining, own if own.shape[1] else None)
        scale = torch.where(is_forced, scale.nan_to_num().long(), found.scale)
        length = torch.where(length.isnan(), found.length, torch.minimum(length, remaining))
        return Decision(F.one_hot(scale, len(self.grid)).to(hidden.dtype), length)

    def probabilities(self, hidden: Hidden, scale: Tensor) -> Float[Tensor, "rows scales"]:
        """Return the probabilities of the other scheduler."""
        return self.free.probabilities(hidden, scale)


class _SegmentKeeper(nn.Module):
    """Keeps the segment of each leap, on its way into the control signal."""

    def __init__(self, control: Any) -> None:
        super().__init__()
        self.control = control
        self.size = control.size
        self.segments: list[Segment] = []

    def forward(self, left: Tensor, length: Tensor, one_hot: Tensor, segment: Segment, previous: Tensor) -> Control:
        self.segments.append(segment)
        found: Control = self.control(left, length, one_hot, segment, previous)
        return found


class ForcedFusion(nn.Module):
    """A gated fusion with forced decisions and gates, which keeps the running sums of its parts."""

    def __init__(self, fusion: GatedFusion, decisions: Decisions) -> None:
        super().__init__()
        self.fusion = fusion
        self.decisions = decisions  # rows as the network sorts them

    def forward(self, coarse: Segment, first: Hidden, sizes: Sequence[int], options: RunOptions) -> Fused:
        """Run the rollout densely, and add the leaps one by one."""
        rollout = self.fusion.rollout
        decisions, gates = self.decisions.transpose(0, 1).split([2, 1], 2)
        scheduler = ForcedScheduler(rollout.scheduler, decisions)
        control = _SegmentKeeper(rollout.control)
        recorder = TraceRecorder(
            scheduler.grid, scheduler.max_leaps, first, keep_changes=True, keep_states=options.record == "states"
        )
        noise = scheduler.draw(len(first), first, None)
        with_parts(rollout, scheduler=scheduler, control=control).dense(first, sizes, noise, recorder)
        gates = torch.where(gates.isnan(), self.fusion.gate, gates)
        parts = tuple(accumulate([coarse, *(segment * gates[leap] for leap, segment in enumerate(control.segments))]))
        return Fused(parts[-1], recorder.finish(), parts)


def forced_network(network: Any, decisions: Decisions | None, windows: Sequence[int]) -> Any:
    """Return a network with forced decisions for [windows, series]; without decisions, for one that has no leaps."""
    if isinstance(network, Ensemble):
        raise ConfigError("a mean with the pretrained network has no explanation yet; fit with init='random'")
    if decisions is None:
        return network
    if isinstance(network, UniversalNetwork):
        model = copy.copy(network.model)
        model.__dict__["fusion"] = lambda *parts: ForcedFusion(network.model.fusion(*parts), decisions)
        return with_parts(network, model=model)
    rows = network.layout.sort(decisions.unflatten(0, windows).transpose(0, 1)).flatten(0, 1)
    return with_parts(network, fusion=ForcedFusion(network.fusion, rows))


class ForcedNetwork(nn.Module):
    """A network with forced decisions, with the interface that a predictor needs."""

    def __init__(self, network: Any, force: Callable[[ScheduleTrace], Decisions]) -> None:
        super().__init__()
        self.network = network
        self.plain = network.snapshot()
        self.force = force
        self.median = network.median

    def snapshot(self) -> "ForcedNetwork":
        """Return this network, which needs no preparation."""
        return self

    @torch.inference_mode()
    def forecast(
        self,
        history: Tensor,
        *,
        record: Record = "nothing",
        quantiles: bool = True,
        covariates: None = None,  # noqa: ARG002 - refused before
    ) -> Forecast:
        """Forecast, with decisions made from the schedule of the same forecast without them."""
        trace = self.plain.forecast(history, record="leaps").trace
        decisions = self.force(trace.arranged(lambda x: x.flatten(0, 1)))
        network = forced_network(self.network, decisions, history.shape[:2])
        found: Forecast = network.run(history, RunOptions(None, "dense", record, quantiles))
        return found


def with_parts(module: Any, **parts: nn.Module) -> Any:
    """Copy a module with other parts; all weights are shared."""
    other = copy.copy(module)
    other._modules = {**module._modules, **parts}
    return other


def gate_of(network: Any) -> float | None:
    """Return the gate of a network; none without a scheduling branch."""
    if isinstance(getattr(network, "fusion", None), CoarseOnly):
        return None
    logit = network.model.gate_logit if isinstance(network, UniversalNetwork) else network.fusion.gate_logit
    return float(torch.sigmoid(logit.detach()))
