"""LeapTS as in the paper's overview: normalise, encode, forecast coarsely, refine in leaps, fuse, restore."""

import copy
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from leapts.core.encoder import Encoder
from leapts.core.fusion import Execution, Fusion, Record
from leapts.core.light import lightened
from leapts.core.luck import Luck
from leapts.core.normalization import Normalization
from leapts.core.trace import ScheduleTrace
from leapts.errors import ShapeError


@dataclass(frozen=True)
class WindowShape:
    """What a model is built for. Without a number of variates it takes any: nothing in it tells variates apart.

    A step of the horizon is one number, the forecast, unless a loss asks for several: quantiles, or the parameters of a
    distribution. They stand side by side, step after step.
    """

    lookback: int
    horizon: int
    variates: int | None
    outputs: int = 1

    @property
    def numbers(self) -> int:
        """How many numbers a forecast has."""
        return self.horizon * self.outputs

    def check(self, history: Tensor) -> None:
        """Refuse a history of another shape, with both shapes and what they mean."""
        fits = history.dim() == 3 and history.shape[2] == self.lookback
        if fits and self.variates in (None, history.shape[1]):
            return
        variates = "any" if self.variates is None else self.variates
        raise ShapeError(
            f"the history has shape {tuple(history.shape)}, but this model takes "
            f"[batch, variates = {variates}, look-back = {self.lookback}]"
        )


class Forecast(NamedTuple):
    """A forecast and, where a record was asked for, how it came about."""

    values: Float[Tensor, "batch variates numbers"]
    coarse: Float[Tensor, "batch variates numbers"] | None  # before the scheduling branch
    trace: ScheduleTrace | None  # none without a scheduling branch


class LeapTSModel(nn.Module):
    """The network. `leapts.assembly` makes its parts; this class only says how they go together.

    Inside, variates come before the batch: mixing them is then one matrix product, and a cluster of variates one run of
    rows.
    """

    def __init__(
        self,
        shape: WindowShape,
        *,
        hidden: int,
        normalization: Normalization,
        encoder: Encoder,
        fusion: Fusion,
        clusters: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__()
        self.shape = shape
        self.normalization = normalization
        self.encoder = encoder
        # One product gives the coarse forecast and the first state.
        self.head = nn.Linear(hidden, shape.numbers + fusion.state_size)
        self.fusion = fusion
        self.layout = _ClusterLayout(clusters)

    def forward(
        self, history: Float[Tensor, "batch variates lookback"], generator: Luck | None = None
    ) -> Float[Tensor, "batch variates numbers"]:
        """The forecast by the dense execution, for training and export; a generator makes it explore."""
        return self._run(history, generator, execution="dense", record="nothing").values

    @torch.no_grad()
    def snapshot(self) -> "LeapTSModel":
        """The model as it stands, for many forecasts of few windows: each spares what `forecast` prepares."""
        return lightened(copy.deepcopy(self))

    @torch.inference_mode()
    def forecast(
        self,
        history: Float[Tensor, "batch variates lookback"],
        generator: Generator | None = None,
        *,
        execution: Execution = "sparse",
        record: Record = "nothing",
    ) -> Forecast:
        """The forecast without gradients, with the trace of its leaps, and their states, where asked for."""
        light = lightened(self) if execution == "sparse" else self
        return light._run(history, generator, execution=execution, record=record)

    def traced(self, history: Float[Tensor, "batch variates lookback"]) -> Forecast:
        """The dense execution with its schedule on record: one graph for every window, for export."""
        return self._run(history, None, execution="dense", record="schedule")

    def _run(self, history: Tensor, luck: Luck | None, *, execution: Execution, record: Record) -> Forecast:
        self.shape.check(history)
        batch, variates, _ = history.shape
        history = history.transpose(0, 1)
        window = self.normalization(history)
        latent = self.layout.sort(self.encoder(window.values))
        coarse, first = self.head(latent.flatten(0, 1)).split([self.shape.numbers, self.fusion.state_size], 1)
        sizes = self.layout.sizes(variates, batch)
        refined = self.fusion(coarse, first, sizes, luck, execution=execution, record=record)

        def by_variate(rows: Tensor) -> Tensor:
            return self.layout.unsort(rows.unflatten(0, (variates, batch)))

        values = window.restore(by_variate(refined.values)).transpose(0, 1)
        if record == "nothing":
            return Forecast(values, None, None)
        return Forecast(
            values,
            window.restore(by_variate(coarse)).transpose(0, 1),
            None if refined.trace is None else refined.trace.arranged(lambda x: by_variate(x).transpose(0, 1)),
        )


class _ClusterLayout(nn.Module):
    """Brings the variates of each cluster together, and back."""

    def __init__(self, clusters: tuple[int, ...] | None) -> None:
        super().__init__()
        self.order: Tensor | None
        self.position: Tensor | None
        order = None if clusters is None else torch.tensor(clusters).argsort(stable=True)
        self.register_buffer("order", order, persistent=False)
        self.register_buffer("position", None if order is None else order.argsort(), persistent=False)
        # Plain numbers, even of a model that is only planned, whose tensors hold none.
        self.counts = None if clusters is None else torch.bincount(torch.tensor(clusters, device="cpu")).tolist()

    def sort(self, x: Float[Tensor, "variates ..."]) -> Float[Tensor, "variates ..."]:
        """Cluster after cluster."""
        return x if self.order is None else x.index_select(0, self.order)

    def unsort(self, x: Tensor) -> Tensor:
        """In the order of the data."""
        return x if self.position is None else x.index_select(0, self.position)

    def sizes(self, variates: int, batch: int) -> list[int]:
        """How many rows each cluster has."""
        return [count * batch for count in (self.counts or [variates])]
