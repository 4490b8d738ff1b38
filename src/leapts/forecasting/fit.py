"""Fit: from a panel to a predictor. Choose options, train, calibrate."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import torch

from leapts.config import FitConfig, ModelConfig, TrainingConfig, require_val_size
from leapts.data.panel import Panel
from leapts.data.scaling import Scaler, Support
from leapts.data.validation import require_length
from leapts.data.windows import MaskedTargets, StridedWindows
from leapts.errors import ConfigError, TrainingError
from leapts.files import claimed
from leapts.forecasting.auto_config import AutoConfig, AutoOption, FitPlan, choose_val_size, plan_fit, typical_length
from leapts.forecasting.held_out import calibration_of, held_out_part, naive_mae, validation_windows
from leapts.forecasting.networks import BUILDERS, UniversalNetwork, load_universal
from leapts.forecasting.predictor import Predictor
from leapts.forecasting.pretrained import plan_fine_tuning, with_pretrained
from leapts.model import LeapTSModel, cluster_series
from leapts.training.checkpoint import Checkpoint
from leapts.training.distillation import train_with_distillation
from leapts.training.distributed import Workers, current_workers, require_same
from leapts.training.early_stopping import TrainingReport
from leapts.training.linear import LinearStart, combine_with_simple, start_linear_path
from leapts.training.loop import Progress, train


def fit(
    panel: Panel,
    config: FitConfig,
    *,
    progress: Progress | None = None,
    checkpoint_dir: str | Path | None = None,
    resume: bool = False,
    on_failure: Callable[[Predictor], None] | None = None,
    workers: Workers | None = None,
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

    Raises:
        DataError: When the data are too short for the options.
        ConfigError: When an option is impossible.
        TrainingError: When training diverges.
    """
    workers = workers or current_workers()
    plan = _planned(panel, config, workers)
    predictor = _untrained(panel, plan, config)
    held_out_panel = held_out_part(panel, plan.val_size, plan.model)
    validation = validation_windows(predictor, held_out_panel, plan.val_size)
    if config.init == "pretrained" and validation is None:
        return predictor
    training = predictor.sliding_windows(plan.train, partial=True)
    has_linear = plan.model.linear_path
    start = start_linear_path(predictor.model, training, validation, plan.seasons) if has_linear else None
    try:
        with _checkpoint(checkpoint_dir, panel, plan, workers, resume=resume) as checkpoint:
            report = train_with_distillation(
                predictor.model,
                lambda seed: _new_model(plan.model, seed, predictor.clusters, start),
                training,
                validation,
                plan.training,
                progress=progress,
                checkpoint=checkpoint,
                workers=workers,
                beat_start=has_linear or config.init == "pretrained",
            )
    except TrainingError as error:
        if on_failure is not None and isinstance(error.report, TrainingReport):
            on_failure(replace(predictor, report=error.report))
        raise
    predictor = replace(predictor, report=report)
    if start is not None:
        predictor = _with_linear_options(predictor, plan, start, validation if config.combine == "auto" else None)
    if config.may_use_pretrained and workers.size == 1 and predictor.covariates is None:
        return _with_pretrained(predictor, panel, plan.val_size)
    return _calibrated(predictor, validation, held_out_panel, plan.val_size)


def _planned(panel: Panel, config: FitConfig, workers: Workers) -> FitPlan:
    """Settle all options; refuse data that are too short for them, or that differ between processes."""
    _require_length(panel, config)
    plan = plan_fine_tuning(panel, config) if config.init == "pretrained" else plan_fit(panel, config)
    if not config.pad_short or plan.model.n_series is not None:
        _require_windows(panel, plan)
    if workers.size > 1:
        require_same(workers, bytes.fromhex(_fingerprint(panel, plan)))
    return plan


def _with_pretrained(own: Predictor, panel: Panel, val_size: int) -> Predictor:
    """Choose between a fitted network, the pretrained one and their mean, and calibrate the choice."""
    chosen = with_pretrained(own, panel, val_size)
    held_out = held_out_part(panel, val_size, chosen.config)
    return _calibrated(chosen, validation_windows(chosen, held_out, val_size), held_out, val_size)


def _require_windows(panel: Panel, plan: FitPlan) -> None:
    steps, h, held_out = plan.model.input_size, plan.model.h, plan.val_size
    purpose = f"one window ({steps} + {h} steps{f' and {held_out} held out' if held_out else ''})"
    require_length(panel, steps + h + held_out, purpose)


def _with_linear_options(
    predictor: Predictor, plan: FitPlan, start: LinearStart, validation: StridedWindows | MaskedTargets | None
) -> Predictor:
    """Combine the network with simple forecasts if there are validation windows, and say what was chosen."""
    options = [AutoOption("linear_path", str(start), f"MAE {start.error:.3g} in cross-validation (scaled)")]
    if validation is not None:
        found = combine_with_simple(predictor.model, validation, plan.seasons, start)
        options.append(AutoOption("combine", str(found), found.reason))
        predictor = replace(predictor, report=replace(predictor.report, combined_mae=found.error))
    return replace(predictor, auto_config=AutoConfig([*predictor.auto_config, *options]))


