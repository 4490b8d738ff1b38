"""The paper's analyses on the test windows: contributions to the state, scales, clusters of states."""

from dataclasses import asdict
from typing import get_args

import numpy as np

from leapts.errors import DataError
from leapts.forecasting.analysis import (
    MAX_ROWS,
    Floats,
    Lookbacks,
    Volatility,
    by_volatility,
    embed,
    latent_vectors,
    overall,
    spread_histories,
    trace_histories,
)
from leapts_bench.fitting import Leaping
from leapts_bench.m4 import M4Benchmark
from leapts_bench.protocol import Benchmark
from leapts_bench.results import Line
from leapts_bench.scoring import Predictor
from leapts_bench.suites import CLUSTERED_SET

# The time to embed points grows faster than their number.
_EMBEDDED_ROWS = 2000


def analysed(dataset: str, data: Benchmark | M4Benchmark, predictor: Predictor) -> Line:
    """Compute shares and leaps by volatility, and the separation of clusters.

    The first need a scheduling branch, the second a data set with clusters.

    Raises:
        DataError: When the data set is ragged.
    """
    if isinstance(data, M4Benchmark):
        raise DataError("schedules are analysed on aligned sets; M4 is ragged")
    windows, names = data.test(), data.split.test.series
    line: Line = {}
    if isinstance(predictor, Leaping) and predictor.leaps:
        histories = spread_histories(windows, MAX_ROWS)
        for volatility in get_args(Volatility):
            traced = trace_histories(predictor.model, histories, names, volatility=volatility)
            line[volatility] = [asdict(one) for one in by_volatility(traced)]
        line["overall"] = asdict(overall(traced))
    if dataset == CLUSTERED_SET:
        histories = spread_histories(windows, _EMBEDDED_ROWS)
        of = np.concatenate([series for series, _ in histories])
        # The name of a series starts with the letter of its cluster.
        embedding = embed(representations(predictor, histories), [str(names[row])[0] for row in of])
        line["separation"] = embedding.separation
        line["separation_on_plane"] = embedding.separation_on_plane
    return line


def representations(predictor: Predictor, histories: list[Lookbacks]) -> Floats:
    """Return the vector that a model ends with, for each row.

    This is the state after the last leap; without a scheduling branch, the latent vector of the encoder; for a
    baseline, the forecast.
    """
    if not isinstance(predictor, Leaping):
        parts = [predictor.predict(values).values.flatten(0, 1) for _, values in histories]
        return np.concatenate([part.double().numpy() for part in parts])
    if not predictor.leaps:
        return latent_vectors(predictor.model, histories)
    names = tuple(range(histories[0].values.shape[1]))
    return trace_histories(predictor.model, histories, names).states
