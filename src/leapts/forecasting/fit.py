"""From a panel to a fitted model."""

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor

from leapts.config import ModelConfig, TrainingConfig
from leapts.data.frequency import seasonal_period
from leapts.data.panel import Panel
from leapts.data.scaling import Scaler
from leapts.data.splits import PanelSplit, split_by_sizes
from leapts.data.validation import require_length
from leapts.data.windows import MaskedTargets, StridedWindows
from leapts.errors import ConfigError, TrainingError
from leapts.files import claimed
from leapts.forecasting.auto_config import Pick, Picked, pick_options, pick_val_size
from leapts.forecasting.intervals import ConformalScores, Level, enough_for_own_groups
from leapts.forecasting.predictor import Fitted, tail_of
from leapts.model import LeapTSModel, cluster_series
from leapts.model.build import build_model
from leapts.training.checkpoint import Checkpoint
from leapts.training.distillation import train_with_distillation
from leapts.training.distributed import Workers, current_workers, require_same
from leapts.training.early_stopping import TrainingReport
from leapts.training.loop import Progress, train

# Looking at more validation windows than this tells no more about which weights are best.
_MAX_VALIDATION_ROWS = 50_000
_MAX_CALIBRATION_ROWS = 20_000


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """What a user asked for, before anything is picked."""

    h: int
    input_size: int | None
    val_size: int | None
    pad_short: bool
    model: dict[str, Any]
    training: dict[str, Any]


def fit_panel(
    panel: Panel,
    options: FitOptions,
    *,
    progress: Progress | None = None,
    checkpoint_dir: str | Path | None = None,
    resume: bool = False,
    on_failure: Callable[[Fitted], None] | None = None,
    workers: Workers | None = None,
    levels: Sequence[Level] = (),
) -> Fitted:
    """Pick what is left open, fit, and calibrate.

    Args:
        panel: The data.
        options: What the user asked for.
        progress: Called after every step of training.
        checkpoint_dir: Where to keep the state of training.
        resume: Whether to go on from the state kept there.
        on_failure: Given the model with its last good weights when training diverges, before the error is raised.
        workers: The processes to train with; those of torch's process group, if this process is in one, when left out.
        levels: Intervals that will be asked for: whether windows enough are held out for them is known before the fit.

    Raises:
        DataError: When the data are too short for the options, or hold too few windows for a level.
        ConfigError: When an option cannot be.
        TrainingError: When training diverges.
    """
    workers = workers or current_workers()
    if options.h < 1:
        raise ConfigError(f"h={options.h} is no horizon; forecast at least 1 step")
    _require_val_size(options.val_size, options.h)
    if options.input_size is not None and options.input_size < 1:
        raise ConfigError(f"input_size={options.input_size} looks back on nothing; look back on at least 1 step")
    require_length(panel, options.h + 2, f"a horizon of {options.h} and something to look back on")
    if options.val_size:
        least = options.val_size + (1 if options.pad_short else options.h + 1)
        require_length(panel, least, f"val_size={options.val_size} with something left to learn from", "hold out less")
    picked = pick_options(
        panel,
        options.h,
        input_size=options.input_size,
        val_size=options.val_size,
        model=options.model,
        training=options.training,
        pad_short=options.pad_short,
    )
    if not options.pad_short:
        needed = picked.model.input_size + options.h + picked.val_size
        purpose = f"one window ({picked.model.input_size} + {options.h} steps"
        purpose += f" and {picked.val_size} held out)" if picked.val_size else ")"
        require_length(panel, needed, purpose)
    split = _split(panel, picked.val_size, picked.model.input_size)
    fitted = _untrained(panel, split.train, picked, options)
    if workers.size > 1:
        require_same(workers, bytes.fromhex(_fingerprint(panel, picked)))
    validation = _validation_windows(fitted, split.val if picked.val_size else None)
    if levels:
        _require_levels(fitted, None if validation is None else split.val, levels)
    try:
        with _kept_state(checkpoint_dir, panel, picked, workers, resume=resume) as checkpoint:
            report = train_with_distillation(
                fitted.model,
                lambda seed: _built(picked.model, seed, fitted.clusters),
                fitted.windows(split.train),
                validation,
                picked.training,
                progress=progress,
                checkpoint=checkpoint,
                workers=workers,
            )
    except TrainingError as error:
        if on_failure is not None and isinstance(error.report, TrainingReport):
            on_failure(replace(fitted, report=error.report))
        raise
    fitted = replace(fitted, report=report)
    return replace(fitted, scores=None if validation is None else calibrated(fitted, split.val))


