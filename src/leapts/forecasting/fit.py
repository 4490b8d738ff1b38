"""Fit: from a panel to a predictor. Choose options, train, calibrate."""

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import count
from pathlib import Path

import torch
from jaxtyping import Int64
from torch import Tensor

from leapts.config import FitConfig, ModelConfig, TrainingConfig, require_val_size
from leapts.data.frequency import seasonal_period
from leapts.data.panel import Panel
from leapts.data.scaling import Scaler
from leapts.data.validation import require_length
from leapts.data.windows import MaskedTargets, StridedWindows
from leapts.errors import ConfigError, TrainingError
from leapts.files import claimed
from leapts.forecasting.auto_config import AutoConfig, AutoOption, FitPlan, choose_val_size, plan_fit
from leapts.forecasting.intervals import ConformalScores, Level, enough_for_own_groups, require_scores
from leapts.forecasting.predictor import Predictor, tail_of
from leapts.model import LeapTSModel, cluster_series
from leapts.model.build import build_model
from leapts.training.checkpoint import Checkpoint
from leapts.training.distillation import train_with_distillation
from leapts.training.distributed import Workers, current_workers, require_same
from leapts.training.early_stopping import TrainingReport
from leapts.training.loop import Progress, train

_MAX_VALIDATION_ROWS = 50_000  # more windows hardly change which weights are best
_MAX_CALIBRATION_ROWS = 20_000


def fit(
    panel: Panel,
    config: FitConfig,
    *,
    progress: Progress | None = None,
    checkpoint_dir: str | Path | None = None,
    resume: bool = False,
    on_failure: Callable[[Predictor], None] | None = None,
    workers: Workers | None = None,
    levels: Sequence[Level] = (),
) -> Predictor:
    """Choose the options left open, train a network, and calibrate its prediction intervals.

    Args:
        panel: The data.
        config: The options of the user.
        progress: Called after every training step.
        checkpoint_dir: Folder for the state of training.
        resume: Whether to resume from the state in that folder.
        on_failure: Called with the model and its last good weights when training diverges, before the error.
        workers: Processes to train with; by default those of torch's process group, if this process is in one.
        levels: Levels of prediction intervals to be asked for later, refused now if too few windows are held out.

    Raises:
        DataError: When the data are too short for the options, or hold too few windows for a level.
        ConfigError: When an option is impossible.
        TrainingError: When training diverges.
    """
    workers = workers or current_workers()
    _require_length(panel, config)
    plan = plan_fit(panel, config)
    if not config.pad_short:
        steps, held_out = plan.model.input_size, plan.val_size
        purpose = f"one window ({steps} + {config.h} steps{f' and {held_out} held out' if held_out else ''})"
        require_length(panel, steps + config.h + held_out, purpose)
    if workers.size > 1:
        require_same(workers, bytes.fromhex(_fingerprint(panel, plan)))
    predictor = _untrained(panel, plan, pad_short=config.pad_short)
    held_out_panel = _held_out(panel, plan.val_size, plan.model.input_size)
    validation = _validation_windows(predictor, held_out_panel)
    if levels:
        _require_levels(predictor, held_out_panel if validation is not None else None, levels)
    try:
        with _checkpoint(checkpoint_dir, panel, plan, workers, resume=resume) as checkpoint:
            report = train_with_distillation(
                predictor.model,
                lambda seed: _new_model(plan.model, seed, predictor.clusters),
                predictor.sliding_windows(plan.train),
                validation,
                plan.training,
                progress=progress,
                checkpoint=checkpoint,
                workers=workers,
            )
    except TrainingError as error:
        if on_failure is not None and isinstance(error.report, TrainingReport):
            on_failure(replace(predictor, report=error.report))
        raise
    return _calibrated(replace(predictor, report=report), validation, held_out_panel)


def _require_length(panel: Panel, config: FitConfig) -> None:
    require_length(panel, config.h + 2, f"a horizon of {config.h} and a look-back")
    if config.val_size:
        least = config.val_size + (1 if config.pad_short else config.h + 1)
        require_length(panel, least, f"val_size={config.val_size} and a training part", "hold out less")


@contextmanager
def _checkpoint(
    folder: str | Path | None, panel: Panel, plan: FitPlan, workers: Workers, *, resume: bool
) -> Iterator[Checkpoint | None]:
    """Lock the checkpoint folder, if there is one, for as long as the fit trains.

    Raises:
        FolderInUseError: When another fit uses the folder.
    """
    if folder is None:
        yield None
        return
    checkpoint = Checkpoint(folder, fingerprint=_fingerprint(panel, plan))
    with claimed(Path(folder)) if workers.rank == 0 else nullcontext():
        if not resume and workers.rank == 0:
            checkpoint.discard()
        yield checkpoint


