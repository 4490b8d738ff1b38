"""Forward pass relative to the peak of the machine, and a profile of the rest of its time."""

from collections import defaultdict

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from leapts.model import LeapTSModel
from leapts_bench.results import Line
from leapts_bench.speed.matrix_products import peak_rate, products_of
from leapts_bench.speed.plan import WINDOWS, Plan, trained, windows_of
from leapts_bench.speed.timing import Action, fastest

SETS = ("ETTh2", "Weather")

# Kinds of operations by parts of their names; the first match counts.
_KINDS = {
    "matrix products": ("addmm", "::mm", "bmm", "linear", "matmul"),
    "gathers and writes of rows": ("index", "gather", "scatter", "nonzero", "where", "masked"),
    "copies and joins": ("copy", "cat", "clone", "contiguous", "stack", "fill", "zero", "empty", "repeat"),
    "activations": ("sigmoid", "tanh", "gelu", "silu", "hardswish", "relu", "softmax", "exp"),
    "sums and means": ("mean", "sum", "var", "argmax", "max", "cumsum"),
    "plain arithmetic": ("add", "sub", "mul", "div", "round", "clamp", "sqrt", "neg", "minimum", "maximum", "lerp"),
    "views": ("view", "transpose", "select", "slice", "split", "expand", "unsqueeze", "squeeze", "as_strided", "::t"),
}
_OTHER = "other operations"
_BETWEEN = "Python between operations"


def limit(plan: Plan) -> Line:
    """Compare the forward pass with its matrix products alone and with the machine's peak, and profile it."""
    peak = peak_rate(500 if plan.is_quick else 2000)
    places = []
    for dataset in SETS:
        model, history = trained(dataset, plan), windows_of(dataset, WINDOWS)
        products = products_of(model, history)
        candidates: dict[str, Action] = {
            "forward": lambda model=model, history=history: model.forecast(history),  # type: ignore[misc]
            "products": torch.inference_mode()(products.replay),
        }
        places.append(
            {
                "set": dataset,
                "windows": len(history),
                "seconds": fastest(candidates, plan.rounds),
                "operations": products.operations,
                "profile": profiled(model, history),
            }
        )
    return {"peak": peak, "places": places}


def profiled(model: LeapTSModel, history: Tensor, calls: int = 20) -> dict[str, float]:
    """Measure the share of each kind of operation in the forward pass; the rest is Python.

    The profiler slows down what it measures, small operations most, so the shares are approximate.
    """
    model.forecast(history)
    with profile(activities=[ProfilerActivity.CPU]) as watched:
        for _ in range(calls):
            model.forecast(history)
    spent: dict[str, float] = defaultdict(float)
    events = watched.events()
    assert events is not None
    for event in events:
        spent[_kind(event.name)] += event.self_cpu_time_total
    first, last = min(event.time_range.start for event in events), max(event.time_range.end for event in events)
    spent[_BETWEEN] = max(0.0, last - first - sum(spent.values()))
    total = sum(spent.values())
    return dict(sorted(((kind, time / total) for kind, time in spent.items()), key=lambda pair: -pair[1]))


def _kind(name: str) -> str:
    return next((kind for kind, parts in _KINDS.items() if any(part in name for part in parts)), _OTHER)
