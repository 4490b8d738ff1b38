"""Compute the ledger of a forecast: one dense run with the schedule replayed, and one backward pass for each part."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from leapts.data.panel import Panel
from leapts.explanation.forced import Decisions, forced_network, gate_of, recorded_decisions
from leapts.explanation.ledger import Explanation, Ledger
from leapts.explanation.simple import split_linear_path
from leapts.forecasting.forecast import Forecast
from leapts.forecasting.predictor import Predictor
from leapts.model.network import RunOptions

_MAX_ROWS = 1024  # windows x series whose gradients are computed together


def explain(predictor_for: Callable[[Panel], Predictor], panel: Panel, alias: str = "LeapTS") -> Explanation:
    """Explain the forecasts of a panel by the predictor that is made for it: the fitted one, or a pretrained one."""
    predictor = predictor_for(panel)
    windows = predictor.windows(panel)
    forecast = predictor.predict(windows, "leaps")
    history = windows.batch.history
    decisions = None if forecast.trace is None else recorded_decisions(forecast.trace)
    found, start = [], 0
    for some in history.split(max(1, _MAX_ROWS // history.shape[1])):
        stop = start + some.shape[0] * some.shape[1]
        found.append(_differentiated(predictor.model, some, None if decisions is None else decisions[start:stop]))
        start = stop
    parts, sensitivity, across = (torch.cat(column) for column in zip(*found, strict=True))
    center, scale = windows.scaler.mean[:, None], forecast.scale[:, None]
    past = history.flatten(0, 1).double() * scale + center
    parts = parts * scale.unsqueeze(1)
    parts[:, 0] += center
    leaps = (f"leap {leap}" for leap in range(parts.shape[1] - 3))
    ledger = Ledger(("level", "linear path", "coarse forecast", *leaps), parts, sensitivity)
    return Explanation(
        panel=forecast.panel,
        alias=alias,
        ledger=_after_the_network(predictor, forecast, split_linear_path(predictor, ledger, past)),
        values=forecast.values,
        across=across if history.shape[1] > 1 else None,
        history=past,
        gate=gate_of(predictor.model),
        forecast=forecast,
        data=panel,
        predictor_for=predictor_for,
    )


def differentiable(network: Any, history: Tensor, decisions: Decisions | None) -> tuple[Tensor, Any]:
    """Run a network with gradients; return the running sums of parts as [rows, parts, h], and the trace."""
    forced = forced_network(network, decisions, history.shape[:2])
    found = forced.run(history, RunOptions(None, "dense", "leaps", quantiles=False))
    trace = None if found.trace is None else found.trace.arranged(lambda x: x.flatten(0, 1))
    return torch.stack([part.flatten(0, 1).double() for part in found.parts], 1), trace


def _differentiated(network: Any, history: Tensor, decisions: Decisions | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return parts, sensitivities of a series to itself, and of totals to all series, by row."""
    past = history.detach().clone().requires_grad_()
    sums, _ = differentiable(network, past, decisions)
    parts = sums.diff(dim=1, prepend=torch.zeros_like(sums[:, :1]))
    totals = parts.sum(2)

    def gradient(total: Tensor) -> Tensor:
        # A part that no value of the history changes has no gradient.
        slope = torch.autograd.grad(total, past, retain_graph=True, allow_unused=True)[0]
        return torch.zeros_like(past) if slope is None else slope.nan_to_num(0.0)

    if past.shape[1] == 1:
        slopes = torch.stack([gradient(total.sum())[:, 0] for total in totals.unbind(1)], 1)
        return parts.detach(), slopes.double(), slopes.new_zeros(len(parts), 0)
    # Series that are mixed have gradients of their own each.
    own = [torch.stack([gradient(total)[0, row] for total in totals[row]]) for row in range(len(totals))]
    across = [gradient(total)[0].sum(1) for total in totals.sum(1)]
    return parts.detach(), torch.stack(own).double(), torch.stack(across).double()


def _after_the_network(predictor: Predictor, forecast: Forecast, ledger: Ledger) -> Ledger:
    """Add the steps after the network, which have no sensitivity of their own: mean, limits and whole numbers."""
    median = forecast.quantiles[..., list(forecast.levels).index(0.5)]
    raw = forecast.quantiles @ predictor.point_weights
    support = forecast.support
    inside = raw.clamp(support.lower[:, None], support.upper[:, None])
    more = {"mean above median": raw - median, "limits": inside - raw, "rounding": forecast.values - inside}
    kept = {name: part for name, part in more.items() if bool((part != 0).any())}
    parts = torch.cat([ledger.parts, *(part.unsqueeze(1) for part in kept.values())], 1)
    return Ledger((*ledger.names, *kept), parts, F.pad(ledger.sensitivity, (0, 0, 0, len(kept))))
