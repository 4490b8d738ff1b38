"""What a user need not choose: look-back, size, mixing, steps and batch, from the shape of the data.

Every choice comes with its reason, so that the output can say what was picked and why.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from leapts.config import ModelConfig, TrainingConfig
from leapts.data.frequency import seasonal_period
from leapts.data.panel import Panel
from leapts.data.scaling import Scaler
from leapts.data.windows import Windows
from leapts.errors import ConfigError
from leapts.registration import load_named_kinds

_LONGEST_PICKED_LOOKBACK = 192
_PARTS = ("mixing", "scheduling", "state")
_ROWS_A_STEP = 512  # windows x variates: enough for the processor, few enough for many steps
_MIN_STEPS, _MAX_STEPS = 300, 2000
_EPOCHS = 20


@dataclass(frozen=True)
class Pick:
    """One option that was chosen automatically."""

    name: str
    value: Any
    reason: str


@dataclass(frozen=True)
class Picked:
    """A complete set of options, and which of them were chosen automatically."""

    model: ModelConfig
    training: TrainingConfig
    val_size: int
    picks: tuple[Pick, ...]


def pick_options(
    panel: Panel,
    h: int,
    *,
    input_size: int | None,
    val_size: int | None,
    model: Mapping[str, Any],
    training: Mapping[str, Any],
    pad_short: bool = False,
) -> Picked:
    """Complete what the user gave.

    Args:
        panel: The data to fit.
        h: The horizon.
        input_size: The look-back, if given.
        val_size: Steps at the end of every series to validate on, if given.
        model: Further options of the model, as given.
        training: Options of the training, as given.
        pad_short: Whether a series shorter than a window makes one.
    """
    for name in ("h", "input_size"):
        if name in model:
            raise ConfigError(f"{name} is an option of its own: pass {name}={model[name]}, not in model=")
    load_named_kinds(model)
    # A part may be given by its kind alone: mixing="none".
    parts = {part: {"kind": model[part]} for part in _PARTS if isinstance(model.get(part), str)}
    model = {**model, **parts}
    training = _typed(training)
    chooser = _Chooser()
    shortest = int(panel.lengths.min())
    val = chooser.given_or("val_size", val_size, *pick_val_size(shortest, h))
    lookback = chooser.given_or("input_size", input_size, *_input_size(panel, h, val, pad_short=pad_short))
    options: dict[str, Any] = {"h": h, "input_size": lookback, **model}
    known = panel.head(-val) if val else panel
    windows = _windows(known, lookback, h, pad_short=pad_short)

    options["hidden_size"] = chooser.given_or("hidden_size", model.get("hidden_size"), *_hidden_size(known))
    options["normalization"] = chooser.given_or(
        "normalization", model.get("normalization"), *_normalization(known, lookback, h)
    )
    if "mixing" not in model:
        mixing, reason = _mixing(known)
        chooser.picks.append(Pick("mixing", mixing, reason))
        options["mixing"] = {"kind": mixing}
        options.setdefault("series_embedding", mixing != "none")
    if _tells_variates_apart(options):
        options.setdefault("n_series", len(panel))
    config = ModelConfig(**options)
    joint = config.n_series is not None
    if joint and config.n_series != len(panel):
        raise ConfigError(f"n_series is {config.n_series}, but the data has {len(panel)} series")
    if joint:
        panel.matrix()  # refuses series that are not aligned
    count = windows // len(panel) if joint else windows

    batch = max(4, _ROWS_A_STEP // (len(panel) if joint else 1))
    steps_wanted = _EPOCHS * max(count, 1) / batch
    steps = round(min(max(steps_wanted, _MIN_STEPS), _MAX_STEPS))
    chosen = {
        "batch_size": chooser.given_or(
            "batch_size", training.get("batch_size"), batch, f"about {_ROWS_A_STEP} rows a step, or all there are"
        ),
        "max_steps": chooser.given_or(
            "max_steps",
            training.get("max_steps"),
            steps,
            f"{_EPOCHS} times over {count:,} windows, between {_MIN_STEPS} and {_MAX_STEPS} steps",
        ),
    }
    chosen["val_check_steps"] = training.get("val_check_steps", max(1, min(50, chosen["max_steps"] // 10)))
    return Picked(config, TrainingConfig(**{**training, **chosen}), val, tuple(chooser.picks))


class _Chooser:
    """Takes what is given, and notes what was not."""

    def __init__(self) -> None:
        self.picks: list[Pick] = []

    def given_or(self, name: str, given: Any, value: Any, reason: str) -> Any:
        if given is not None:
            return given
        self.picks.append(Pick(name, value, reason))
        return value


def _tells_variates_apart(model: Mapping[str, Any]) -> bool:
    mixing, state = model.get("mixing") or {}, model.get("state") or {}
    kind = mixing.get("kind") if isinstance(mixing, Mapping) else getattr(mixing, "kind", None)
    clusters = state.get("clusters", 1) if isinstance(state, Mapping) else getattr(state, "clusters", 1)
    return kind not in (None, "none") or bool(model.get("series_embedding")) or clusters != 1


def _typed(training: Mapping[str, Any]) -> dict[str, Any]:
    """What is given, each option of its type; the picks reckon with some of them."""
    given = {name: value for name, value in training.items() if value is not None}
    picked = {"max_steps": 1, "batch_size": 1, "val_check_steps": 1}  # which are not given, perhaps
    return TrainingConfig(**{**picked, **given}).model_dump(include=set(given))


def pick_val_size(shortest: int, h: int) -> tuple[int, str]:
    """How many steps at the end of every series to hold out, and why."""
    if shortest >= 10 * h:
        return max(h, shortest // 10), "a tenth of the shortest series"
    if shortest > 3 * h:
        return h, "one horizon: the shortest series has no room for more"
    return 0, f"the shortest series has {shortest} values: too few to hold any out"


def _windows(panel: Panel, lookback: int, h: int, *, pad_short: bool) -> int:
    """How many windows of single series there are to learn from."""
    room = panel.lengths - lookback - h
    padded = (room < 0) & (panel.lengths > h) if pad_short else torch.zeros_like(room, dtype=torch.bool)
    return int(((room + 1).clamp(min=0) + padded).sum())


def _input_size(panel: Panel, h: int, val_size: int, *, pad_short: bool) -> tuple[int, str]:
    # Where short series are padded, a few of them need not shorten the look-back of all.
    length, whose = (panel.lengths.median(), "median") if pad_short else (panel.lengths.min(), "shortest")
    season = seasonal_period(panel.freq)
    wanted, reason = min(4 * season, _LONGEST_PICKED_LOOKBACK), f"four seasons of {season}"
    if wanted < 4 * season:
        reason += f", cut to {wanted}"
    if wanted <= 2 * h:
        wanted, reason = 2 * h, "twice the horizon"
    room = max(1, (int(length) - val_size - h) // 2)
    if wanted <= room:
        return wanted, reason
    return room, f"half of what the {whose} series has beside the horizon ({wanted} would be better)"


def _hidden_size(panel: Panel) -> tuple[int, str]:
    values = len(panel.values)
    for limit, size in ((3_000, 16), (30_000, 32)):
        if values < limit:
            return size, f"{values:,} values to learn from"
    return 64, f"{values:,} values to learn from"


def _normalization(panel: Panel, lookback: int, h: int) -> tuple[str, str]:
    """By which of the two a window's future lies closer to: its mean or its last value."""
    if lookback == 1:
        return "none", "of a look-back of one value nothing would be left"
    windows = Windows(Scaler.fit(panel).transform(panel), panel.offsets, lookback, h, pad_short=True)
    some = torch.randint(len(windows), (min(len(windows), 2000),), generator=torch.Generator().manual_seed(0))
    history, future = windows.gather(some)
    to_mean = float((future - history.mean(-1, keepdim=True)).abs().mean())
    to_last = float((future - history[..., -1:]).abs().mean())
    if to_last < 0.8 * to_mean:
        return "last", f"the last value misses the future by {to_last:.3g}, the mean by {to_mean:.3g} deviations"
    return "mean", f"the mean misses the future by {to_mean:.3g}, the last value by {to_last:.3g} deviations"


def _mixing(panel: Panel) -> tuple[str, str]:
    if len(panel) == 1:
        return "none", "there is one series"
    if not panel.is_aligned:
        return "none", "the series do not share their timestamps"
    steps = int(panel.lengths[0])
    if steps < 20 * len(panel) or steps < 500:
        return "none", f"{steps:,} steps are too few to learn how {len(panel)} series depend on each other"
    return "mlp", f"{len(panel)} series over the same {steps:,} steps"
