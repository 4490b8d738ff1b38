"""Held-out windows: the end of every series, on which weights are chosen and quantiles calibrated."""

import math
from dataclasses import replace
from itertools import count

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from leapts.config import ModelConfig
from leapts.data.frequency import seasonal_period
from leapts.data.panel import Panel
from leapts.data.windows import MaskedTargets, StridedWindows
from leapts.forecasting.intervals import POINT_LEVELS, Calibration, own_groups
from leapts.forecasting.predictor import Predictor
from leapts.forecasting.samples import held_out_scores

_MAX_VALIDATION_ROWS = 50_000  # more windows hardly change which weights are best
_MAX_CALIBRATION_ROWS = 20_000
_MAX_PRETRAINED_ROWS = 4_000  # the pretrained network is slower: half a second of one core
_MAX_CALIBRATION_NUMBERS = 2**26  # rows x steps x quantiles: 256 MiB


def held_out_part(panel: Panel, val_size: int, config: ModelConfig) -> Panel | None:
    """The held-out end of the series with the look-back before it; imputed values there see no later value.

    Series that are too short to hold out as much are trained on as a whole.
    """
    long_enough = panel.at_least(val_size + config.h + 1) if val_size else None
    return None if long_enough is None else long_enough.tail(val_size + config.input_size).without_lookahead()


def validation_windows(
    predictor: Predictor, panel: Panel | None, val_size: int = 0
) -> StridedWindows | MaskedTargets | None:
    """Sample the windows for validation checks, if any steps are held out.

    A series that is constant in the training part has no standard deviation, so its errors could outweigh all others.
    Its targets are masked, unless all series are constant.
    """
    if panel is None or (predictor.pad_short and int(panel.lengths.max()) <= predictor.config.h):
        return None
    windows = _sampled_windows(predictor, panel, _MAX_VALIDATION_ROWS, val_size)
    constant = predictor.scaling(panel)[0].constant
    if not bool(constant.any()):
        return windows
    # The sample may hold no window of a changing series.
    counts = ~constant[windows.series_of(torch.arange(len(windows)))]
    return MaskedTargets(windows, constant) if bool(counts.any()) and not bool(counts.all()) else windows


def _sampled_windows(predictor: Predictor, panel: Panel, max_rows: int, val_size: int = 0) -> StridedWindows:
    """Sample windows of a panel evenly, with at most `max_rows` rows in all, fewer for the pretrained network.

    Its look-back may reach back before the series, so only the last windows have all targets in the held-out part.
    """
    windows = predictor.sliding_windows(panel)
    if predictor.config.network.kind != "own":
        max_rows = min(max_rows, _MAX_PRETRAINED_ROWS)
        if val_size:
            windows = predictor.sliding_windows(panel, latest=max(1, val_size - predictor.config.h + 1))
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


def calibration_of(predictor: Predictor, panel: Panel, val_size: int = 0) -> Calibration:
    """Correct the quantiles of a model by its errors on held-out windows; by default on all windows of the panel.

    Series with enough windows have corrections of their own; the others, and unseen series, share those of all windows.
    Constant series count only if there are no others.
    """
    h = predictor.config.h
    affordable = _MAX_CALIBRATION_NUMBERS // (h * len(predictor.levels))
    windows = _sampled_windows(predictor, panel, min(_MAX_CALIBRATION_ROWS, affordable), val_size)
    forecasts, targets = [], []
    for some in torch.arange(len(windows)).split(max(1, 8192 // _rows_per_window(predictor, panel))):
        batch = windows.gather(some)
        forecasts.append(predictor.run_network(batch).values.flatten(0, 1))
        targets.append(batch.target.flatten(0, 1))
    quantiles, actual = torch.cat(forecasts).unflatten(1, (h, -1)), torch.cat(targets)
    members = windows.series_of(torch.arange(len(windows)))
    changing = ~predictor.scaling(panel)[0].constant[members]
    shared = changing.nonzero().flatten() if bool(changing.any()) else torch.arange(len(members))
    places, fitted = predictor.places_of(panel.series)[members], len(predictor.tail)
    own = own_groups(
        torch.bincount(places[places >= 0], minlength=fitted), h * len(predictor.config.quantiles or POINT_LEVELS)
    )
    rows, groups, group_of = shared, torch.zeros_like(shared), torch.zeros_like(places)
    if fitted > 1 and bool(own.any()):
        # One group for each series, and a last one for all of them.
        of_own = ((places >= 0) & own[places]).nonzero().flatten()
        rows, groups = torch.cat([of_own, shared]), torch.cat([places[of_own], torch.full_like(shared, fitted)])
        group_of = torch.where(places < 0, fitted, places)
    found = Calibration.fit(quantiles[rows], actual[rows], predictor.levels, groups, _ages(members)[rows])
    chosen = torch.arange(len(members)) if predictor.is_multivariate else shared
    corrected, window = found.correct(quantiles[chosen], group_of[chosen]), (-1, _rows_per_window(predictor, panel))
    scores = held_out_scores(corrected.unflatten(0, window), actual[chosen].unflatten(0, window), found.levels)
    return replace(found, scores=scores)


def _ages(series: Int64[Tensor, " rows"]) -> Float[Tensor, " rows"]:
    """Age of each window among those of its series: 0 for the latest, 1 for the oldest."""
    order = series.argsort(stable=True)
    counts = torch.bincount(series)[series[order]]
    starts = torch.searchsorted(series[order], series[order])
    ages = torch.empty(len(series))
    ages[order] = 1 - (torch.arange(len(series)) - starts) / (counts - 1).clamp(min=1)
    return ages


def naive_mae(windows: StridedWindows | MaskedTargets | None, panel: Panel) -> float | None:
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
        known = ~error.isnan()
        total += float(error[known].sum(dtype=torch.float64))
        number += int(known.sum())
    return total / number if number else None