def update(
    predictor: Predictor, panel: Panel, *, val_size: int | None, max_steps: int | None, progress: Progress | None
) -> Predictor:
    """Continue training a copy of a fitted model on newer data."""
    predictor.require_frequency(panel)
    panel = predictor.require_usable(panel)
    first = predictor.training
    steps = max(1, first.max_steps // 5) if max_steps is None else max_steps
    checks = min(first.val_check_steps, max(steps, 1))
    config = TrainingConfig(**{**first.model_dump(), "max_steps": steps, "val_check_steps": checks})
    model = _new_model(predictor.config, 0, predictor.clusters)
    model.load_state_dict(predictor.model.state_dict())
    input_size = predictor.config.input_size
    held_out = _val_size_of_update(predictor, panel, val_size)
    train_panel = panel.head(-held_out.value) if held_out.value else panel
    known = predictor.scaling(train_panel)[0]
    # A series that was constant in the first fit has no scale yet.
    scaler = known.where_constant(Scaler.fit(train_panel)) if bool(known.constant.any()) else known
    options = [one for one in predictor.auto_config if one.option != held_out.option]
    updated = replace(
        predictor,
        model=model,
        scaler=scaler,
        tail=tail_of(panel, input_size),
        auto_config=AutoConfig([*options, *([held_out] if held_out.value != val_size else [])]),
    )
    held_out_panel = _held_out(panel, held_out.value, input_size)
    validation = _validation_windows(updated, held_out_panel)
    report = train(model, updated.sliding_windows(train_panel), validation, config, progress=progress, beat_start=True)
    updated = replace(updated, report=report)
    if validation is not None:
        return _calibrated(updated, validation, held_out_panel)
    has_old_units = predictor.has_series_of(panel) and torch.equal(scaler.std, predictor.scaler.std)
    if predictor.scores is None or has_old_units:
        return updated
    # Scores of single series depend on the order and the units of the first fit; those of all series together remain.
    return replace(updated, scores=predictor.scores.of_last_group())


def _held_out(panel: Panel, val_size: int, input_size: int) -> Panel | None:
    """The held-out end of every series with the look-back before it; imputed values there see no later value."""
    return panel.tail(val_size + input_size).without_lookahead() if val_size else None


def _val_size_of_update(predictor: Predictor, panel: Panel, given: int | None) -> AutoOption:
    """Choose the steps an update holds out: as many as a fit would, fewer where the shortest series is too short."""
    shortest, h = int(panel.lengths.min()), predictor.config.h
    try:
        require_val_size(given, h)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    wanted, reason = choose_val_size(shortest, h) if given is None else (given, "as given")
    room = shortest - h - (1 if predictor.pad_short else predictor.config.input_size)
    if wanted <= room:
        return AutoOption("val_size", wanted, reason)
    reason = f"the shortest series has {shortest} values: too few to hold out {wanted}"
    return AutoOption("val_size", room if room >= h else 0, reason)


def _calibrated(
    predictor: Predictor, validation: StridedWindows | MaskedTargets | None, held_out: Panel | None
) -> Predictor:
    """Add calibration scores and the error of the seasonal naive forecast, if windows were held out."""
    if validation is None or held_out is None:
        return predictor
    report = replace(predictor.report, naive_mae=_naive_mae(validation, held_out))
    return replace(predictor, report=report, scores=calibration_scores(predictor, held_out))


def calibration_scores(predictor: Predictor, panel: Panel) -> ConformalScores:
    """Measure the model's errors on held-out windows, for each step of the horizon.

    Series with enough windows have scores of their own; otherwise all series share them, in standard deviations.
    Constant series count only if there are no others.
    """
    windows = _sampled_windows(predictor, panel, _MAX_CALIBRATION_ROWS)
    errors = []
    for some in torch.arange(len(windows)).split(max(1, 8192 // _rows_per_window(predictor, panel))):
        batch = windows.gather(some)
        errors.append((predictor.run_network(batch).values - batch.target).flatten(0, 1))
    rows, groups = _calibration_rows(predictor, panel, windows)
    return ConformalScores.fit(torch.cat(errors)[rows], torch.ones(len(rows)), groups)


def _calibration_rows(
    predictor: Predictor, panel: Panel, windows: StridedWindows
) -> tuple[Int64[Tensor, " scores"], Int64[Tensor, " scores"]]:
    """Rows of the windows that count for calibration, and the group of each."""
    members = windows.series_of(torch.arange(len(windows)))
    changing = ~predictor.scaling(panel)[0].constant[members]
    pooled = changing.nonzero().flatten() if bool(changing.any()) else torch.arange(len(members))
    places = predictor.places_of(panel.series)
    series = places[members]
    if torch.equal(places.sort().values, torch.arange(len(predictor.tail))):
        windows_of_each = torch.bincount(series, minlength=len(panel))
        if len(panel) > 1 and enough_for_own_groups(windows_of_each, predictor.config.h):
            # One group for each series, and a last one for unseen series.
            rows = torch.cat([torch.arange(len(members)), pooled])
            return rows, torch.cat([series, series.new_full((len(pooled),), len(panel))])
    return pooled, torch.zeros_like(pooled)


def _require_levels(predictor: Predictor, held_out: Panel | None, levels: Sequence[Level]) -> None:
    """Refuse levels that the held-out windows are too few for, before training."""
    if held_out is None:
        require_scores(None)
        return
    windows = _sampled_windows(predictor, held_out, _MAX_CALIBRATION_ROWS)
    _, groups = _calibration_rows(predictor, held_out, windows)
    scores = ConformalScores.fit(torch.zeros(len(groups), 1), torch.ones(len(groups)), groups)
    for level in levels:
        scores.half_widths(level)


def _naive_mae(windows: StridedWindows | MaskedTargets | None, panel: Panel) -> float | None:
    """Scaled MAE of the seasonal naive forecast on the validation windows, to compare the model with.

    Where a season is longer than the look-back, the last value is repeated instead.
    """
    if windows is None:
        return None
    season, total, number = seasonal_period(panel.freq), 0.0, 0
    for index in torch.arange(len(windows)).split(4096):
        batch = windows.gather(index)
        lookback, h = batch.history.shape[-1], batch.target.shape[-1]
        period = season if season <= lookback else 1
        steps = lookback - period + torch.arange(h) % period
        error = (batch.history.index_select(-1, steps) - batch.target).abs()
        known = ~batch.target.isnan()
        total += float(error[known].sum(dtype=torch.float64))
        number += int(known.sum())
    return total / number if number else None


def _untrained(panel: Panel, plan: FitPlan, *, pad_short: bool) -> Predictor:
    clusters = _clusters(plan)
    return Predictor(
        config=plan.model,
        training=plan.training,
        model=_new_model(plan.model, plan.training.random_seed, clusters),
        clusters=clusters,
        scaler=plan.scaler,
        tail=tail_of(panel, plan.model.input_size),
        pad_short=pad_short,
        report=TrainingReport(),
        auto_config=plan.auto_config,
        scores=None,
    )


def _new_model(config: ModelConfig, seed: int, clusters: tuple[int, ...] | None) -> LeapTSModel:
    # Windows are in single precision, whatever torch's default is in the program around this.
    return build_model(config, seed=seed, clusters=clusters).float()


def _clusters(plan: FitPlan) -> tuple[int, ...] | None:
    """Cluster of each series, from the training part; none where there is one cluster."""
    if plan.model.clusters == 1:
        return None
    series = plan.scaler.transform(plan.train).view(len(plan.train), -1)
    generator = torch.Generator().manual_seed(plan.training.random_seed)
    return tuple(cluster_series(series, plan.model.clusters, generator).tolist())


def _validation_windows(predictor: Predictor, panel: Panel | None) -> StridedWindows | MaskedTargets | None:
    """Sample the windows for validation checks, if any steps are held out.

    A series that is constant in the training part has no standard deviation, so its errors could outweigh all others.
    Its targets are masked, unless all series are constant.
    """
    if panel is None or (predictor.pad_short and int(panel.lengths.max()) <= predictor.config.h):
        return None
    windows = _sampled_windows(predictor, panel, _MAX_VALIDATION_ROWS)
    constant = predictor.scaling(panel)[0].constant
    if not bool(constant.any()):
        return windows
    # The sample may hold no window of a changing series.
    counts = ~constant[windows.series_of(torch.arange(len(windows)))]
    return MaskedTargets(windows, constant) if bool(counts.any()) and not bool(counts.all()) else windows


def _sampled_windows(predictor: Predictor, panel: Panel, max_rows: int) -> StridedWindows:
    """Sample windows of a panel evenly, with at most `max_rows` rows in all."""
    windows = predictor.sliding_windows(panel)
    # Windows of a univariate model are numbered one series after the other.
    per_series = 1 if predictor.is_multivariate else max(1, len(windows) // len(panel))
    rows = len(windows) * _rows_per_window(predictor, panel)
    return StridedWindows(windows, _stride(rows, max_rows, seasonal_period(panel.freq) * per_series))


def _stride(rows: int, max_rows: int, cycle: int) -> int:
    """Stride between sampled windows so that at most `max_rows` rows are used.

    It shares no factor with the cycle (season x windows per series): otherwise all sampled windows would start at the
    same phase of the season, or at the same place of their series.
    """
    strides = count(max(1, math.ceil(rows / max_rows)))
    return next(stride for stride in strides if stride == 1 or math.gcd(stride, cycle) == 1)


def _rows_per_window(predictor: Predictor, panel: Panel) -> int:
    return len(panel) if predictor.is_multivariate else 1


def _fingerprint(panel: Panel, plan: FitPlan) -> str:
    """Hash of everything that training depends on."""
    digest = hashlib.sha256(plan.model.to_json().encode())
    digest.update(plan.training.model_dump_json().encode())
    digest.update(str(plan.val_size).encode())
    digest.update(panel.offsets.numpy().tobytes())
    digest.update(panel.values.numpy().tobytes())
    return digest.hexdigest()
