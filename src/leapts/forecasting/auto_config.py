"""Auto config: choose the options that a user left open from the data, each with a reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import torch

from leapts.config import QUANTILES, FitConfig, ModelConfig, TrainingConfig, current_names
from leapts.data.covariate_channels import CovariateEncoder
from leapts.data.panel import Panel
from leapts.data.scaling import Scaler
from leapts.data.seasons import find_seasons
from leapts.data.windows import Windows
from leapts.errors import ConfigError
from leapts.messages import quoted
from leapts.registration import load_named_kinds

MAX_LOOKBACK = 192
_MAX_FULL_LOOKBACK = 256  # longer ones are pooled by the encoder
_PARTS = ("mixing", "scheduling", "state")
_ROWS_PER_STEP = 512  # windows x series: enough to keep the processor busy, few enough for many steps
_MIN_STEPS, _MAX_STEPS = 300, 2000
_EPOCHS = 20
_MAX_ROUNDS = 3


@dataclass(frozen=True)
class AutoOption:
    """One option that was chosen automatically."""

    option: str
    value: Any
    reason: str


class AutoConfig(tuple[AutoOption, ...]):
    """Options that were chosen automatically; prints as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        rows = [("option", "value", "reason"), *((one.option, str(one.value), one.reason) for one in self)]
        widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
        return "\n".join(f"{name:<{widths[0]}}  {value:<{widths[1]}}  {reason}" for name, value, reason in rows)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(one.option)}</td><td>{escape(str(one.value))}</td><td>{escape(one.reason)}</td></tr>"
            for one in self
        )
        return f"<table><tr><th>option</th><th>value</th><th>reason</th></tr>{rows}</table>"


class FitPlan(NamedTuple):
    """All that is settled before training: every option, the training part, and its scaling."""

    model: ModelConfig
    training: TrainingConfig
    val_size: int
    auto_config: AutoConfig
    train: Panel
    scaler: Scaler
    seasons: tuple[int, ...]  # in steps, the main one first
    covariates: CovariateEncoder | None


def plan_fit(panel: Panel, config: FitConfig) -> FitPlan:
    """Choose the options that a user left open for this data.

    Args:
        panel: The data to fit.
        config: The options of the user.

    Raises:
        ConfigError: When an option is impossible for the data.
    """
    model, training = _model_options(config), training_options(config.training)
    chosen = _Choices()
    h, (seasons, seasons_reason) = config.h, find_seasons(panel)
    chosen.given_or("seasons", None, list(seasons), seasons_reason)
    val_size = chosen.given_or("val_size", config.val_size, *choose_val_size(panel, h, pad_short=config.pad_short))
    given_size = config.input_size or model.get("input_size")
    input_size = chosen.given_or("input_size", given_size, *_input_size(panel, config, val_size, seasons))
    train = panel.without_end(val_size, keep=h + 1) if val_size else panel
    scaler = Scaler.fit(train)
    options: dict[str, Any] = {**model, "h": h, "input_size": input_size}
    options["hidden_size"] = chosen.given_or("hidden_size", model.get("hidden_size"), *_hidden_size(train))
    options["normalization"] = chosen.given_or(
        "normalization", model.get("normalization"), *_normalization(train, scaler, input_size, h)
    )
    options.setdefault("point", config.point)
    if config.point == "mean" and config.loss != "quantile":
        raise ConfigError("point='mean' is the mean of learned quantiles; use loss='quantile'")
    if config.loss == "quantile":
        options.setdefault("quantiles", QUANTILES)
    elif options.get("quantiles"):
        raise ConfigError("loss='huber' learns a point forecast, and model= asks for quantiles; use loss='quantile'")
    if "mixing" not in model:
        mixing = chosen.given_or("mixing", None, *_mixing(train))
        options["mixing"] = {"kind": mixing}
        options.setdefault("series_embedding", mixing != "none")
    if _needs_n_series(options):
        options.setdefault("n_series", len(panel))
    if config.pad_short and options.get("n_series") is None and int(panel.lengths.min()) < input_size + h + val_size:
        options.setdefault("mask", True)
    covariates = _covariates(train, chosen)
    options.setdefault("covariates", covariates and covariates.channels)
    options.setdefault("linear_path", True)
    options.setdefault("lookback_pooling", input_size > _MAX_FULL_LOOKBACK)
    complete = ModelConfig(**options)
    if complete.n_series is not None:
        if complete.n_series != len(panel):
            raise ConfigError(f"n_series is {complete.n_series}, but the data has {len(panel)} series")
        panel.matrix()  # refuses series that are not aligned
    windows = _count_windows(train, input_size, h, is_masked=complete.mask)
    training |= _batch_and_steps(chosen, training, windows, complete.n_series or 1)
    auto_config = AutoConfig(chosen.options)
    return FitPlan(complete, TrainingConfig(**training), val_size, auto_config, train, scaler, seasons, covariates)