def _require_length(panel: Panel, config: FitConfig) -> None:
    require_length(panel, config.h + 2, f"a horizon of {config.h} and a look-back")
    if config.val_size:
        some = panel if not config.pad_short else panel.select([panel.series[int(panel.lengths.argmax())]])
        require_length(
            some, config.val_size + config.h + 1, f"val_size={config.val_size} and a training part", "hold out less"
        )


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
    config = TrainingConfig(**{**first.model_dump(), "max_steps": steps, "max_rounds": 1, "val_check_steps": checks})
    model = _new_model(predictor.config, 0, predictor.clusters)
    model.load_state_dict(predictor.model.state_dict())
    input_size = predictor.config.input_size
    held_out = _val_size_of_update(predictor, panel, val_size)
    train_panel = panel.without_end(held_out.value, keep=predictor.config.h + 1) if held_out.value else panel
    known = predictor.scaling(train_panel)[0]
    # A series that was constant in the first fit has no scale yet.
    scaler = known.where_constant(Scaler.fit(train_panel)) if bool(known.constant.any()) else known
    options = [one for one in predictor.auto_config if one.option != held_out.option]
    updated = replace(
        predictor,
        model=model,
        scaler=scaler,
        support=predictor.support_of(panel),
        tail=panel.ending(input_size, predictor.config.h),
        auto_config=AutoConfig([*options, *([held_out] if held_out.value != val_size else [])]),
    )
    held_out_panel = held_out_part(panel, held_out.value, predictor.config)
    validation = validation_windows(updated, held_out_panel, held_out.value)
    report = train(
        model,
        updated.sliding_windows(train_panel, partial=True),
        validation,
        config,
        progress=progress,
        beat_start=True,
    )
    updated = replace(updated, report=report)
    if validation is not None:
        return _calibrated(updated, validation, held_out_panel, held_out.value)
    has_old_units = predictor.has_series_of(panel) and torch.equal(scaler.std, predictor.scaler.std)
    if predictor.calibration is None or has_old_units:
        return updated
    # Corrections of single series depend on the order and units of the first fit; those of all series together remain.
    return replace(updated, calibration=predictor.calibration.of_last_group())


def _val_size_of_update(predictor: Predictor, panel: Panel, given: int | None) -> AutoOption:
    """Choose the steps an update holds out: as many as a fit would, fewer where the shortest series is too short."""
    h = predictor.config.h
    length, which = typical_length(panel, pad_short=predictor.pad_short)
    try:
        require_val_size(given, h)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    auto = choose_val_size(panel, h, pad_short=predictor.pad_short)
    wanted, reason = auto if given is None else (given, "as given")
    room = length - h - (1 if predictor.pad_short else predictor.config.input_size)
    if wanted <= room:
        return AutoOption("val_size", wanted, reason)
    reason = f"the {which} series has {length} values: too few to hold out {wanted}"
    return AutoOption("val_size", room if room >= h else 0, reason)


def _calibrated(
    predictor: Predictor, validation: StridedWindows | MaskedTargets | None, held_out: Panel | None, val_size: int
) -> Predictor:
    """Add the calibration and the error of the seasonal naive forecast, if windows were held out."""
    if validation is None or held_out is None:
        return predictor
    report = replace(predictor.report, naive_mae=naive_mae(validation, held_out))
    return replace(predictor, report=report, calibration=calibration_of(predictor, held_out, val_size))


def _untrained(panel: Panel, plan: FitPlan, config: FitConfig) -> Predictor:
    clusters, support = _clusters(plan), Support.of(panel, config.support)
    found = [AutoOption("support", *support.summary())] if config.support == "auto" else []
    return Predictor(
        config=plan.model,
        training=plan.training,
        model=_new_model(plan.model, plan.training.random_seed, clusters),
        clusters=clusters,
        scaler=plan.scaler,
        tail=panel.ending(plan.model.input_size, plan.model.h),
        pad_short=config.pad_short,
        report=TrainingReport(),
        auto_config=AutoConfig([*plan.auto_config, *found]),
        support=support,
        calibration=None,
        covariates=plan.covariates,
    )


def _new_model(
    config: ModelConfig, seed: int, clusters: tuple[int, ...] | None, start: LinearStart | None = None
) -> LeapTSModel:
    # Windows are in single precision, whatever torch's default is in the program around this.
    model = BUILDERS[config.network.kind](config, seed=seed, clusters=clusters).float()
    if config.network.kind == "pretrained":
        model.load_state_dict(UniversalNetwork(load_universal(), config.h).state_dict())
    if start is not None:
        start.apply(model)
    return model


def _clusters(plan: FitPlan) -> tuple[int, ...] | None:
    """Cluster of each series, from the training part; none where there is one cluster."""
    if plan.model.clusters == 1:
        return None
    series = plan.scaler.transform(plan.train).view(len(plan.train), -1)
    generator = torch.Generator().manual_seed(plan.training.random_seed)
    return tuple(cluster_series(series, plan.model.clusters, generator).tolist())


def _fingerprint(panel: Panel, plan: FitPlan) -> str:
    """Hash of everything that training depends on."""
    digest = hashlib.sha256(plan.model.to_json().encode())
    digest.update(plan.training.model_dump_json().encode())
    digest.update(str(plan.val_size).encode())
    digest.update(panel.offsets.numpy().tobytes())
    digest.update(panel.values.numpy().tobytes())
    if panel.covariates is not None:
        known = panel.covariates.compact(panel.lengths)
        digest.update(known.values.numpy().tobytes() + known.of_series.numpy().tobytes())
    return digest.hexdigest()
