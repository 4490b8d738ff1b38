"""Time of a forecast, next to the baselines."""

import importlib
import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from leapts.datasets.catalogue import find
from leapts.model import LeapTSModel
from leapts.model.build import build_model
from leapts_bench.baselines import BaselineModel
from leapts_bench.recipes import recipe
from leapts_bench.results import Line
from leapts_bench.speed.plan import (
    HORIZON,
    LOOKBACK,
    OURS,
    WINDOWS,
    Plan,
    fresh_baselines,
    random_walks,
    trained,
    windows_of,
)
from leapts_bench.speed.timing import Action, fastest

OURS_AS_ONNX = "LeapTS through ONNX Runtime"
SETS = ("ETTh2", "Weather")
_WIDE = "Electricity"  # not available in full: its width, with random weights and data


def inference(plan: Plan) -> Line:
    """Measure milliseconds per batch, for one window, for several, and for many series."""
    places = []
    for dataset in SETS:
        model, baselines = trained(dataset, plan), fresh_baselines(dataset, find(dataset).series, plan)
        places += [_place(dataset, model, baselines, windows_of(dataset, count), plan) for count in (1, WINDOWS)]
    wide = 32 if plan.is_quick else find(_WIDE).series
    config = recipe(_WIDE).model.config(input_size=LOOKBACK, horizon=HORIZON, variates=wide)
    model, baselines = build_model(config, seed=plan.seed), fresh_baselines(_WIDE, wide, plan, ("DLinear", "TSMixer"))
    places.append(_place(f"{wide} variates", model, baselines, random_walks(WINDOWS, wide, LOOKBACK, plan.seed), plan))
    return {"places": places}


def _place(name: str, model: LeapTSModel, baselines: dict[str, BaselineModel], history: Tensor, plan: Plan) -> Line:
    # As in the library: one inference copy for all forecasts.
    candidates: dict[str, Action] = {OURS: _asking(model.snapshot(), history)}
    candidates |= {name: _asking(network, history) for name, network in baselines.items()}
    session = onnx_session(model, history) if len(history) == 1 else None
    if session is not None:
        candidates[OURS_AS_ONNX] = session
    return {
        "set": name,
        "windows": len(history),
        "variates": history.shape[1],
        "leaps": _leaps(model, history),
        "seconds": fastest(candidates, plan.rounds),
    }


def _leaps(model: LeapTSModel, history: Tensor) -> float | None:
    trace = model.forecast(history, record="leaps").trace
    return None if trace is None else float(trace.leaps.double().mean())


def _asking(network: BaselineModel | LeapTSModel, history: Tensor) -> Action:
    return lambda: network.forecast(history)


def onnx_session(model: LeapTSModel, history: Tensor) -> Callable[[], Any] | None:
    """Load the dense execution in ONNX Runtime; None if that is not installed."""
    if any(importlib.util.find_spec(name) is None for name in ("onnx", "onnxscript", "onnxruntime")):
        return None
    onnxruntime = importlib.import_module("onnxruntime")
    history = history.contiguous()
    with warnings.catch_warnings():
        # The exporter has warnings about its internals.
        warnings.simplefilter("ignore")
        program = torch.onnx.export(model.eval(), (history,), dynamo=True, verbose=False)
    assert program is not None
    content = program.model_proto.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    fed = {session.get_inputs()[0].name: history.numpy()}
    return lambda: session.run(None, fed)
