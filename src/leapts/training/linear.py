"""The linear path before and after training: a start by ridge regression, and a combination with simple forecasts.

Naive, seasonal naive, drift and mean of the look-back are linear maps of the look-back. Ridge regression is shrunk to
the best of them; after training, their weighted mean with the network is again a linear path beside the network.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from leapts.data.windows import WindowBatch
from leapts.model import LeapTSModel
from leapts.training.loop import WindowSource

NETWORK = "network"
_MAX_ROWS = 20_000
_MAX_PRODUCTS = 5_000_000_000  # rows x look-back x horizon
_MAX_EIGENVALUES = 1_024  # of a ridge regression, whose time grows with their cube
_FOLDS = 4
_TRIED_STARTS = 3
_PENALTIES = (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, torch.inf)  # relative to the mean variance of a step of the look-back
_MAX_MEMBERS = 2  # of a combination, beside the network; one may be a member twice
_MIN_GAIN = 0.03  # of the validation error by each of them: less may be chance
_EFFECT_PENALTY = 1e-3  # of the ridge regression of effects, relative to the mean variance of a channel
_MIN_SIZE = 1e-3  # of an error by which a window is weighted, in standard deviations
_MAX_LOSS = 0.05  # of a combination to the best simple forecast

Weights = Float64[Tensor, "horizon lookback"]


class LinearStart(NamedTuple):
    """How the linear path starts."""

    simple: str  # the simple forecast that it is shrunk to
    penalty: float  # infinite: that forecast itself
    error: float  # mean absolute error in cross-validation, scaled
    weights: Weights
    effects: Float64[Tensor, " channels"] | None = None  # of known-future covariates, in standard deviations

    def __str__(self) -> str:
        return self.simple if self.penalty == torch.inf else f"ridge regression towards {self.simple}"

    @torch.no_grad()
    def apply(self, model: LeapTSModel) -> None:
        """Set the linear path, and the rest of the point forecast to zero."""
        assert model.linear is not None
        model.linear.map.weight.copy_(self.weights)
        if self.effects is not None:
            _set_effects(model, self.effects)
        per_step = model.linear.outputs_per_step
        written = slice(0, model.parts[0], per_step)
        layers = [(model.head.weight[written], model.head.bias[written])]
        if (rollout := getattr(model.fusion, "rollout", None)) is not None:
            heads = rollout.heads.heads
            layers.append((heads.weight[:, ::per_step], heads.bias[:, ::per_step]))
        for parameter in (parameter for layer in layers for parameter in layer):
            nn.init.zeros_(parameter)


class Combination(NamedTuple):
    """The weights of network and simple forecasts, and mean absolute errors on the validation windows, scaled."""

    weights: Mapping[str, float]
    error: float
    errors: Mapping[str, float]  # of each candidate

    def __str__(self) -> str:
        return ", ".join(f"{weight:.0%} {name}" for name, weight in self.weights.items())

    @property
    def reason(self) -> str:
        """Compare the errors."""
        best = min(set(self.errors) - {NETWORK}, key=self.errors.__getitem__)
        return (
            f"validation MAE {self.error:.3g}; of the network alone {self.errors[NETWORK]:.3g}, "
            f"of {best} {self.errors[best]:.3g} (scaled)"
        )


class _Rows(NamedTuple):
    """Look-backs and targets, each minus the center of its window."""

    inputs: Float64[Tensor, "rows lookback"]
    targets: Float64[Tensor, "rows horizon"]

    def error(self, weights: Weights) -> Float64[Tensor, ""]:
        return (self.inputs @ weights.T - self.targets).abs().nanmean()


def simple_forecasts(lookback: int, horizon: int, seasons: Sequence[int]) -> dict[str, Weights]:
    """Express naive, seasonal naive, drift and mean of the look-back as linear maps of the look-back."""
    steps = torch.arange(horizon)

    def repeat(season: int, count: int = 1) -> Weights:
        """Mean of the last `count` seasons."""
        weights = torch.zeros(horizon, lookback, dtype=torch.float64)
        for back in range(1, count + 1):
            weights[steps, lookback - back * season + steps % season] += 1 / count
        return weights

    found = {"naive": repeat(1), "historic mean": repeat(1, lookback)}
    for season in seasons:
        if 1 < season <= lookback:
            found[f"seasonal naive ({season})"] = repeat(season)
            if lookback >= 2 * season:
                found[f"seasonal mean ({season})"] = repeat(season, lookback // season)
    if lookback > 1:
        slope = torch.zeros(lookback, dtype=torch.float64)
        slope[0], slope[-1] = -1 / (lookback - 1), 1 / (lookback - 1)
        found["drift"] = found["naive"] + (steps + 1)[:, None] * slope
    return found


@torch.no_grad()
def start_linear_path(
    model: LeapTSModel, training: WindowSource, validation: WindowSource | None, seasons: Sequence[int]
) -> LinearStart:
    """Set the linear path to a ridge regression, and the rest of the point forecast to zero.

    The penalty, and the simple forecast that it is shrunk to, have the lowest error in cross-validation over blocks of
    training windows and on the validation windows.
    """
    sources = [training] if validation is None else [training, validation]
    simple = simple_forecasts(model.shape.lookback, model.shape.horizon, seasons)
    start = _best_start([_rows(model, source) for source in sources], simple)
    if model.covariates is not None:
        effects = _effects(model, training, simple[start.simple])
        _set_effects(model, effects)
        adjusted = _best_start([_rows(model, source) for source in sources], simple)
        is_better = adjusted.error < start.error
        start = (adjusted if is_better else start)._replace(effects=effects if is_better else 0 * effects)
    start.apply(model)
    return start


def _best_start(parts: Sequence["_Rows"], simple: Mapping[str, Weights]) -> LinearStart:
    """Fit the start on the first part; its error counts on the others, too."""
    rows, *checked = parts
    errors = {name: float(sum(some.error(one) for some in parts)) for name, one in simple.items()}
    best = sorted(errors, key=errors.__getitem__)[:_TRIED_STARTS]
    return min((_start(rows, checked, name, simple[name]) for name in best), key=lambda one: one.error)


def _set_effects(model: LeapTSModel, effects: Float64[Tensor, " channels"]) -> None:
    """Set the linear part of the effects of known-future covariates."""
    assert model.covariates is not None
    model.covariates.linear.weight.copy_(effects)


def _without_effects(model: LeapTSModel, batch: WindowBatch) -> WindowBatch:
    """Subtract the effects of the covariates from look-backs and targets."""
    if model.covariates is None:
        return batch
    known = model.covariates(batch.covariates)
    past, future = known.past_effect.transpose(0, 1), known.future_effect.transpose(0, 1)
    return replace(batch, history=batch.history - past, target=batch.target - future)


def _effects(model: LeapTSModel, windows: WindowSource, prior: Weights) -> Float64[Tensor, " channels"]:
    """Regress what a simple forecast leaves of the targets on what it leaves of the covariates; one step is a row."""
    assert model.covariates is not None
    channels, simple = model.covariates.known, prior.float()
    squares = torch.zeros(channels, channels, dtype=torch.float64)
    products = torch.zeros(channels, dtype=torch.float64)
    for batch in _batches(model, windows):
        assert batch.covariates is not None
        values, units = model.normalization(batch.history)
        past = values[..., : model.shape.lookback] * units.scale
        rest = batch.target - units.center - past @ simple.T
        known = batch.covariates.future
        left = known - torch.einsum("hl,bslc->bshc", simple, batch.covariates.past[..., : known.shape[-1]])
        size = rest.abs().nanmean(-1, keepdim=True).clamp(min=_MIN_SIZE)
        weight = (~rest.isnan() / size).unsqueeze(-1)
        inputs = left.flatten(0, 2).double()
        weighted = (left * weight).flatten(0, 2).double()
        squares += weighted.T @ inputs
        products += weighted.T @ rest.nan_to_num(0).flatten().double()
    unit = squares.diagonal().mean() + _MIN_SIZE
    effects: Tensor = torch.linalg.solve(
        squares + _EFFECT_PENALTY * unit * torch.eye(channels, dtype=torch.float64), products
    )
    return effects


def _start(rows: _Rows, checked: Sequence[_Rows], name: str, prior: Weights) -> LinearStart:
    """Choose the penalty towards one simple forecast."""
    fits = list(_ridge(rows, prior))
    folds = [*_fold_errors(rows, prior), *(torch.stack([some.error(one) for one in fits]) for some in checked)]
    error = torch.stack([*folds, *folds[_FOLDS:] * (_FOLDS - 1)]).mean(0)  # both parts have the same weight
    best = int(error.argmin())
    return LinearStart(name, _PENALTIES[best], float(error[best]), fits[best])


@torch.no_grad()
def combine_with_simple(
    model: LeapTSModel, validation: WindowSource, seasons: Sequence[int], start: LinearStart
) -> Combination:
    """Replace the point forecast by its mean with simple forecasts that lower the validation error.

    Members are added one by one, each time the one that lowers the error of the mean the most, if by 3 % or more.
    The best simple forecast then gets as many tenths of the weight as it takes to come within 5 % of its own error.
    """
    assert model.linear is not None
    rows = _rows(model, validation)
    simple = simple_forecasts(model.shape.lookback, model.shape.horizon, seasons)
    simple.setdefault(str(start), start.weights)
    forecasts = {NETWORK: _network_forecasts(model, validation)}
    forecasts |= {name: rows.inputs @ weights.T for name, weights in simple.items()}

    def error(weights: Mapping[str, float]) -> float:
        mean = sum((weight * forecasts[name] for name, weight in weights.items()), torch.zeros(()))
        return float((mean - rows.targets).abs().nanmean())

    errors = {name: error({name: 1.0}) for name in forecasts}
    members = [NETWORK]
    for _ in range(_MAX_MEMBERS):
        added = min(forecasts, key=lambda name: error(_shares([*members, name])))
        if not error(_shares([*members, added])) <= (1 - _MIN_GAIN) * error(_shares(members)):
            break
        members.append(added)
    weights, best = _shares(members), min(set(errors) - {NETWORK}, key=errors.__getitem__)
    for tenths in range(1, 11):
        if error(weights) <= (1 + _MAX_LOSS) * errors[best]:
            break
        weights = {name: (1 - tenths / 10) * share for name, share in _shares(members).items() if tenths < 10}
        weights[best] = weights.get(best, 0.0) + tenths / 10
    share = weights.get(NETWORK, 0.0)
    combined = sum((weights[name] * simple[name] for name in weights if name != NETWORK), torch.zeros(()))
    model.linear.map.weight.mul_(share).add_(combined.to(model.linear.map.weight.dtype))
    model.linear.share.mul_(share)
    return Combination(weights, error(weights), errors)


def _shares(members: Sequence[str]) -> dict[str, float]:
    return {name: members.count(name) / len(members) for name in dict.fromkeys(members)}


def _batches(model: LeapTSModel, windows: WindowSource) -> Iterator[WindowBatch]:
    """Take a sample of windows."""
    lookback = model.shape.lookback
    max_rows = min(_MAX_ROWS, _MAX_PRODUCTS // (lookback * model.shape.horizon) + 1)
    max_rows = min(max_rows, _MAX_EIGENVALUES) if lookback > _MAX_EIGENVALUES else max_rows
    variates = windows.gather(torch.zeros(1, dtype=torch.int64)).history.shape[1]
    step = max(1, -(-len(windows) * variates // max_rows))
    for index in torch.arange(0, len(windows), step).split(max(1, 4096 // variates)):
        yield windows.gather(index)


def _rows(model: LeapTSModel, windows: WindowSource) -> _Rows:
    inputs, targets = [], []
    for batch in _batches(model, windows):
        rest = _without_effects(model, batch)
        values, units = model.normalization(rest.history)
        inputs.append((values[..., : model.shape.lookback] * units.scale).flatten(0, 1))
        targets.append((rest.target - units.center).flatten(0, 1))
    return _Rows(torch.cat(inputs).double(), torch.cat(targets).double())


def _network_forecasts(model: LeapTSModel, windows: WindowSource) -> Float64[Tensor, "rows horizon"]:
    found = []
    for batch in _batches(model, windows):
        forecast = model.forecast(batch.history, covariates=batch.covariates).values
        rest = _without_effects(model, replace(batch, target=forecast))
        found.append((rest.target - model.normalization(rest.history).units.center).flatten(0, 1))
    return torch.cat(found).double()


def _fold_errors(rows: _Rows, prior: Weights) -> Iterator[Float64[Tensor, " penalties"]]:
    """Compute the error of each penalty on each block of rows, fitted without it."""
    for block in torch.arange(len(rows.inputs)).tensor_split(_FOLDS):
        rest = torch.ones(len(rows.inputs), dtype=torch.bool)
        rest[block] = False
        held, fitted = (_Rows(rows.inputs[part], rows.targets[part]) for part in (~rest, rest))
        yield torch.stack([held.error(one) for one in _ridge(fitted, prior)]).nan_to_num(0)


def _ridge(rows: _Rows, prior: Weights) -> Iterator[Weights]:
    """Fit a linear map by ridge regression for each penalty, shrunk to a prior; large errors count less."""
    rest = (rows.targets - rows.inputs @ prior.T).nan_to_num(0)
    size = rest.abs().mean(1, keepdim=True)
    weight = size.clamp(min=float(size.median()) + 1e-9).rsqrt() if len(size) else size
    inputs, rest = rows.inputs * weight, rest * weight
    # Of products between steps and products between rows, the smaller matrix: the weights are the same.
    by_row = len(inputs) < inputs.shape[1]
    values, vectors = torch.linalg.eigh(inputs @ inputs.T if by_row else inputs.T @ inputs)
    basis = inputs.T @ vectors if by_row else vectors
    projected, unit = vectors.T @ (rest if by_row else inputs.T @ rest), float(values.sum()) / inputs.shape[1]
    for penalty in _PENALTIES:
        strength = values.clamp(min=0) + penalty * (unit + 1e-12)
        yield prior + (basis @ (projected / strength[:, None])).T
