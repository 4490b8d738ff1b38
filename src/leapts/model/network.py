"""The LeapTS network: normalize, encode, forecast coarsely, schedule leaps, fuse, restore."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from leapts.errors import ShapeError
from leapts.model.covariates import CovariateNetwork, CovariateWindows, Known
from leapts.model.encoder import Encoder, LinearPath
from leapts.model.inference import inference_copy
from leapts.model.normalization import Normalization, PlainOutputs, QuantileOutputs, Units
from leapts.model.rollout import Rollout
from leapts.model.schedulers import Hidden, NoiseSource, draw_noise
from leapts.model.state_cells import Segment
from leapts.model.trace import ScheduleTrace, TraceRecorder

History = Float[Tensor, "batch series lookback"]
Outputs = Float[Tensor, "batch series outputs"]
Execution = Literal["dense", "sparse"]
# Each includes the one before: starts and lengths of leaps, contributions to changes of state, the states themselves.
Record = Literal["nothing", "schedule", "leaps", "states"]


class RunOptions(NamedTuple):
    """How a forward pass runs: noise to explore with, execution, values to record, quantiles or the median alone.

    `covariates` are those of the windows, which `known` has embedded.
    """

    noise: NoiseSource | None = None
    execution: Execution = "sparse"
    record: Record = "nothing"
    quantiles: bool = True
    covariates: CovariateWindows | None = None
    known: Known | None = None


class Fused(NamedTuple):
    """The final forecast in normalized units, and its trace if recorded."""

    values: Segment
    trace: ScheduleTrace | None
    parts: tuple[Segment, ...] = ()  # running sums, from the coarse forecast to all leaps; for explanations


class GatedFusion(nn.Module):
    """Adds the rollout, weighted by a learned gate between 0 and 1."""

    def __init__(self, rollout: Rollout) -> None:
        super().__init__()
        self.state_size = rollout.hidden
        self.rollout = rollout
        self.gate_logit = nn.Parameter(torch.zeros(()))

    @property
    def gate(self) -> Float[Tensor, ""]:
        """Return the weight of the rollout."""
        return torch.sigmoid(self.gate_logit)

    def forward(self, coarse: Segment, first: Hidden, sizes: Sequence[int], options: RunOptions) -> Fused:
        """Compute coarse forecast + gate * rollout; `sizes` counts the rows of each cluster."""
        scheduler, record = self.rollout.scheduler, options.record
        noise = draw_noise(scheduler, first, options.noise)
        recorder = None
        if record != "nothing":
            changes, states = record != "schedule", record == "states"
            recorder = TraceRecorder(
                scheduler.grid, scheduler.max_leaps, first, keep_changes=changes, keep_states=states
            )
        roll = self.rollout.sparse if options.execution == "sparse" else self.rollout.dense
        scheduled = roll(first, sizes, noise, recorder, options.known)
        return Fused(torch.addcmul(coarse, scheduled, self.gate), None if recorder is None else recorder.finish())


class CoarseOnly(nn.Module):
    """Returns the coarse forecast; there is no rollout and no trace."""

    state_size = 0

    def forward(self, coarse: Segment, first: Hidden, sizes: Sequence[int], options: RunOptions) -> Fused:  # noqa: ARG002
        """Return the coarse forecast unchanged."""
        return Fused(coarse, None, (coarse,))


@dataclass(frozen=True)
class WindowShape:
    """The shape of a network's input and output.

    Without `n_series` the network is channel independent and takes any number of series. A step of the horizon has one
    output, or several for quantiles or the parameters of a distribution: side by side, step after step.
    """

    lookback: int
    horizon: int
    n_series: int | None

    def check(self, history: Tensor) -> None:
        """Raise a ShapeError if a history does not have this shape."""
        if history.dim() == 3 and history.shape[2] == self.lookback and self.n_series in (None, history.shape[1]):
            return
        raise ShapeError(
            f"the history has shape {tuple(history.shape)}, but this model takes "
            f"[batch, series = {self.n_series or 'any'}, look-back = {self.lookback}]"
        )


class Forecast(NamedTuple):
    """A forecast, with the point forecast of the coarse part and the trace if recorded."""

    values: Outputs
    coarse: Outputs | None
    trace: ScheduleTrace | None  # also none without a scheduler
    # Running sums of the point forecast, if the fusion keeps them: level, linear path, coarse forecast, each leap.
    parts: tuple[Outputs, ...] = ()


class LeapTSModel(nn.Module):
    """The network; `leapts.model.build` makes its parts.

    Inside, series come before the batch: mixing series is then one matrix product, and the rows of a cluster are
    adjacent.
    """

    def __init__(
        self,
        shape: WindowShape,
        *,
        hidden: int,
        normalization: Normalization,
        encoder: Encoder,
        fusion: GatedFusion | CoarseOnly,
        outputs: PlainOutputs | QuantileOutputs,
        clusters: tuple[int, ...] | None = None,
        linear: LinearPath | None = None,
        covariates: CovariateNetwork | None = None,
    ) -> None:
        super().__init__()
        self.shape = shape
        self.normalization = normalization
        self.encoder = encoder
        # The coarse forecast, the first state, and the features of the window that its outputs need.
        self.parts = [shape.horizon * outputs.written_per_step, fusion.state_size, outputs.features]
        self.head = nn.Linear(hidden, sum(self.parts))
        self.fusion = fusion
        self.outputs = outputs
        self.linear = linear
        self.covariates = covariates
        self.layout = _ClusterLayout(clusters)

    @property
    def levels(self) -> Float[Tensor, " quantiles"]:
        """Return the levels of the quantiles of a step; of a point forecast, the median alone."""
        return self.outputs.levels

    @property
    def median(self) -> int:
        """Return the index of the median among the quantiles."""
        return self.outputs.below

    def forward(
        self, history: History, generator: NoiseSource | None = None, covariates: CovariateWindows | None = None
    ) -> Outputs:
        """Forecast by the dense execution, for training and export; a generator makes it explore."""
        return self.run(history, RunOptions(generator, "dense", covariates=covariates)).values

    @torch.no_grad()
    def snapshot(self) -> "LeapTSModel":
        """Make an inference copy to keep, which saves making one in every forecast."""
        return inference_copy(copy.deepcopy(self))

    @torch.inference_mode()
    def forecast(
        self,
        history: History,
        generator: Generator | None = None,
        *,
        execution: Execution = "sparse",
        record: Record = "nothing",
        quantiles: bool = False,
        covariates: CovariateWindows | None = None,
    ) -> Forecast:
        """Forecast without gradients; record the trace and compute quantiles if asked for."""
        model = inference_copy(self) if execution == "sparse" else self
        return model.run(history, RunOptions(generator, execution, record, quantiles, covariates))

    def traced(self, history: History, covariates: CovariateWindows | None = None) -> Forecast:
        """Forecast by the dense execution with its schedule, for export."""
        return self.run(history, RunOptions(None, "dense", "schedule", covariates=covariates))

    def run(self, history: History, options: RunOptions) -> Forecast:
        """Forecast with gradients."""
        self.shape.check(history)
        batch, n_series, _ = history.shape
        known = None if self.covariates is None else self.covariates(options.covariates)
        past = history.transpose(0, 1)
        window = self.normalization(past - known.past_effect if known else past)
        rows = self.layout.sort(self.encoder(window.values, known.summary if known else None)).flatten(0, 1)
        coarse, first, features = self.head(rows).split(self.parts, 1)
        units = Units(*(self.layout.sort(unit).flatten(0, 1) for unit in window.units))
        if known:
            known = known.by_row(self.layout.sort)
            coarse, units = coarse + known.written(rows), units._replace(center=units.center + known.future_effect)
            options = options._replace(known=known)
        fused = self.fusion(coarse, first, self.layout.sizes(n_series, batch), options)

        def by_window(rows: Tensor) -> Tensor:
            return self.layout.unsort(rows.unflatten(0, (n_series, batch))).transpose(0, 1)

        inputs = self.layout.sort(window.values[..., : self.shape.lookback]).flatten(0, 1)

        def joined(rows: Tensor) -> Tensor:
            return rows if self.linear is None else self.linear(rows, inputs)

        outputs, written = self.outputs, joined(fused.values)
        values = by_window(outputs(written, features, units) if options.quantiles else outputs.point(written, units))
        if options.record == "nothing":
            return Forecast(values, None, None)
        trace = None if fused.trace is None else fused.trace.arranged(by_window)
        nothing = torch.zeros_like(coarse)
        parts = (nothing, *map(joined, (nothing, *fused.parts))) if fused.parts else ()
        restored = [by_window(outputs.point(rows, units)) for rows in (joined(coarse), *parts)]
        return Forecast(values, restored[0], trace, tuple(restored[1:]))


class _ClusterLayout(nn.Module):
    """Sorts series by cluster, and back."""

    def __init__(self, clusters: tuple[int, ...] | None) -> None:
        super().__init__()
        self.order: Tensor | None
        self.position: Tensor | None
        by_series = None if clusters is None else torch.tensor(clusters, device="cpu")
        order = None if by_series is None else by_series.argsort(stable=True)
        self.register_buffer("order", order, persistent=False)
        self.register_buffer("position", None if order is None else order.argsort(), persistent=False)
        self.counts = None if by_series is None else by_series.bincount().tolist()

    def sort(self, x: Float[Tensor, "series ..."]) -> Float[Tensor, "series ..."]:
        """Sort series by cluster."""
        return x if self.order is None else x.index_select(0, self.order)

    def unsort(self, x: Tensor) -> Tensor:
        """Restore the order of the data."""
        return x if self.position is None else x.index_select(0, self.position)

    def sizes(self, n_series: int, batch: int) -> list[int]:
        """Count the rows of each cluster."""
        return [count * batch for count in (self.counts or [n_series])]
