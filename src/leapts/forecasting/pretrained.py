"""The pretrained network in a fit: as it is, fine-tuned, or as a member of the forecast where validation prefers it."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from leapts.config import QUANTILES, FitConfig, ModelConfig, TrainingConfig
from leapts.data.panel import Panel
from leapts.data.scaling import Scaler, Support
from leapts.errors import ConfigError
from leapts.forecasting.auto_config import AutoConfig, AutoOption, FitPlan, choose_val_size, training_options
from leapts.forecasting.held_out import held_out_part, validation_windows
from leapts.forecasting.networks import Ensemble, UniversalNetwork, load_universal
from leapts.forecasting.predictor import Predictor
from leapts.messages import counted
from leapts.model.context import REACH, RECENT
from leapts.parts import EnsembleNetwork, PretrainedNetwork
from leapts.training.early_stopping import TrainingReport
from leapts.training.losses import pinball_errors

MARGIN = 0.01  # of the validation error, by which another forecast has to beat the usual one
FEW_WINDOWS = 32  # of validation, without overlap: fewer also chose the weights of the fitted network, so flatter it
FITTED, PRETRAINED, MEAN = "fitted network", "pretrained network", "mean of fitted and pretrained network"
_TRAINING: dict[str, Any] = {"max_steps": 200, "batch_size": 256, "val_check_steps": 20, "learning_rate": 1e-4}
_ROWS = 512  # of windows that are compared at once


def pretrained_config(panel: Panel, h: int) -> ModelConfig:
    """Return the options of the pretrained network for some series."""
    steps = max(1, min(REACH, int(panel.lengths.max())))
    return ModelConfig(h=h, input_size=steps, quantiles=QUANTILES, mask=True, network=PretrainedNetwork())


def zero_shot_predictor(panel: Panel, config: FitConfig) -> Predictor:
    """Make the pretrained network a predictor of the series of a panel.

    Raises:
        ConfigError: When the horizon is longer than the network can forecast.
    """
    model = pretrained_config(panel, config.h).model_copy(update={"point": config.point})
    return Predictor(
        config=model,
        training=TrainingConfig(**_TRAINING),
        model=UniversalNetwork(load_universal(), config.h).as_model(),
        clusters=None,
        scaler=Scaler.fit(panel),
        tail=panel.ending(model.input_size, config.h),
        pad_short=True,
        report=TrainingReport(),
        auto_config=AutoConfig([AutoOption("init", "pretrained", "no training was asked for")]),
        support=Support.of(panel, config.support),
        calibration=None,
    )


def plan_fine_tuning(panel: Panel, config: FitConfig) -> FitPlan:
    """Settle the options of fine-tuning the pretrained network.

    Raises:
        ConfigError: When an option asks for another network.
    """
    asked = {"model": config.model, "input_size": config.input_size, "loss": config.loss == "huber"}
    if other := [name for name, is_asked in asked.items() if is_asked]:
        raise ConfigError(f"init='pretrained' has its own network and quantiles; leave out {', '.join(other)}")
    if panel.covariates is not None:
        raise ConfigError("init='pretrained' does not use covariates yet; leave them out, or fit with init='random'")
    if config.val_size is None:
        val_size, reason = choose_val_size(panel, config.h, pad_short=True)
    else:
        val_size, reason = config.val_size, "as given"
    chosen = [AutoOption("val_size", val_size, reason)] if config.val_size is None else []
    if not val_size:
        chosen.append(AutoOption("max_steps", 0, "no validation, so the pretrained weights stay"))
    train = panel.without_end(val_size, keep=config.h + 1) if val_size else panel
    model = pretrained_config(panel, config.h).model_copy(update={"point": config.point})
    training = TrainingConfig(**{**_TRAINING, **training_options(config.training)})
    checks = min(training.val_check_steps, training.max_steps)
    training = training.model_copy(update={"val_check_steps": checks})
    return FitPlan(model, training, val_size, AutoConfig(chosen), train, Scaler.fit(train), (), None)


def with_pretrained(own: Predictor, panel: Panel, val_size: int) -> Predictor:
    """Keep the fitted network, or take the pretrained one or the mean of both, by their validation errors.

    The fitted network is the usual one, and the others have to beat it by the margin. With few validation windows the
    usual one is the mean, and only the pretrained network can beat it.
    """
    mean = _mean(own, panel)
    held_out = held_out_part(panel, val_size, mean.config)
    windows = 0 if held_out is None else len(held_out) * val_size // own.config.h
    errors, absolute = _validation_errors(mean, held_out, val_size)
    best = _choice(errors, windows)
    reason = f"{counted(windows, 'validation window')}: too few to tell the networks apart"
    if errors:
        others = ", ".join(f"of the {name} {error:.3g}" for name, error in errors.items() if name != best)
        reason = f"quantile loss {errors[best]:.3g} on {counted(windows, 'validation window')}; {others} (scaled)"
    note = AutoConfig([*own.auto_config, AutoOption("network", best, reason)])
    report = own.report if best == FITTED or not errors else replace(own.report, combined_mae=absolute[best])
    if best == PRETRAINED:
        config = pretrained_config(panel, own.config.h).model_copy(update={"point": own.config.point})
        network = UniversalNetwork(load_universal(), own.config.h).as_model()
        mean = replace(
            mean, config=config, model=network, clusters=None, tail=panel.ending(config.input_size, config.h)
        )
    return replace(own if best == FITTED else mean, auto_config=note, report=report)


def _choice(errors: dict[str, float], windows: int) -> str:
    """Choose by validation errors; 1 % less than the usual choice counts."""
    usual = FITTED if windows >= FEW_WINDOWS else MEAN
    rivals = (PRETRAINED, MEAN) if usual == FITTED else (PRETRAINED,)
    better = [name for name in rivals if errors and errors[name] <= (1 - MARGIN) * errors[usual]]
    return min(better, key=errors.__getitem__, default=usual)


def _mean(own: Predictor, panel: Panel) -> Predictor:
    """Make the mean of a fitted and the pretrained network; a multivariate one needs whole look-backs."""
    longest = int(panel.lengths.max())
    steps = max(own.config.input_size, min(RECENT, longest // 2) if own.is_multivariate else min(REACH, longest))
    network = Ensemble(own.model, UniversalNetwork(load_universal(), own.config.h), is_masked=own.config.mask)
    config = own.config.model_copy(
        update={"input_size": steps, "network": EnsembleNetwork(lookback=own.config.input_size)}
    )
    return replace(own, config=config, model=network.as_model(), tail=panel.ending(steps, own.config.h))


def _validation_errors(
    mean: Predictor, held_out: Panel | None, val_size: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Compute quantile loss and absolute error of both networks and of their mean; none without validation windows."""
    windows = validation_windows(mean, held_out, val_size)
    if windows is None:
        return {}, {}
    network: Ensemble = mean.inference_copy  # type: ignore[assignment]
    sums = torch.zeros(3, 2, dtype=torch.float64)
    known = 0
    for index in torch.arange(len(windows)).split(_ROWS):
        batch = windows.gather(index)
        fitted = network.own.forecast(network.own_history(batch.history), quantiles=True).values
        pretrained = network.pretrained.forecast(batch.history, quantiles=True).values
        for place, values in enumerate((fitted, pretrained, (fitted + pretrained) / 2)):
            found: Tensor = pinball_errors(values, batch.target, network.levels)
            sums[place] += torch.stack([found.mean(-1).sum(), found[..., network.median].sum()])
        known += int((~batch.target.isnan()).sum())
    names = (FITTED, PRETRAINED, MEAN)
    losses, absolute = (dict(zip(names, (column / max(known, 1)).tolist(), strict=True)) for column in sums.T)
    return losses, absolute
