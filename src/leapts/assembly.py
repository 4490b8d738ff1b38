"""From options to a model: the one place where a variant's name becomes an object."""

import threading
from collections.abc import Sequence

import torch
from torch import nn

from leapts.config import (
    ControlledState,
    FixedStepScheduling,
    FlatScheduling,
    HierarchicalScheduling,
    LongShortTermState,
    MlpMixing,
    ModelConfig,
    MonteCarloScheduling,
    NoScheduling,
    PooledMixing,
    RecurrentState,
)
from leapts.core.control import ControlSignal
from leapts.core.controller import FlatScheduler, HierarchicalController
from leapts.core.encoder import Encoder, MlpMixer, PooledMixer, VariateIdentity
from leapts.core.fusion import CoarseOnly, Fusion, GatedFusion
from leapts.core.model import LeapTSModel, WindowShape
from leapts.core.normalization import by_last_value, by_mean, shifted, unnormalized
from leapts.core.rollout import Rollout
from leapts.core.scales import ScaleGrid
from leapts.core.schedulers import FixedStepScheduler, MonteCarloScheduler, Scheduler
from leapts.core.segments import SegmentHeads
from leapts.core.state_cells import ControlledCell, LongShortTermCell, RecurrentCell, StateCell
from leapts.core.vector_fields import FactoredField, FullField
from leapts.errors import ConfigError

_NORMALIZATIONS = {"mean": by_mean, "last": by_last_value, "shift": shifted, "none": unnormalized}

# Beyond this many variates an exchange of full width costs more than the encoder it serves.
_WIDEST_EXCHANGE = 64


_INITIALISING = threading.Lock()


def build_model(
    config: ModelConfig, *, seed: int, clusters: Sequence[int] | None = None, outputs: int = 1
) -> LeapTSModel:
    """A freshly initialised model: the same seed gives the same weights, whatever was drawn before.

    Args:
        config: what to build.
        seed: of the initial weights.
        clusters: the group of each variate, needed where the options ask for more than one group
            (see `leapts.core.cluster_variates`).
        outputs: numbers to forecast for each step: one, unless the loss asks for more.
    """
    groups = _checked_clusters(config, clusters)
    # The generator is the whole program's: another thread must not draw from it in between.
    with _INITIALISING, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LeapTSModel(
            WindowShape(config.input_size, config.h, config.n_series, outputs),
            hidden=config.hidden_size,
            normalization=_NORMALIZATIONS[config.normalization],
            encoder=Encoder(
                lookback=config.input_size,
                hidden=config.hidden_size,
                layers=config.encoder_layers,
                identity=_identity(config),
                mixer=_mixer(config),
            ),
            fusion=_fusion(config, outputs),
            clusters=groups,
        )


def _checked_clusters(config: ModelConfig, clusters: Sequence[int] | None) -> tuple[int, ...] | None:
    if config.clusters == 1:
        return None
    if clusters is None or len(clusters) != config.n_series:
        given = "none" if clusters is None else str(len(clusters))
        raise ConfigError(
            f"state.clusters is {config.clusters}: a group is needed for each of the {config.n_series} variates, "
            f"{given} given; find them with leapts.core.cluster_variates"
        )
    if not set(clusters) <= set(range(config.clusters)):
        raise ConfigError(f"groups are numbered from 0 to {config.clusters - 1}, given: {sorted(set(clusters))}")
    return tuple(clusters)


def _identity(config: ModelConfig) -> nn.Module:
    if not config.variate_identity or config.n_series is None:
        return nn.Identity()
    return VariateIdentity(config.n_series, config.hidden_size)


def _mixer(config: ModelConfig) -> nn.Module:
    match config.mixing:
        case MlpMixing(rank=rank) if config.n_series is not None:
            return MlpMixer(config.n_series, rank=rank or min(config.n_series, _WIDEST_EXCHANGE))
        case PooledMixing():
            return PooledMixer(config.hidden_size)
        case _:
            return nn.Identity()


def _fusion(config: ModelConfig, outputs: int) -> Fusion:
    if isinstance(config.scheduling, NoScheduling):
        return CoarseOnly()
    scheduler = _scheduler(config)
    scales, numbers = len(scheduler.grid), config.h * outputs
    heads = SegmentHeads(hidden=config.hidden_size, numbers=numbers, scales=scales, layers=config.head_layers)
    control = ControlSignal(
        numbers=numbers,
        scales=scales,
        summary=config.summary_size,
        control=config.control_size,
        temporal_clip=config.temporal_clip,
    )
    return GatedFusion(
        Rollout(
            hidden=config.hidden_size,
            scheduler=scheduler,
            heads=heads,
            control=control,
            cell=_cell(config),
            sharpness=config.mask_sharpness,
            outputs=outputs,
        )
    )


def _scheduler(config: ModelConfig) -> Scheduler:
    grid = ScaleGrid.for_window(config.input_size, config.h)
    match config.scheduling:
        case HierarchicalScheduling(max_leaps=max_leaps, temperature=temperature) if len(grid) > 1:
            return HierarchicalController(grid, hidden=config.hidden_size, max_leaps=max_leaps, temperature=temperature)
        # Too short a horizon for three scales leaves the controller with one level: a length.
        case HierarchicalScheduling(max_leaps=max_leaps) | FlatScheduling(max_leaps=max_leaps):
            return FlatScheduler(config.h, hidden=config.hidden_size, max_leaps=max_leaps)
        case MonteCarloScheduling(max_leaps=max_leaps, seed=seed):
            return MonteCarloScheduler(grid, max_leaps=max_leaps, seed=seed)
        case FixedStepScheduling(step=step):
            # Nearly all its leaps have one length, so a single head learns them all.
            return FixedStepScheduler(ScaleGrid.single_level(config.h), step=step)
        case NoScheduling():
            raise AssertionError("there is no schedule without a scheduling branch")


def _cell(config: ModelConfig) -> StateCell:
    hidden, control = config.hidden_size, config.control_size
    match config.state:
        case ControlledState(field="full", clusters=clusters):
            full = FullField(clusters=clusters, hidden=hidden, control=control, width=hidden)
            return ControlledCell(full)
        case ControlledState(clusters=clusters, rank=rank):
            factored = FactoredField(
                clusters=clusters, hidden=hidden, control=control, width=hidden, rank=rank or hidden
            )
            return ControlledCell(factored)
        case RecurrentState():
            return RecurrentCell(hidden=hidden, control=control)
        case LongShortTermState():
            return LongShortTermCell(hidden=hidden, control=control)
