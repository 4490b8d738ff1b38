"""The context of a universal model: any history as a view of fixed size, its seasons, and simple forecasts of it.

The view has the recent values one by one, and older ones as means over 4, 16 and 64 steps: 512 + 512 + 1,024 + 1,024
steps in 720 cells.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

# Steps in a cell, and number of cells, from the most recent values to the oldest.
LEVELS = ((1, 512), (4, 128), (16, 64), (64, 16))
RECENT = LEVELS[0][1]
CELLS = sum(cells for _, cells in LEVELS)
REACH = sum(steps * cells for steps, cells in LEVELS)
MAX_PERIOD = RECENT // 2

_MIN_CORRELATION, _MIN_RISE = 0.2, 0.15  # of a season: autocorrelation, and its rise above that of shorter lags
_SHORTER = 0.5  # a shorter season has at least this share of the autocorrelation of the strongest
_COST_OF_LENGTH = 5e-4  # in autocorrelation, of each step
_GAIN = 0.05  # in autocorrelation, of a second, longer season
_MIN_SCALE = 1e-6  # in units of the level of the window
_PHASES, _CYCLES = 16, 4  # of the last cycles of the season, as the encoder sees them
_DAMPING = 0.97  # of a trend, each step
_TREND_STEPS = (16, RECENT - 1)  # steps back to the value from which a trend is measured
_SMOOTHING = (0.1, 0.3)  # weight of the last value in an exponentially weighted mean
_DECAYS = (1.5, 6.0, 24.0, 96.0)  # steps in which what was special at the end of the history fades to a third
SIMPLE_FORECASTS = 14
SEASONAL_NAIVE = 6  # its place among the simple forecasts
FEATURES = 12
ENCODED = CELLS + RECENT // 16 + (CELLS - RECENT) // 8 + _PHASES * _CYCLES + FEATURES

Rows = Float[Tensor, " rows"]
Cells = Float[Tensor, "rows cells"]
Recent = Float[Tensor, "rows recent"]
Steps = Float[Tensor, "rows steps"]
Periods = Int64[Tensor, " rows"]


class View(NamedTuple):
    """The context of each row, the oldest cell first."""

    values: Cells  # 0 where nothing is known
    observed: Cells  # known share of the steps of each cell


def view_of(history: Float[Tensor, "rows steps"]) -> View:
    """Make the view of histories of any length, in which missing values are NaN."""
    missing = history.new_full((len(history), max(0, REACH - history.shape[1])), torch.nan)
    past = torch.cat([missing, history[:, -REACH:]], 1)
    parts, end = [], REACH
    for steps, cells in LEVELS:
        part = past[:, end - steps * cells : end].unflatten(1, (cells, steps))
        known = ~part.isnan()
        count = known.sum(2)
        values = torch.where(known, part, 0.0).sum(2) / count.clamp(min=1)
        parts.append((values, count / steps))
        end -= steps * cells
    return View(*(torch.cat(list(column), 1) for column in zip(*reversed(parts), strict=True)))


class Context(NamedTuple):
    """A view in units of its own, with its seasons."""

    values: Cells  # normalized
    observed: Cells
    recent: Recent  # the last values, normalized; missing ones repeat the value before
    known: Rows  # steps from the first known recent value to the end
    center: Float[Tensor, "rows 1"]
    scale: Float[Tensor, "rows 1"]
    short: Periods  # the shorter season, and the longer one; 1 if there is none
    long: Periods
    correlation: Float[Tensor, "rows 3"]  # autocorrelation at lag 1 and at both seasons


def context_of(view: View) -> Context:
    """Normalize a view by its last values and its spread, and find its seasons."""
    recent, known = view.values[:, -RECENT:], (view.observed[:, -RECENT:] > 0)
    place = torch.arange(RECENT, device=recent.device)
    last_known = torch.where(known, place, -1).cummax(1).values
    first = torch.where(known.any(1), known.float().argmax(1), RECENT - 1)
    filled = recent.gather(1, last_known.maximum(first.unsqueeze(1)))
    center = filled[:, -4:].mean(1, keepdim=True)
    weight = known.to(recent.dtype)
    total = weight.sum(1, keepdim=True).clamp(min=1)
    mean = (recent * weight).sum(1, keepdim=True) / total
    spread = (((recent - mean) * weight).square().sum(1, keepdim=True) / total).sqrt()
    # A mean over older cells stands in for a constant end.
    size = center.abs() + (view.values - center).abs().mul(view.observed).amax(1, keepdim=True)
    scale = torch.where(spread > _MIN_SCALE * size, spread, size.clamp(min=torch.finfo(size.dtype).tiny))
    values = torch.where(view.observed > 0, (view.values - center) / scale, 0.0).clamp(-30, 30)
    normalized = (filled - center) / scale
    short, long, correlation = _seasons(normalized, weight)
    length = (RECENT - first).to(recent.dtype)
    return Context(values, view.observed, normalized, length, center, scale, short, long, correlation)


def _seasons(recent: Recent, weight: Recent) -> tuple[Periods, Periods, Float[Tensor, "rows 3"]]:
    """Find the strongest season by autocorrelation, and a shorter one that is nearly as strong."""
    steps = torch.linspace(-1, 1, RECENT, device=recent.device)
    slope = (weight * steps * recent).sum(1) / (weight * steps.square()).sum(1).clamp(min=1e-6)
    centered = recent - (weight * recent).sum(1, keepdim=True) / weight.sum(1, keepdim=True).clamp(min=1)
    detrended = (centered - slope.unsqueeze(1) * steps) * weight
    pairs = _autocovariance(weight).clamp(min=1)
    correlation = _autocovariance(detrended) / pairs
    correlation = correlation / correlation[:, :1].clamp(min=1e-9)
    lag = torch.arange(MAX_PERIOD + 1, device=recent.device)
    inner = correlation[:, 1:-1]
    is_peak = (inner >= correlation[:, :-2]) & (inner >= correlation[:, 2:]) & (inner > _MIN_CORRELATION)
    rise = inner - correlation.cummin(1).values[:, :-2]
    enough = weight.sum(1, keepdim=True) >= 2 * lag[1:-1]
    strength = torch.where(is_peak & (rise > _MIN_RISE) & enough & (lag[1:-1] > 1), inner, 0.0)
    # Of two seasons that are as strong, the shorter: a multiple of a season is no season.
    strongest = (strength - _COST_OF_LENGTH * lag[1:-1]).argmax(1)
    best = strength.gather(1, strongest.unsqueeze(1)).squeeze(1)
    shorter = (strength >= (_SHORTER * best).clamp(min=_MIN_CORRELATION).unsqueeze(1)).float().argmax(1)
    gain = best - strength.gather(1, shorter.unsqueeze(1)).squeeze(1)
    has = best > 0
    short = torch.where(has, shorter + 1, 1)
    long = torch.where(has, torch.where(gain > _GAIN, strongest, shorter) + 1, 1)
    at = torch.stack([torch.ones_like(short), short, long], 1)
    return short, long, correlation.gather(1, at)


def _autocovariance(values: Recent) -> Float[Tensor, "rows lags"]:
    """Sums of products of values at each distance up to the longest period."""
    spectrum = torch.fft.rfft(values, 2 * RECENT, dim=1)
    power = spectrum.real.square() + spectrum.imag.square()
    sums: Tensor = torch.fft.irfft(power, 2 * RECENT, dim=1)
    return sums[:, : MAX_PERIOD + 1]


def encoder_inputs(context: Context) -> Float[Tensor, "rows inputs"]:
    """Collect the inputs of the encoder: the cells, their known shares, the last cycles, and features."""
    fine, coarse = context.observed[:, -RECENT:], context.observed[:, :-RECENT]
    known = [coarse.unflatten(1, (-1, 8)).mean(2), fine.unflatten(1, (-1, 16)).mean(2)]
    phase = (torch.arange(_PHASES * _CYCLES, device=fine.device) + 0.5) / _PHASES
    back = ((_CYCLES - phase) * context.short.unsqueeze(1)).long().clamp(max=RECENT - 1)
    cycles = context.recent.gather(1, RECENT - 1 - back)
    return torch.cat([context.values, *known, cycles, _features(context)], 1)


def _features(context: Context) -> Float[Tensor, "rows features"]:
    recent, place = context.recent, torch.arange(RECENT, device=context.recent.device)
    inside = place >= RECENT - context.known.unsqueeze(1)

    def mean_change(period: Periods) -> Rows:
        """Mean absolute change over a period."""
        before = (place - period.unsqueeze(1)).clamp(min=0)
        counted = inside & (place - period.unsqueeze(1) >= RECENT - context.known.unsqueeze(1))
        change = (recent - recent.gather(1, before)).abs() * counted
        return change.sum(1) / counted.sum(1).clamp(min=1)

    changes = [mean_change(torch.ones_like(context.short)), mean_change(context.short), mean_change(context.long)]
    logs = [context.known.log() / 6, context.short.log() / 6, context.long.log() / 6]
    level = (recent * inside).sum(1) / context.known
    unchanged = ((recent.diff(dim=1) == 0) & inside[:, 1:]).sum(1) / context.known
    skewness = ((recent - level.unsqueeze(1)).clamp(-5, 5).pow(3) * inside).sum(1) / context.known
    return torch.cat([torch.stack([*changes, *logs, level, unchanged, skewness], 1), context.correlation], 1)


def usual_change(context: Context) -> Rows:
    """Mean absolute change over the shorter season, in units of the context: the error of a seasonal naive forecast."""
    return _features(context)[:, 1]


def simple_forecasts(context: Context, horizon: int) -> Float[Tensor, "rows forecasts horizon"]:
    """Forecasts that need no training, normalized: naive, trends, means, and four of each season."""
    recent, step = context.recent, torch.arange(1, horizon + 1, device=context.recent.device)
    last = recent[:, -1:]
    damped = _DAMPING * (1 - _DAMPING**step) / (1 - _DAMPING)
    found = [last.expand(-1, horizon)]
    for steps in _TREND_STEPS:
        back = context.known.clamp(max=steps + 1).long().unsqueeze(1)
        slope = (last - recent.gather(1, RECENT - back)) / (back - 1).clamp(min=1)
        found.append(last + slope * damped)
    age = torch.arange(RECENT - 1, -1, -1, device=recent.device)
    inside = (age < context.known.unsqueeze(1)).to(recent.dtype)
    weights = torch.stack([(1 - share) ** age.to(recent.dtype) for share in (0.0, *_SMOOTHING)], 1)
    means = (recent * inside) @ weights / (inside @ weights)
    found += [mean.unsqueeze(1).expand(-1, horizon) for mean in means.unbind(1)]
    for period, cycles in ((context.short, 4), (context.long, 3)):
        found += _seasonal_forecasts(context, period, cycles, step)
    return torch.stack(found, 1)


def _seasonal_forecasts(context: Context, period: Periods, cycles: int, step: Tensor) -> list[Steps]:
    """Forecast the last cycle, the mean of cycles, the last cycle with its rise, and the mean at the last level."""
    recent, phase = context.recent, (step - 1) % period.unsqueeze(1)
    sums = torch.nn.functional.pad(recent.cumsum(1), (1, 0))
    seasons, levels, weights = [], [], []
    for number in range(1, cycles + 1):
        start, end = ((RECENT - back * period).clamp(min=0).unsqueeze(1) for back in (number, number - 1))
        seasons.append(recent.gather(1, (start + phase).clamp(max=RECENT - 1)))
        levels.append((sums.gather(1, end) - sums.gather(1, start)) / (end - start).clamp(min=1))
        weights.append((number * period <= context.known).to(recent.dtype).unsqueeze(1))
    count = torch.stack(weights).sum(0).clamp(min=1)
    mean, level = (
        torch.stack([value * weight for value, weight in zip(values, weights, strict=True)]).sum(0) / count
        for values in (seasons, levels)
    )
    return [
        seasons[0],
        mean,
        seasons[0] + weights[1] * (levels[0] - levels[1]),
        mean + weights[0] * (levels[0] - level),
    ]


def step_features(context: Context, horizon: int) -> Float[Tensor, "rows features horizon"]:
    """Coordinates of the steps to forecast: their distance, and their phase in both seasons."""
    step = torch.arange(1, horizon + 1, device=context.recent.device, dtype=context.recent.dtype)
    decays = [(-step / steps).exp() for steps in _DECAYS]
    distance = torch.stack([torch.ones_like(step), step.log1p() / math.log(257), step / (step + 32), *decays])
    waves = []
    for period, harmonics in ((context.short, 3), (context.long, 2)):
        angle = 2 * torch.pi * step / period.unsqueeze(1)
        for harmonic in range(1, harmonics + 1):
            waves += [(harmonic * angle).cos(), (harmonic * angle).sin()]
    return torch.cat([distance.expand(len(context.short), -1, -1), torch.stack(waves, 1)], 1)


STEP_FEATURES = 3 + len(_DECAYS) + 2 * (3 + 2)
