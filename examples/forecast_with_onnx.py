"""Forecasts from an exported model with numpy and onnxruntime alone: no torch, no leapts.

    leapts export model/ --format onnx
    python forecast_with_onnx.py model.onnx sales.csv > forecast.csv

The data are a table of `unique_id, ds, y`, each series in the order of time. The forecast has a row for each series and
step: the median, the leap it was made in, and the quantiles that the model learned.
"""

import csv
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Forecast:
    """What was forecast for each series, in its own units, and the schedule, padded with leaps of length 0."""

    series: list[str]
    values: Numbers  # [series, h]
    quantiles: Numbers  # [series, h, levels]; no levels if the model learned a point forecast
    start: npt.NDArray[np.int64]  # [series, leaps]
    length: npt.NDArray[np.int64]
    scale: list[list[str]]


class OnnxForecaster:
    """An exported model; the file says how values are standardised."""

    def __init__(self, path: str | Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.about: dict[str, Any] = json.loads(self.session.get_modelmeta().custom_metadata_map["leapts"])
        statistics = zip(self.about["mean"], self.about["std"], strict=True)
        self.scaling = dict(zip(map(str, self.about["series"]), statistics, strict=True))

    def forecast(self, history: dict[str, Numbers]) -> Forecast:
        """Forecast what follows each series: its last values in, the next ones out."""
        if self.about["is_multivariate"]:
            # A model that forecasts its series together takes exactly those, in its own order.
            history = {str(name): history[str(name)] for name in self.about["series"]}
        lookback: int = self.about["input_size"]
        for name, values in history.items():
            if len(values) < lookback:
                raise SystemExit(f"series {name} has {len(values)} values; the model looks back on {lookback}")
        scaling = np.array([self.scaling.get(name) or own_scaling(values) for name, values in history.items()])
        mean, deviation = scaling[:, :1], scaling[:, 1:]
        windows = (np.stack([values[-lookback:] for values in history.values()]) - mean) / deviation
        shape = (1, -1, lookback) if self.about["is_multivariate"] else (-1, 1, lookback)
        names = [output.name for output in self.session.get_outputs()]
        values = self.session.run(None, {"history": windows.astype(np.float32).reshape(shape)})
        outputs = {name: value.reshape(len(history), -1) for name, value in zip(names, values, strict=True)}
        # A model without a scheduling branch takes no leaps.
        none = np.zeros((len(history), 0), np.int64)
        start, length, scale = (outputs.get(name, none) for name in ("start", "length", "scale"))
        quantiles = outputs.get("quantiles", none).astype(np.float64) * deviation + mean
        return Forecast(
            series=list(history),
            values=outputs["forecast"].astype(np.float64) * deviation + mean,
            quantiles=quantiles.reshape(len(history), self.about["h"], -1),
            start=start,
            length=length,
            scale=[[self.about["scales"][index] for index in row] for row in scale],
        )


def own_scaling(values: Numbers) -> tuple[float, float]:
    """Mean and deviation of a series the model was not fitted on; a constant one is left in its own units."""
    deviation = float(values.std())
    return float(values.mean()), deviation if deviation > 1e-12 * abs(float(values.mean())) else 1.0


def read_series(path: str | Path) -> dict[str, Numbers]:
    """The values of each series of a long table."""
    columns: dict[str, list[float]] = {}
    with Path(path).open(newline="") as file:
        for row in csv.DictReader(file):
            columns.setdefault(row["unique_id"], []).append(float(row["y"]))
    return {name: np.array(values) for name, values in columns.items()}


def main(model: str, data: str) -> None:
    """Print the forecast as CSV."""
    forecaster = OnnxForecaster(model)
    forecast = forecaster.forecast(read_series(data))
    table = csv.writer(sys.stdout)
    table.writerow(["unique_id", "step", "LeapTS", "leap", "scale", *forecaster.about["quantiles"]])
    for row, name in enumerate(forecast.series):
        ends = (forecast.start[row] + forecast.length[row])[forecast.length[row] > 0]
        for step, value in enumerate(forecast.values[row]):
            leap = int((ends <= step).sum())
            scale = forecast.scale[row][leap] if len(ends) else ""
            quantiles = [repr(float(quantile)) for quantile in forecast.quantiles[row, step]]
            table.writerow([name, step + 1, repr(float(value)), leap, scale, *quantiles])


if __name__ == "__main__":
    main(*sys.argv[1:])
