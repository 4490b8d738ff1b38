"""A fitted model as one file for other programs: ONNX, or a `torch.export` program.

The graph takes standardised windows and does all the rest: normalisation, encoding, a fixed number of leaps, fusion,
and back. It gives the forecast and, beside it, the schedule. What a program needs to standardise data and to name
series travels in the file, as JSON under the name `leapts`.
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
SCHEMA = 1

_INPUT = "history"
_OUTPUTS = ("forecast", "start", "length", "scale")
# What the exporter writes by itself: another number would have it convert every node.
_OPSET = 18


def export_model(model: LeapTS, path: str | Path, *, format: Format = "onnx") -> Path:  # noqa: A002
    """Write a fitted model as one file, whole or not at all.

    Args:
        model: What to write.
        path: Where to.
        format: `onnx`, or `pt2` for `torch.export.load`.

    Returns:
        The path.

    Raises:
        ConfigError: When the model's schedule cannot be a graph, or the format is not known.
        ImportError: When the format needs an extra that is not installed.
    """
    writers: dict[str, Callable[[Predictor], bytes]] = {"onnx": _onnx, "pt2": _pt2}
    if format not in writers:
        raise ConfigError(f"there is no format {format!r}; there are {', '.join(writers)}")
    content = writers[format](model.fitted_)
    write_file(Path(path), content)
    return Path(path)


def exported_program(fitted: Predictor) -> torch.export.ExportedProgram:
    """The model as a `torch.export` program that takes any number of windows.

    A model of single series takes one variate, [batch, 1, look-back]; a joint one takes all of its own. It gives, by
    name, the `forecast` as [batch, variates, h], and as [batch, variates, leaps] each leap's `start`, `length` and
    `scale`. Past a row's last leap these are zero; a model without a scheduling branch gives the forecast alone.

    Raises:
        ConfigError: When the schedule is drawn at random, which a graph does not do.
    """
    config = fitted.config
    if config.scheduling.draws_at_random:
        raise ConfigError(
            "a schedule drawn at random cannot be exported; fit with scheduling='hierarchical', 'flat' or 'fixed'"
        )
    # Two windows stand for any number: one alone would be taken for a constant.
    shape = (2, config.n_series or 1, config.input_size)
    example = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float32)
    batch = {0: torch.export.Dim("batch")}
    with torch.no_grad():
        program = torch.export.export(_Graph(fitted.model).eval(), (example,), dynamic_shapes=(batch,), strict=False)
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # where in the sources it came from, with the paths of this computer
    return program


def metadata(fitted: Predictor) -> dict[str, Any]:
    """What a program beside the graph needs to know: shapes, series, and how their values are standardised."""
    fusion = fitted.model.fusion
    grid = getattr(getattr(getattr(fusion, "rollout", None), "scheduler", None), "grid", None)
    return {
        "schema": SCHEMA,
        "h": fitted.config.h,
        "input_size": fitted.config.input_size,
        "joint": fitted.is_multivariate,
        "freq": fitted.tail.freq,
        "series": list(fitted.tail.series),
        "mean": fitted.scaler.mean.tolist(),
        "deviation": fitted.scaler.std.tolist(),
        "scales": [] if grid is None else list(grid.names),
    }


class _Graph(nn.Module):
    """The model with plain tensors as its outputs."""

    def __init__(self, model: LeapTSModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, history: Tensor) -> dict[str, Tensor]:
        forecast = self.model.traced(history)
        if forecast.trace is None:
            return {"forecast": forecast.values}
        trace = forecast.trace
        return {"forecast": forecast.values, "start": trace.start, "length": trace.length, "scale": trace.scale}


def _pt2(fitted: Predictor) -> bytes:
    buffer = io.BytesIO()
    torch.export.save(exported_program(fitted), buffer, extra_files={METADATA: json.dumps(metadata(fitted))})
    return buffer.getvalue()


def _onnx(fitted: Predictor) -> bytes:
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ImportError("the ONNX export needs: pip install 'leapts[onnx]'") from error
    about = metadata(fitted)
    with _quiet_exporter():
        exported = torch.onnx.export(
            exported_program(fitted),
            input_names=[_INPUT],
            output_names=list(_OUTPUTS if about["scales"] else _OUTPUTS[:1]),
            dynamic_shapes=({0: "batch"},),
            opset_version=_OPSET,
            dynamo=True,
            verbose=False,
        )
    assert exported is not None
    for node in exported.model.graph:
        node.metadata_props.clear()  # where in the sources it came from, with the paths of this computer
    exported.model.metadata_props[METADATA] = json.dumps(about)
    content: bytes = exported.model_proto.SerializeToString()
    return content


@contextmanager
def _quiet_exporter() -> Iterator[None]:
    """Keeps to itself what the exporter says of its own libraries: nobody who exports can do anything about it."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
