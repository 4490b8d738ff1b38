"""Seasons: those that the frequency suggests, and those found in the data by spectrum and autocorrelation."""

import numpy as np
import numpy.typing as npt

from leapts.data.frequency import DAY, parse_frequency, seasonal_period
from leapts.data.panel import Panel

_MAX_SERIES, _MAX_LENGTH = 50, 8192  # of the sample that seasons are looked for in
_MIN_CYCLES = 5
_PEAKS = 4  # highest frequencies of the spectrum that are tried
_SIGNIFICANCE = 1e-3  # of Fisher's test of a peak of the spectrum
_MIN_CORRELATION = 0.3
_MIN_STABILITY = 0.6  # correlation at twice the lag, relative to that at the lag
_MAX_SEASONS = 2

Floats = npt.NDArray[np.float64]


def find_seasons(panel: Panel) -> tuple[tuple[int, ...], str]:
    """Find the season lengths of a panel in steps, the main one first, with the reason.

    The season that the frequency suggests is always the first. A season found in the data counts if half of the sampled
    series have it: a significant peak of the spectrum, and of the autocorrelation at the same lag.
    """
    usual = seasonal_period(panel.freq)
    longest_first = panel.lengths.argsort(descending=True)[:_MAX_SERIES].tolist()
    votes: dict[int, int] = {}
    for place in longest_first:
        begin, end = int(panel.offsets[place]), int(panel.offsets[place + 1])
        for season in _seasons_of(panel.values[max(begin, end - _MAX_LENGTH) : end].numpy()):
            votes[season] = votes.get(season, 0) + 1
    found = [
        season for season, count in sorted(votes.items(), key=lambda vote: -vote[1]) if 2 * count >= len(longest_first)
    ]
    week = _week(panel.freq)
    extra = [season for season in found if season != usual][:_MAX_SEASONS]
    if week and 3 * week <= int(panel.lengths.median()) and week not in extra:
        extra = [week, *extra][:_MAX_SEASONS]
    seasons = (usual, *extra) if usual > 1 or not extra else tuple(extra)
    reason = f"found in the data: {', '.join(map(str, found))}" if found else "by the frequency; none found in the data"
    return seasons, reason


def _week(freq: str | int) -> int:
    """Steps in a week of hours; 0 for other frequencies."""
    frequency = parse_frequency(freq)
    hour = DAY // 24
    is_hourly = frequency.clock == "duration" and hour <= frequency.step < DAY and 7 * DAY % frequency.step == 0
    return 7 * DAY // frequency.step if is_hourly else 0


def _seasons_of(values: Floats) -> list[int]:
    """Find the seasons of one series: significant peaks of its spectrum that its autocorrelation confirms."""
    length = len(values)
    if length < 2 * _MIN_CYCLES:
        return []
    steps = np.arange(length) - (length - 1) / 2
    centered = values - values.mean()
    centered = centered - steps * (centered @ steps) / (steps @ steps)
    spectrum = np.abs(np.fft.rfft(centered)) ** 2
    total, count = spectrum[1:].sum(), len(spectrum) - 1
    if not total > 0:
        return []
    correlation = np.fft.irfft(np.abs(np.fft.rfft(centered, 2 * length)) ** 2)[:length]
    correlation /= correlation[0]
    limit, found = max(_MIN_CORRELATION, 2.6 / np.sqrt(length)), []
    for peak in np.argsort(spectrum[_MIN_CYCLES:])[::-1][:_PEAKS] + _MIN_CYCLES:
        chance = count * (1 - spectrum[peak] / total) ** (count - 1)
        low, high = int(length / (peak + 0.5)), int(np.ceil(length / (peak - 0.5)))
        if chance > _SIGNIFICANCE or high < 2 or peak >= count:
            continue
        lag = max(low, 2) + int(correlation[max(low, 2) : high + 1].argmax())
        is_peak = 2 * lag < length and correlation[lag] >= max(correlation[lag - 1], correlation[lag + 1], limit)
        # At twice its lag, the harmonic of a longer season has a higher correlation, a cycle that drifts a low one.
        is_stable = is_peak and _MIN_STABILITY < correlation[2 * lag] / correlation[lag] < 1.1
        if is_stable and lag not in found:
            found.append(lag)
    return found
