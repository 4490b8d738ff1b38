"""Split the linear path of a ledger: what simple forecasts give to the combination, and the rest."""

import re

import torch
from jaxtyping import Float64
from torch import Tensor

from leapts.explanation.ledger import Ledger
from leapts.forecasting.predictor import Predictor
from leapts.training.linear import NETWORK, simple_forecasts

_MEMBER = re.compile(r"(\d+)% ([^,]+)")


def combined_with(predictor: Predictor) -> dict[str, float]:
    """Weights of the simple forecasts in the combination, by name; they add up to what the network leaves."""
    text = next((str(one.value) for one in predictor.auto_config if one.option == "combine"), "")
    found = {name: float(share) for share, name in _MEMBER.findall(text) if name != NETWORK}
    # The text is rounded; the weight of the network is not.
    others = 1 - float(getattr(predictor.model.linear, "share", 1.0))
    return {name: others * share / sum(found.values()) for name, share in found.items() if share}


def split_linear_path(predictor: Predictor, ledger: Ledger, history: Float64[Tensor, "series lookback"]) -> Ledger:
    """Split the linear path in two, or drop it from the ledger of a network without one.

    A simple forecast is the level, plus a linear map of the history above the level.
    """
    h, lookback = ledger.parts.shape[2], history.shape[1]
    if getattr(predictor.model, "linear", None) is None:
        return ledger.rearranged([name for name in ledger.names if name != "linear path"], lookback)
    weights = combined_with(predictor)
    seasons = [int(season) for name in weights for season in re.findall(r"\((\d+)\)", name)]
    known = simple_forecasts(lookback, h, seasons)
    shares = [weight * known[name] for name, weight in weights.items() if name in known]
    if not shares:
        return ledger
    simple = torch.stack(shares).sum(0)
    part = (history - ledger.parts[:, 0, :1]).nan_to_num(0.0) @ simple.T
    slope = simple.sum(0) - simple.sum() * ledger.sensitivity[:, 0] / h
    found = ledger.rearranged([*ledger.names[:2], "simple forecasts", *ledger.names[2:]], lookback)
    for tensor, own in ((found.parts, part), (found.sensitivity, slope.masked_fill(history.isnan(), 0.0))):
        tensor[:, 1] -= own
        tensor[:, 2] += own
    return found