def _covariates(train: Panel, chosen: "_Choices") -> CovariateEncoder | None:
    """Learn the scaling and the categories of the covariates, and say which are used."""
    known = train.covariates
    if known is None:
        return None
    encoder = CovariateEncoder.fit(train)
    used = () if encoder is None else tuple(one.name for one in encoder.codings)
    if known.found and known.future:
        reason = f"they continue after the last {quoted(train.style.target_col)}"
        chosen.given_or("futr_exog_list", None, ", ".join(known.future), reason)
    if constant := sorted({*known.columns, *known.static} - {*used}):
        chosen.given_or("covariates left out", None, ", ".join(constant), "constant in the training part")
    return encoder


class _Choices:
    """Options that were not given, as they are chosen."""

    def __init__(self) -> None:
        self.options: list[AutoOption] = []

    def given_or(self, option: str, given: Any, value: Any, reason: str) -> Any:
        if given is not None:
            return given
        self.options.append(AutoOption(option, value, reason))
        return value


def _model_options(config: FitConfig) -> dict[str, Any]:
    """Options of the model as given, by their current names and each part as a table."""
    model = current_names(config.model, ModelConfig.renamed)
    if model.get("h", config.h) != config.h:
        raise ConfigError(f"h={config.h} and h={model['h']} in model=: give the horizon once")
    if config.input_size is not None and model.get("input_size", config.input_size) != config.input_size:
        raise ConfigError(
            f"input_size={config.input_size} and input_size={model['input_size']} in model=: give the look-back once"
        )
    load_named_kinds(model)
    # A part may be given by its kind alone: mixing="none".
    return model | {part: {"kind": model[part]} for part in _PARTS if isinstance(model.get(part), str)}


def training_options(training: Mapping[str, Any]) -> dict[str, Any]:
    """Options of training as given, each validated and of its own type."""
    given = {name: value for name, value in training.items() if value is not None}
    return TrainingConfig(**given).model_dump(exclude_unset=True)