@contextmanager
def _kept_state(
    folder: str | Path | None, panel: Panel, picked: Picked, workers: Workers, *, resume: bool
) -> Iterator[Checkpoint | None]:
    """Where the state is kept, if anywhere; the folder is this fit's alone for as long as it trains.

    Raises:
        FolderInUseError: When another fit keeps its state there.
    """
    if folder is None:
        yield None
        return
    checkpoint = Checkpoint(folder, fingerprint=_fingerprint(panel, picked))
    with claimed(Path(folder)) if workers.rank == 0 else nullcontext():
        if not resume and workers.rank == 0:
            checkpoint.discard()
        yield checkpoint


def continue_fit(
    fitted: Fitted, panel: Panel, *, val_size: int | None, max_steps: int | None, progress: Progress | None
) -> Fitted:
    """Train a copy of the fitted model further on newer data."""
    panel = fitted.accepted(panel)
    first = fitted.training
    steps = max(1, first.max_steps // 5) if max_steps is None else max_steps
    checks = min(first.val_check_steps, max(steps, 1))
    config = TrainingConfig(**{**first.model_dump(), "max_steps": steps, "val_check_steps": checks})
    model = _built(fitted.config, 0, fitted.clusters)
    model.load_state_dict(fitted.model.state_dict())
    lookback = fitted.config.input_size
    held_out = _held_out_by_update(fitted, panel, val_size)
    split = _split(panel, held_out.value, lookback)
    known = fitted.scaler_for(split.train)
    # What did not move at the fit, a new product perhaps, was measured by nothing, and may since outweigh all others.
    scaler = known.where_constant(Scaler.fit(split.train))
    updated = replace(
        fitted,
        model=model,
        scaler=scaler,
        tail=tail_of(panel, lookback),
        picks=(
            *(pick for pick in fitted.picks if pick.name != held_out.name),
            *((held_out,) if held_out.value != val_size else ()),
        ),
    )
    validation = _validation_windows(updated, split.val if held_out.value else None)
    report = train(model, updated.windows(split.train), validation, config, progress=progress, beat_start=True)
    updated = replace(updated, report=report)
    if validation is not None:
        return replace(updated, scores=calibrated(updated, split.val))
    has_old_units = fitted.has_series_of(panel) and torch.equal(scaler.std, fitted.scaler.std)
    if fitted.scores is None or has_old_units:
        return updated
    # Scores of single series go by the places and units of the fit; for others, those of all of them together remain.
    return replace(updated, scores=fitted.scores.of_last_group())


def _split(panel: Panel, val_size: int, input_size: int) -> PanelSplit:
    """What to learn from and what to judge by, where nothing in a gap may show what came after it."""
    split = split_by_sizes(panel, val_size=val_size, test_size=0, input_size=input_size)
    return split._replace(val=split.val.without_lookahead())


def _held_out_by_update(fitted: Fitted, panel: Panel, given: int | None) -> Pick:
    """As many steps as a fit to the panel would hold out: intervals need as many windows after an update as before.

    Fewer where the shortest series is too short to be learned from as well.
    """
    shortest, h = int(panel.lengths.min()), fitted.config.h
    _require_val_size(given, h)
    wanted, reason = pick_val_size(shortest, h) if given is None else (given, "as given")
    room = shortest - h - (1 if fitted.pad_short else fitted.config.input_size)
    if wanted <= room:
        return Pick("val_size", wanted, reason)
    reason = f"the shortest series has {shortest} values: too few to hold out {wanted}"
    return Pick("val_size", room if room >= h else 0, reason)


def _require_val_size(val_size: int | None, h: int) -> None:
    if val_size is not None and val_size != 0 and val_size < h:
        raise ConfigError(f"val_size={val_size} holds no window of {h} steps; hold out at least {h}, or 0")


def calibrated(fitted: Fitted, panel: Panel) -> ConformalScores:
    """How far off the model is on windows it was not fitted on, for each step of the horizon.

    Series with windows enough are measured each for itself, otherwise all together in units of their deviation; those
    that were constant have none, and are measured with the others only if there are no others.
    """
    windows = _some_windows(fitted, panel, _MAX_CALIBRATION_ROWS)
    errors = []
    for some in torch.arange(len(windows)).split(max(1, 8192 // _rows_a_window(fitted, panel))):
        batch = windows.gather(some)
        errors.append((fitted.inference_copy.forecast(batch.history).values - batch.target).flatten(0, 1))
    rows, groups = _measured_rows(fitted, panel, windows)
    return ConformalScores.fit(torch.cat(errors)[rows], torch.ones(len(rows)), groups)


def _measured_rows(
    fitted: Fitted, panel: Panel, windows: StridedWindows
) -> tuple[Int64[Tensor, " scores"], Int64[Tensor, " scores"]]:
    """Which rows of the windows the intervals are measured on, and of which group each of them is."""
    members = windows.series_of(torch.arange(len(windows)))
    moving = ~fitted.scaler_for(panel).constant[members]
    pooled = moving.nonzero().flatten() if bool(moving.any()) else torch.arange(len(members))
    places = fitted.places_of(panel.series)
    series = places[members]
    if torch.equal(places.sort().values, torch.arange(len(fitted.tail))):
        windows_of_each = torch.bincount(series, minlength=len(panel))
        if len(panel) > 1 and enough_for_own_groups(windows_of_each, fitted.config.h):
            # One group for each series, and after them one for series that were not there.
            rows = torch.cat([torch.arange(len(members)), pooled])
            return rows, torch.cat([series, series.new_full((len(pooled),), len(panel))])
    return pooled, torch.zeros_like(pooled)


def _require_levels(fitted: Fitted, held_out: Panel | None, levels: Sequence[Level]) -> None:
    """Refuse levels there will be too few scores for, by as many scores of nothing."""
    if held_out is None:
        fitted.require_scores()
        return
    _, groups = _measured_rows(fitted, held_out, _some_windows(fitted, held_out, _MAX_CALIBRATION_ROWS))
    scores = ConformalScores.fit(torch.zeros(len(groups), 1), torch.ones(len(groups)), groups)
    for level in levels:
        scores.half_widths(level)


def _untrained(panel: Panel, train_part: Panel, picked: Picked, options: FitOptions) -> Fitted:
    scaler = Scaler.fit(train_part)
    clusters = _clusters(train_part, scaler, picked.model, picked.training.random_seed)
    return Fitted(
        config=picked.model,
        training=picked.training,
        model=_built(picked.model, picked.training.random_seed, clusters),
        clusters=clusters,
        scaler=scaler,
        tail=tail_of(panel, picked.model.input_size),
        pad_short=options.pad_short,
        report=TrainingReport(),
        picks=picked.picks,
        scores=None,
    )


def _built(config: ModelConfig, seed: int, clusters: tuple[int, ...] | None) -> LeapTSModel:
    # Data reach a model in single precision, whatever the default of the program around it.
    return build_model(config, seed=seed, clusters=clusters).float()


def _clusters(panel: Panel, scaler: Scaler, config: ModelConfig, seed: int) -> tuple[int, ...] | None:
    if config.clusters == 1:
        return None
    series = scaler.transform(panel).view(len(panel), -1)
    return tuple(cluster_series(series, config.clusters, torch.Generator().manual_seed(seed)).tolist())


def _validation_windows(fitted: Fitted, panel: Panel | None) -> StridedWindows | MaskedTargets | None:
    """Windows to choose weights by, if there are any.

    A series that was constant has no deviation to count its errors in, and could outweigh all others: it has no say.
    """
    if panel is None or (fitted.pad_short and int(panel.lengths.max()) <= fitted.config.h):
        return None
    windows = _some_windows(fitted, panel, _MAX_VALIDATION_ROWS)
    constant = fitted.scaler_for(panel).constant
    # Of very many series some windows are taken, and those of all that move may not be among them.
    judged = ~constant[windows.series_of(torch.arange(len(windows)))]
    return MaskedTargets(windows, constant) if bool(judged.any()) and not bool(judged.all()) else windows


def _some_windows(fitted: Fitted, panel: Panel, max_rows: int) -> StridedWindows:
    """As many windows of a panel as make at most so many rows."""
    windows = fitted.windows(panel)
    # Windows of single series are numbered one series after the other.
    a_series = 1 if fitted.is_multivariate else max(1, len(windows) // len(panel))
    rows = len(windows) * _rows_a_window(fitted, panel)
    return StridedWindows(windows, _step(rows, max_rows, seasonal_period(panel.freq) * a_series))


def _step(rows: int, most: int, cycles: int) -> int:
    """Every how many windows one is taken, so that at most so many rows are.

    Never in step with the season or the series, whose product is given: windows that all begin at the same hour, or are
    each the first of their series, would tell of those alone.
    """
    steps = count(max(1, math.ceil(rows / most)))
    return next(step for step in steps if step == 1 or math.gcd(step, cycles) == 1)


def _rows_a_window(fitted: Fitted, panel: Panel) -> int:
    return len(panel) if fitted.is_multivariate else 1


def _fingerprint(panel: Panel, picked: Picked) -> str:
    """Of everything the course of training depends on."""
    digest = hashlib.sha256(picked.model.to_json().encode())
    digest.update(picked.training.model_dump_json().encode())
    digest.update(str(picked.val_size).encode())
    digest.update(panel.offsets.numpy().tobytes())
    digest.update(panel.values.numpy().tobytes())
    return digest.hexdigest()
