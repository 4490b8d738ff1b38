"""Build a network from its options; the only place where the name of a variant becomes an object."""

import threading
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import nn

from leapts import parts as c
from leapts.config import ModelConfig
from leapts.errors import ConfigError
from leapts.messages import quoted
from leapts.model import schedulers
from leapts.model.covariates import CovariateNetwork
from leapts.model.encoder import Encoder, LinearPath, LookbackPooling, MlpMixer, PooledMixer, SeriesEmbedding
from leapts.model.inference import GroupedLinear, Mlp
from leapts.model.network import CoarseOnly, GatedFusion, LeapTSModel, WindowShape
from leapts.model.normalization import (
    PlainOutputs,
    QuantileOutputs,
    by_last_value,
    by_mean,
    masked,
    shifted,
    unnormalized,
)
from leapts.model.rollout import Rollout, SegmentHeads
from leapts.model.schedulers import ScaleGrid
from leapts.model.state_cells import (
    ControlledCell,
    ControlSignal,
    FactoredField,
    FullField,
    LongShortTermCell,
    RecurrentCell,
    StateCell,
)
from leapts.parts import SchedulingOptions, StateOptions
from leapts.registration import SCHEDULERS, STATE_CELLS

SchedulerFactory = Callable[..., schedulers.Scheduler]  # (options, grid: ScaleGrid, *, hidden: int)
StateCellFactory = Callable[..., StateCell]  # (options, *, hidden: int, control: int)

_NORMALIZATIONS = {"mean": by_mean, "last": by_last_value, "shift": shifted, "none": unnormalized}
_MAX_DEFAULT_RANK = 64  # with more series, mixing of full rank costs more than the encoder
_INITIALIZATION = threading.Lock()


def build_model(
    config: ModelConfig, *, seed: int, clusters: Sequence[int] | None = None, outputs_per_step: int = 1
) -> LeapTSModel:
    """Build a network with initial weights that depend on the seed alone.

    Constants of the network are on the CPU also within `torch.device("meta")`, where weights take no memory.

    Args:
        config: The options of the network.
        seed: The seed of the initial weights.
        clusters: The cluster of each series, if the options ask for several (see `leapts.model.cluster_series`).
        outputs_per_step: Outputs for each step of the horizon of a network without quantiles; more than one for some
            losses.
    """
    checked, series = _check_clusters(config, clusters), config.n_series or 0
    outputs = QuantileOutputs(config.quantiles) if config.quantiles else PlainOutputs(outputs_per_step)
    pooling = LookbackPooling(config.input_size) if config.lookback_pooling else None
    # Torch's default generator is global: no other thread may draw from it in between.
    with _INITIALIZATION, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        covariates = (
            None
            if config.covariates is None
            else CovariateNetwork(
                config.covariates, config.input_size, config.h, config.hidden_size, outputs.written_per_step
            )
        )
        return LeapTSModel(
            WindowShape(config.input_size, config.h, config.n_series),
            hidden=config.hidden_size,
            normalization=partial(masked, kind=config.normalization)
            if config.mask
            else _NORMALIZATIONS[config.normalization],
            encoder=Encoder(
                inputs=(pooling.outputs if pooling else config.input_size) * (2 if config.mask else 1)
                + (covariates.summary_size if covariates else 0),
                hidden=config.hidden_size,
                layers=config.encoder_layers,
                pooling=pooling or nn.Identity(),
                identity=SeriesEmbedding(series, config.hidden_size) if config.series_embedding else nn.Identity(),
                mixer=_mixer(config),
            ),
            fusion=_fusion(config, outputs.written_per_step),
            outputs=outputs,
            clusters=checked,
            linear=LinearPath(config.input_size, config.h, outputs.written_per_step) if config.linear_path else None,
            covariates=covariates,
        )


def _check_clusters(config: ModelConfig, clusters: Sequence[int] | None) -> tuple[int, ...] | None:
    if config.clusters == 1:
        return None
    if clusters is None or len(clusters) != config.n_series or not set(clusters) <= set(range(config.clusters)):
        raise ConfigError(
            f"state.clusters is {config.clusters}: give each of the {config.n_series} series a cluster from 0 to "
            f"{config.clusters - 1}, as leapts.model.cluster_series does, not {quoted(clusters)}"
        )
    return tuple(clusters)