def _batch_and_steps(chosen: _Choices, training: Mapping[str, Any], windows: int, n_series: int) -> dict[str, int]:
    """Choose the batch size, the training steps and the steps between validation checks."""
    windows //= n_series
    batch = max(4, _ROWS_PER_STEP // n_series)
    batch_reason = f"about {_ROWS_PER_STEP} rows per training step, or all there are"
    steps = round(min(max(_EPOCHS * max(windows, 1) / batch, _MIN_STEPS), _MAX_STEPS))
    steps_reason = (
        f"{_EPOCHS} passes over {windows:,} windows, between {_MIN_STEPS} and {_MAX_STEPS} steps; up to {_MAX_ROUNDS} "
        "times as many while validation improves"
    )
    batch_size = chosen.given_or("batch_size", training.get("batch_size"), batch, batch_reason)
    max_steps = chosen.given_or("max_steps", training.get("max_steps"), steps, steps_reason)
    val_check_steps = training.get("val_check_steps", max(1, min(50, max_steps // 10)))
    rounds = _MAX_ROUNDS if max_steps != training.get("max_steps") and not training.get("distill_from") else 1
    return {
        "batch_size": batch_size,
        "max_steps": max_steps,
        "max_rounds": training.get("max_rounds", rounds),
        "val_check_steps": val_check_steps,
    }


def _needs_n_series(model: Mapping[str, Any]) -> bool:
    """Whether a part of the model depends on which series it sees."""
    mixing, state = model.get("mixing") or {}, model.get("state") or {}
    kind = mixing.get("kind") if isinstance(mixing, Mapping) else getattr(mixing, "kind", None)
    clusters = state.get("clusters", 1) if isinstance(state, Mapping) else getattr(state, "clusters", 1)
    return kind not in (None, "none") or bool(model.get("series_embedding")) or clusters != 1


def choose_val_size(panel: Panel, h: int, *, pad_short: bool) -> tuple[int, str]:
    """Choose the steps to hold out at the end of every series, with the reason."""
    length, which = typical_length(panel, pad_short=pad_short)
    if length >= 10 * h:
        return max(h, length // 10), f"a tenth of the {which} series"
    if length > 3 * h:
        return h, f"one horizon: the {which} series has no room for more"
    return 0, f"the {which} series has {length} values: too few to hold any out"


def typical_length(panel: Panel, *, pad_short: bool) -> tuple[int, str]:
    """Length that options follow: where short series are padded, a few of them do not decide for all."""
    return (int(panel.lengths.median()), "median") if pad_short else (int(panel.lengths.min()), "shortest")


def _count_windows(panel: Panel, input_size: int, h: int, *, is_masked: bool) -> int:
    """Number of training windows, each of one series."""
    least = min(h, input_size) if is_masked else input_size
    return int((panel.lengths - least - h + 1).clamp(min=0).sum())


def _input_size(panel: Panel, config: FitConfig, val_size: int, seasons: Sequence[int]) -> tuple[int, str]:
    length, which = typical_length(panel, pad_short=config.pad_short)
    season, room = seasons[0], max(1, (length - val_size - config.h) // 2)
    wanted, reason = min(4 * season, MAX_LOOKBACK), f"four seasons of {season}"
    if wanted < 4 * season:
        reason += f", cut to {wanted}"
    fitting = [one for one in seasons if wanted < one * 5 // 4 <= room]
    if fitting and max(fitting) * 5 // 4 > wanted:
        wanted, reason = max(fitting) * 5 // 4, f"a season of {max(fitting)} and a quarter of it"
    if wanted <= 2 * config.h:
        wanted, reason = 2 * config.h, "twice the horizon"
    if wanted <= room:
        return wanted, reason
    return room, f"half of the {which} series without the horizon ({wanted} would be better)"


def _hidden_size(panel: Panel) -> tuple[int, str]:
    values = len(panel.values)
    size = next((size for limit, size in ((3_000, 16), (30_000, 32)) if values < limit), 64)
    return size, f"{values:,} values to learn from"


def _normalization(panel: Panel, scaler: Scaler, input_size: int, h: int) -> tuple[str, str]:
    """Normalize windows by their mean or their last value, whichever is closer to the targets."""
    if input_size == 1:
        return "none", "a look-back of one value would become zero"
    windows = Windows(scaler.transform(panel), panel.offsets, input_size, h, pad_short=True)
    sample = torch.randint(len(windows), (min(len(windows), 2000),), generator=torch.Generator().manual_seed(0))
    batch = windows.gather(sample)
    to_mean = float((batch.target - batch.history.mean(-1, keepdim=True)).abs().mean())
    to_last = float((batch.target - batch.history[..., -1:]).abs().mean())
    found = f"MAE of the window's mean {to_mean:.3g}, of its last value {to_last:.3g} (scaled)"
    return ("last" if to_last < 0.8 * to_mean else "mean"), found


def _mixing(panel: Panel) -> tuple[str, str]:
    if len(panel) == 1:
        return "none", "there is one series"
    if not panel.is_aligned:
        return "none", "the series do not share their timestamps"
    steps = int(panel.lengths[0])
    if steps < 20 * len(panel) or steps < 500:
        return "none", f"{steps:,} steps are too few to learn how {len(panel)} series depend on each other"
    return "mlp", f"{len(panel)} series over the same {steps:,} steps"
