"""How schedules depend on the data: the paper's analyses, on any data.

Windows are sorted by the volatility of their look-back, in standard deviations of the series: the standard deviation of
its changes from step to step, or of its values. The paper does not say which; `docs/decisions/analysis.md` gives the
reason for the first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from leapts.data.windows import AlignedWindows, Windows
from leapts.errors import ConfigError, DataError
from leapts.forecasting import LeapTS
from leapts.model import LeapTSModel, ScheduleTrace
from leapts.model.schedulers import SCALE_NAMES

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

Volatility = Literal["changes", "level"]  # the standard deviation of the changes of the look-back, or of its values

BINS = 4
MAX_ROWS = 20_000
_BATCH_ROWS = 4096


class Lookbacks(NamedTuple):
    """Look-backs of some windows."""

    series: Integers  # of each row
    values: Tensor  # [batch, variates, look-back]


@dataclass(frozen=True, eq=False, kw_only=True)
class TracedWindows:
    """Schedules of windows; a row is a window of one series."""

    series: Integers  # of each row, an index into `names`
    names: tuple[str | int, ...]  # of the series
    volatility: Floats  # of the look-back of each row
    control: Floats  # share of the changes of state due to the control signal, mean over the leaps of a row
    leaps: Integers  # number of leaps of each row
    scales: Integers  # number of short, mid and long leaps of each row
    states: Floats  # state of each row after its last leap


@dataclass(frozen=True, kw_only=True)
class VolatilityBin:
    """Schedules of windows with similar volatility."""

    windows: int
    low: float  # lowest volatility
    high: float  # highest volatility
    control: float  # mean share of the changes of state due to the control signal
    temporal: float  # the same for time
    scales: dict[str, float]  # share of each scale among the leaps
    leaps: float  # leaps per window, the scheduling intensity


@dataclass(frozen=True, eq=False, kw_only=True)
class Embedding:
    """Vectors embedded in a plane, and the separation of their groups."""

    points: Floats  # of each vector, by t-SNE
    groups: tuple[str, ...]  # of each vector
    separation: float  # silhouette score of the groups of vectors: 1 apart, 0 mixed, below 0 in the wrong group
    separation_on_plane: float  # the same for the points


def trace_windows(
    model: LeapTS, data: Any, *, max_rows: int = MAX_ROWS, volatility: Volatility = "changes"
) -> TracedWindows:
    """Forecast windows spread evenly over the data, and record their schedules.

    Args:
        model: A fitted model with a scheduling branch.
        data: A frame, a path, or a panel.
        max_rows: Maximum number of windows, counted for each series.
        volatility: The measure of volatility.

    Raises:
        ConfigError: When the model has no scheduling branch.
    """
    histories, names = _histories(model, data, max_rows)
    return trace_histories(model.predictor_.inference_copy, histories, names, volatility=volatility)


def trace_histories(
    network: LeapTSModel,
    histories: Sequence[Lookbacks],
    names: tuple[str | int, ...],
    *,
    volatility: Volatility = "changes",
) -> TracedWindows:
    """Forecast standardized histories, and record their schedules.

    Raises:
        ConfigError: When the network has no scheduling branch.
    """
    parts = []
    for series, history in histories:
        trace = network.forecast(history, record="states").trace
        if trace is None:
            raise ConfigError("this model has no scheduling branch, so there are no leaps to analyse")
        rows = history.flatten(0, 1).double()
        # A single value has no changes; its volatility is zero.
        seen = rows.diff(dim=1) if volatility == "changes" and rows.shape[1] > 1 else rows
        spread = _numpy(seen.std(dim=1, correction=0))
        parts.append(_traced(series, spread, trace.arranged(lambda x: x.flatten(0, 1))))
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return TracedWindows(names=names, **joined)


def by_volatility(traced: TracedWindows, bins: int = BINS) -> tuple[VolatilityBin, ...]:
    """Summarize windows in bins of equal count, from the lowest volatility to the highest."""
    if not 1 <= bins <= len(traced.volatility):
        raise ConfigError(f"{len(traced.volatility)} windows cannot be put into {bins} bins; ask for fewer")
    order = np.argsort(traced.volatility, kind="stable")
    return tuple(_summarize(traced, rows) for rows in np.array_split(order, bins))


def overall(traced: TracedWindows) -> VolatilityBin:
    """Summarize all windows as one bin."""
    return _summarize(traced, np.arange(len(traced.volatility)))


def representations(model: LeapTS, data: Any, *, max_rows: int = 2000) -> tuple[Floats, tuple[str, ...]]:
    """Return the vector each window is forecast from, and the name of its series.

    It is the state after the last leap; without a scheduling branch, the latent vector of the encoder.
    """
    predictor, (histories, names) = model.predictor_, _histories(model, data, max_rows)
    if predictor.config.scheduling.kind != "none":
        vectors = trace_histories(predictor.inference_copy, histories, names).states
    else:
        vectors = latent_vectors(predictor.model, histories)
    return vectors, tuple(str(names[row]) for series, _ in histories for row in series)


@torch.inference_mode()
def latent_vectors(network: LeapTSModel, histories: Sequence[Lookbacks]) -> Floats:
    """Return the latent vector of the encoder for each row."""
    vectors = []
    for _, history in histories:
        latent = network.encoder(network.normalization(history.transpose(0, 1)).values)
        vectors.append(_numpy(latent.transpose(0, 1).flatten(0, 1)))
    return np.concatenate(vectors)


def embed(vectors: Floats, groups: Sequence[str], *, perplexity: float = 30.0, seed: int = 0) -> Embedding:
    """Embed vectors [rows, size] in a plane by t-SNE, and measure the separation of their groups.

    Args:
        vectors: The vectors.
        groups: The group of each vector.
        perplexity: The perplexity of t-SNE; it is lowered to a third of the rows, if they are few.
        seed: The seed of t-SNE.

    Raises:
        DataError: When there are fewer than two groups, or as many as rows.
        ImportError: When scikit-learn is not installed.
    """
    kinds = len(set(groups))
    if not 2 <= kinds < len(groups):
        raise DataError(
            f"{len(groups)} vectors in {kinds} groups have no separation; give 2 groups or more, of several"
        )
    try:
        from sklearn.manifold import TSNE
        from sklearn.metrics import silhouette_score
    except ImportError as error:
        raise ImportError("the embedding needs: pip install 'leapts[plot]'") from error
    scale = vectors.std(0)
    even = (vectors - vectors.mean(0)) / np.where(scale > 0, scale, 1.0)
    perplexity = min(perplexity, max(1.0, len(groups) / 3))
    points: Floats = TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(even).astype(np.float64)
    return Embedding(
        points=points,
        groups=tuple(groups),
        separation=float(silhouette_score(even, groups)),
        separation_on_plane=float(silhouette_score(points, groups)),
    )


def spread_histories(windows: Windows | AlignedWindows, max_rows: int) -> list[Lookbacks]:
    """Return the look-backs of at most `max_rows` windows, counted for each series and spread evenly, in batches."""
    variates = 1 if isinstance(windows, Windows) else len(windows.matrix)
    count = min(len(windows), max(1, max_rows // variates))
    chosen = torch.linspace(0, len(windows) - 1, count, dtype=torch.float64).round().long()
    return [
        Lookbacks(windows.series_of(index).numpy(), windows.gather(index).history)
        for index in chosen.split(max(1, _BATCH_ROWS // variates))
    ]


def _histories(model: LeapTS, data: Any, max_rows: int) -> tuple[list[Lookbacks], tuple[str | int, ...]]:
    """Return look-backs of the data, and the names of its series."""
    predictor = model.predictor_
    panel = predictor.require_usable(model.read(data))
    return spread_histories(predictor.sliding_windows(panel), max_rows), panel.series


def _traced(series: Integers, volatility: Floats, trace: ScheduleTrace) -> dict[str, Any]:
    taken, leaps = trace.taken, trace.leaps
    offset = len(SCALE_NAMES) - len(trace.scale_names)
    scales = torch.stack([((trace.scale + offset == scale) & taken).sum(1) for scale in range(len(SCALE_NAMES))], 1)
    assert trace.states is not None
    after_last = leaps[:, None, None].expand(-1, 1, trace.states.shape[2])
    return {
        "series": series,
        "volatility": volatility,
        "control": _numpy((trace.control_share * taken).sum(1) / leaps),
        "leaps": leaps.numpy(),
        "scales": scales.numpy(),
        "states": _numpy(trace.states.gather(1, after_last).squeeze(1)),
    }


def _summarize(traced: TracedWindows, rows: Integers) -> VolatilityBin:
    volatility, scales = traced.volatility[rows], traced.scales[rows].sum(0)
    control = float(traced.control[rows].mean())
    return VolatilityBin(
        windows=len(rows),
        low=float(volatility.min()),
        high=float(volatility.max()),
        control=control,
        temporal=1.0 - control,
        scales=dict(zip(SCALE_NAMES, (scales / scales.sum()).tolist(), strict=True)),
        leaps=float(traced.leaps[rows].mean()),
    )


def _numpy(values: Tensor) -> Floats:
    array: Floats = values.double().numpy()
    return array
