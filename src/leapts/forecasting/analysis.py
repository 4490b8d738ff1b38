"""What drives the leaps: the paper's analyses of schedules, on any data.

Windows are put in order of their volatility, in units of each series' deviation: how much the look-back changes from
step to step, or how far it strays from its mean. The paper does not say which it means; `docs/decisions/analysis.md`
gives the reason for the first.
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
from leapts.model.scales import SCALE_NAMES

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

Volatility = Literal["changes", "level"]  # the deviation of the look-back's steps, or of its values

BINS = 4
MAX_ROWS = 20_000
_ROWS_AT_A_TIME = 4096


class Lookbacks(NamedTuple):
    """Look-backs of some windows, as [batch, variates, look-back], and which series each row of them is of."""

    series: Integers
    values: Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class TracedWindows:
    """How each window of the data was forecast; a row is a window of one series.

    Attributes:
        series: Which series each row belongs to, an index into `names`.
        names: The series.
        volatility: Of each row's look-back.
        control: Share of the changes of state that the control signal brought about, the mean over a row's leaps.
        leaps: How many leaps each row took.
        scales: How many of them were short, mid and long.
        states: Each row's state after its last leap.
    """

    series: Integers
    names: tuple[str | int, ...]
    volatility: Floats
    control: Floats
    leaps: Integers
    scales: Integers
    states: Floats


@dataclass(frozen=True, kw_only=True)
class VolatilityBin:
    """How windows of similar volatility were forecast.

    Attributes:
        windows: How many.
        low: The lowest volatility among them.
        high: The highest.
        control: Mean share of the changes of state that the control signal brought about.
        temporal: The same for time.
        scales: Share of each scale among their leaps.
        leaps: Leaps a window, the scheduling intensity.
    """

    windows: int
    low: float
    high: float
    control: float
    temporal: float
    scales: dict[str, float]
    leaps: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Embedding:
    """Vectors drawn on a plane, and how well their groups keep apart.

    Attributes:
        points: One for each vector, by t-SNE.
        groups: The group of each.
        separation: The silhouette score of the groups among the vectors themselves: 1 apart, 0 mixed, below 0 astray.
        separation_on_plane: The same among the points.
    """

    points: Floats
    groups: tuple[str, ...]
    separation: float
    separation_on_plane: float


def trace_windows(
    model: LeapTS, data: Any, *, max_rows: int = MAX_ROWS, volatility: Volatility = "changes"
) -> TracedWindows:
    """Forecast windows spread evenly over the data, and note how each was made.

    Args:
        model: A fitted model with a scheduling branch.
        data: A frame, a path, or a panel.
        max_rows: How many windows to take, counted for each series.
        volatility: What counts as such.

    Raises:
        ConfigError: When the model has no scheduling branch.
    """
    predictor = model.predictor_
    panel = predictor.require_usable(model.read(data))
    histories = spread_histories(predictor.sliding_windows(panel), max_rows)
    return trace_histories(predictor.inference_copy, histories, panel.series, volatility=volatility)


def trace_histories(
    network: LeapTSModel,
    histories: Sequence[Lookbacks],
    names: tuple[str | int, ...],
    *,
    volatility: Volatility = "changes",
) -> TracedWindows:
    """Forecast these histories, and note how each forecast was made.

    Args:
        network: With a scheduling branch.
        histories: Standardised, as the network wants them.
        names: The series.
        volatility: What counts as such.

    Raises:
        ConfigError: When the network has no scheduling branch.
    """
    parts = []
    for series, history in histories:
        trace = network.forecast(history, record="states").trace
        if trace is None:
            raise ConfigError("this model has no scheduling branch, so there are no leaps to analyse")
        rows = history.flatten(0, 1).double()
        # A single value does not change, and so varies as little as a constant.
        seen = rows.diff(dim=1) if volatility == "changes" and rows.shape[1] > 1 else rows
        spread = _numpy(seen.std(dim=1, correction=0))
        parts.append(_traced(series, spread, trace.arranged(lambda x: x.flatten(0, 1))))
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return TracedWindows(names=names, **joined)


def by_volatility(traced: TracedWindows, bins: int = BINS) -> tuple[VolatilityBin, ...]:
    """Windows in bins of equal count, from the lowest volatility to the highest."""
    if not 1 <= bins <= len(traced.volatility):
        raise ConfigError(f"{len(traced.volatility)} windows cannot be put into {bins} bins; ask for fewer")
    order = np.argsort(traced.volatility, kind="stable")
    return tuple(_summarised(traced, rows) for rows in np.array_split(order, bins))


def overall(traced: TracedWindows) -> VolatilityBin:
    """All windows as one bin."""
    return _summarised(traced, np.arange(len(traced.volatility)))


def representations(model: LeapTS, data: Any, *, max_rows: int = 2000) -> tuple[Floats, tuple[str, ...]]:
    """The vector a model forecasts each window from, and the series it belongs to.

    That is the state after the last leap or, for a model without a scheduling branch, the encoder's latent vector.
    """
    predictor = model.predictor_
    if predictor.config.scheduling.kind != "none":
        traced = trace_windows(model, data, max_rows=max_rows)
        return traced.states, tuple(str(traced.names[row]) for row in traced.series)
    panel = predictor.require_usable(model.read(data))
    histories = spread_histories(predictor.sliding_windows(panel), max_rows)
    of = np.concatenate([series for series, _ in histories])
    return latent_vectors(predictor.model, histories), tuple(str(panel.series[row]) for row in of)


@torch.inference_mode()
def latent_vectors(network: LeapTSModel, histories: Sequence[Lookbacks]) -> Floats:
    """What the encoder makes of each row."""
    vectors = []
    for _, history in histories:
        latent = network.encoder(network.normalization(history.transpose(0, 1)).values)
        vectors.append(_numpy(latent.transpose(0, 1).flatten(0, 1)))
    return np.concatenate(vectors)


def embed(vectors: Floats, groups: Sequence[str], *, perplexity: float = 30.0, seed: int = 0) -> Embedding:
    """Draw vectors on a plane by t-SNE, and measure how well their groups keep apart.

    Args:
        vectors: [rows, size].
        groups: The group of each row, at least two different ones.
        perplexity: How many neighbours count; at most a third of the rows.
        seed: What the drawing depends on.

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
    neighbours = min(perplexity, max(1.0, len(groups) / 3))
    points: Floats = TSNE(perplexity=neighbours, init="pca", random_state=seed).fit_transform(even).astype(np.float64)
    return Embedding(
        points=points,
        groups=tuple(groups),
        separation=float(silhouette_score(even, groups)),
        separation_on_plane=float(silhouette_score(points, groups)),
    )


def spread_histories(windows: Windows | AlignedWindows, max_rows: int) -> list[Lookbacks]:
    """The look-backs of windows spread evenly over all of them, in batches.

    Args:
        windows: Where from.
        max_rows: How many, counted for each series.
    """
    variates = 1 if isinstance(windows, Windows) else len(windows.matrix)
    count = min(len(windows), max(1, max_rows // variates))
    chosen = torch.linspace(0, len(windows) - 1, count, dtype=torch.float64).round().long()
    return [
        Lookbacks(windows.series_of(index).numpy(), windows.gather(index).history)
        for index in chosen.split(max(1, _ROWS_AT_A_TIME // variates))
    ]


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


def _summarised(traced: TracedWindows, rows: Integers) -> VolatilityBin:
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