def _mixer(config: ModelConfig) -> nn.Module:
    match config.mixing:
        case c.MlpMixing(rank=rank) if config.n_series is not None:
            return MlpMixer(config.n_series, rank=rank or min(config.n_series, _MAX_DEFAULT_RANK))
        case c.PooledMixing():
            return PooledMixer(config.hidden_size)
        case _:
            return nn.Identity()


def _fusion(config: ModelConfig, outputs_per_step: int) -> GatedFusion | CoarseOnly:
    if isinstance(config.scheduling, c.NoScheduling):
        return CoarseOnly()
    hidden, control_size = config.hidden_size, config.control_size
    grid = ScaleGrid.for_window(config.input_size, config.h)
    scheduler = SCHEDULERS.factories[config.scheduling.kind](config.scheduling, grid, hidden=hidden)
    scales, outputs = len(scheduler.grid), config.h * outputs_per_step
    return GatedFusion(
        Rollout(
            hidden=hidden,
            scheduler=scheduler,
            heads=SegmentHeads(Mlp(hidden, hidden, layers=config.head_layers), GroupedLinear(scales, hidden, outputs)),
            control=ControlSignal(
                horizon=config.h,
                outputs=outputs,
                scales=scales,
                summary=config.summary_size,
                control=control_size,
                temporal_clip=config.temporal_clip,
            ),
            cell=STATE_CELLS.factories[config.state.kind](config.state, hidden=hidden, control=control_size),
            sharpness=config.mask_sharpness,
            outputs_per_step=outputs_per_step,
        )
    )


def register_scheduler(kind: str, factory: SchedulerFactory, options: type[SchedulingOptions]) -> None:
    """Make a scheduler available as `model={"scheduling": {"kind": kind}}`, and in saved models.

    Args:
        kind: The name of the scheduler, which is the only value of the field `kind` of its options.
        factory: Called with (options, grid, hidden=...); usually the scheduler's class.
        options: The class of its options.
    """
    SCHEDULERS.register(kind, factory, options)


def register_state_cell(kind: str, factory: StateCellFactory, options: type[StateOptions]) -> None:
    """Make a state cell available as `model={"state": {"kind": kind}}`; see `register_scheduler`.

    The factory is called with (options, hidden=..., control=...).
    """
    STATE_CELLS.register(kind, factory, options)


def _hierarchical(options: c.HierarchicalScheduling, grid: ScaleGrid, *, hidden: int) -> schedulers.Scheduler:
    if len(grid) == 1:  # the horizon is too short for a choice of scale
        return schedulers.FlatScheduler(grid, hidden=hidden, max_leaps=options.max_leaps)
    return schedulers.HierarchicalController(
        grid, hidden=hidden, max_leaps=options.max_leaps, temperature=options.temperature
    )


def _flat(options: c.FlatScheduling, grid: ScaleGrid, *, hidden: int) -> schedulers.Scheduler:
    return schedulers.FlatScheduler(grid, hidden=hidden, max_leaps=options.max_leaps)


def _monte_carlo(options: c.MonteCarloScheduling, grid: ScaleGrid, *, hidden: int) -> schedulers.Scheduler:  # noqa: ARG001
    return schedulers.MonteCarloScheduler(grid, max_leaps=options.max_leaps, seed=options.seed)


def _fixed_step(options: c.FixedStepScheduling, grid: ScaleGrid, *, hidden: int) -> schedulers.Scheduler:  # noqa: ARG001
    # Nearly all leaps have the same length, so one head learns them all.
    return schedulers.FixedStepScheduler(ScaleGrid.single_level(grid.horizon), step=options.step)


def _controlled(options: c.ControlledState, *, hidden: int, control: int) -> StateCell:
    sizes = {"clusters": options.clusters, "hidden": hidden, "control": control, "width": hidden}
    full = options.field == "full"
    return ControlledCell(FullField(**sizes) if full else FactoredField(**sizes, rank=options.rank or hidden))


register_scheduler("hierarchical", _hierarchical, c.HierarchicalScheduling)
register_scheduler("flat", _flat, c.FlatScheduling)
register_scheduler("monte_carlo", _monte_carlo, c.MonteCarloScheduling)
register_scheduler("fixed", _fixed_step, c.FixedStepScheduling)
register_state_cell("cde", _controlled, c.ControlledState)
register_state_cell("rnn", lambda _, **sizes: RecurrentCell(**sizes), c.RecurrentState)
register_state_cell("lstm", lambda _, **sizes: LongShortTermCell(**sizes), c.LongShortTermState)
