"""Export a fitted model to one file: ONNX, or a `torch.export` program.

The graph takes standardized windows and returns the forecast and its schedule. The file also holds, as JSON under the
name `leapts`, what a program needs to standardize data and to name series.
"""

import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from leapts.errors import ConfigError
from leapts.files import write_file
from leapts.forecasting import LeapTS
from leapts.forecasting.predictor import Predictor
from leapts.model import LeapTSModel

Format = Literal["onnx", "pt2"]
METADATA = "leapts"
SCHEMA = 3  # of the metadata; 1 had `joint` and `deviation`, 2 no quantiles

_INPUT = "history"
# The exporter's own version; for another one it converts every node.
_OPSET = 18


def export_model(model: LeapTS, path: str | Path, *, format: Format = "onnx") -> Path:  # noqa: A002
    """Export a fitted model to a file, atomically.

    Args:
        model: The fitted model.
        path: The file.
        format: `onnx`, or `pt2` for `torch.export.load`.

    Raises:
        ConfigError: When the schedule cannot be exported, or the format is unknown.
        ImportError: When the format needs an extra that is not installed.
    """
    writers: dict[str, Callable[[Predictor], bytes]] = {"onnx": _onnx, "pt2": _pt2}
    if format not in writers:
        raise ConfigError(f"there is no format {format!r}; there are {', '.join(writers)}")
    content = writers[format](model.predictor_)
    write_file(Path(path), content)
    return Path(path)


def exported_program(predictor: Predictor) -> torch.export.ExportedProgram:
    """Convert a model to a `torch.export` program for any number of windows.

    The input is [batch, series, input_size]; univariate models have one series. The outputs are `forecast` as
    [batch, series, h]; if the model learned quantiles, `quantiles` as [batch, series, h, levels], before calibration;
    and, if it has a scheduler, `start`, `length` and `scale` of each leap as [batch, series, leaps], with zeros after
    the last leap.

    Raises:
        ConfigError: When the schedule is random or the network pretrained, which a graph cannot be, or the model has
            covariates.
    """
    config = predictor.config
    if config.network.kind != "own":
        raise ConfigError("the pretrained network, also in a mean, cannot be exported; fit with init='random'")
    if config.covariates is not None:
        raise ConfigError("export is not supported yet with covariates; fit without them")
    if config.scheduling.draws_at_random:
        raise ConfigError(
            "a schedule drawn at random cannot be exported; fit with scheduling='hierarchical', 'flat' or 'fixed'"
        )
    # An example of two windows: a batch of one would become a constant of the graph.
    shape = (2, config.n_series or 1, config.input_size)
    example = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float32)
    batch = {0: torch.export.Dim("batch")}
    with torch.no_grad():
        program = torch.export.export(_Graph(predictor.model).eval(), (example,), dynamic_shapes=(batch,), strict=False)
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # source lines, with paths of this computer
    return program


def metadata(predictor: Predictor) -> dict[str, Any]:
    """Shapes, series names, mean and standard deviation of each series, and the levels of the quantiles."""
    fusion = predictor.model.fusion
    grid = getattr(getattr(getattr(fusion, "rollout", None), "scheduler", None), "grid", None)
    return {
        "schema": SCHEMA,
        "h": predictor.config.h,
        "input_size": predictor.config.input_size,
        "is_multivariate": predictor.is_multivariate,
        "freq": predictor.tail.freq,
        "series": list(predictor.tail.series),
        "mean": predictor.scaler.mean.tolist(),
        "std": predictor.scaler.std.tolist(),
        "scales": [] if grid is None else list(grid.names),
        "quantiles": list(predictor.config.quantiles),
    }


class _Graph(nn.Module):
    """The model with plain tensors as its outputs."""

    def __init__(self, model: LeapTSModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, history: Tensor) -> dict[str, Tensor]:
        forecast, levels = self.model.traced(history), len(self.model.levels)
        quantiles, trace = forecast.values.unflatten(2, (-1, levels)), forecast.trace
        # Copied, since a view of the quantiles has no memory of its own in some runtimes.
        outputs = {"forecast": quantiles[..., self.model.median].clone()}
        outputs |= {"quantiles": quantiles} if levels > 1 else {}
        if trace is not None:
            outputs |= {"start": trace.start, "length": trace.length, "scale": trace.scale}
        return outputs


def _pt2(predictor: Predictor) -> bytes:
    buffer = io.BytesIO()
    torch.export.save(exported_program(predictor), buffer, extra_files={METADATA: json.dumps(metadata(predictor))})
    return buffer.getvalue()


def _onnx(predictor: Predictor) -> bytes:
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ImportError("the ONNX export needs: pip install 'leapts[onnx]'") from error
    about = metadata(predictor)
    leaps = ["start", "length", "scale"] if about["scales"] else []
    with _quiet_exporter():
        exported = torch.onnx.export(
            exported_program(predictor),
            input_names=[_INPUT],
            output_names=["forecast", *(["quantiles"] if about["quantiles"] else []), *leaps],
            dynamic_shapes=({0: "batch"},),
            opset_version=_OPSET,
            dynamo=True,
            verbose=False,
        )
    assert exported is not None
    for node in exported.model.graph:
        node.metadata_props.clear()  # source lines, with paths of this computer
    exported.model.metadata_props[METADATA] = json.dumps(about)
    content: bytes = exported.model_proto.SerializeToString()
    return content


@contextmanager
def _quiet_exporter() -> Iterator[None]:
    """Silence warnings of the exporter about its own libraries."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
