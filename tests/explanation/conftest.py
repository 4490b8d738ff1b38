"""Fitted models of every kind whose leaps matter, and data for them."""

from typing import Any

import pandas as pd
import pytest
import torch

from leapts import LeapTS
from tests.forecasting.frames import MULTIVARIATE, UNIVARIATE, make_forecaster, make_frame

KINDS: dict[str, dict[str, Any]] = {
    "univariate": UNIVARIATE,
    "multivariate": MULTIVARIATE,
    "mean of quantiles": {**UNIVARIATE, "point": "mean"},
    "point forecast": {**UNIVARIATE, "loss": "huber", "support": "count"},
    "no leaps": {"model": {"scheduling": {"kind": "none"}}},
    "fixed steps": {"model": {"scheduling": {"kind": "fixed", "step": 2}}},
    "random steps": {"model": {"scheduling": {"kind": "monte_carlo"}, "state": {"kind": "lstm"}}},
    "one scale": {"model": {"scheduling": {"kind": "flat"}}},
    "no linear path": {"model": {"linear_path": False, "normalization": "last"}},
}
LEAPING = [kind for kind in (*KINDS, "pretrained") if kind != "no leaps"]


@pytest.fixture(scope="session")
def data() -> pd.DataFrame:
    frame = make_frame({"a": 160, "b": 160, "c": 160})
    return frame.assign(y=frame["y"].round(2))


@pytest.fixture(scope="session")
def models(data: pd.DataFrame) -> dict[str, LeapTS]:
    """One model of each kind, with weights moved at random, so that no part of a forecast is near zero."""
    found = {"pretrained": LeapTS.pretrained(h=6).fit(data)}
    for kind, options in KINDS.items():
        counts = data.assign(y=data["y"].round()) if options.get("support") == "count" else data
        found[kind] = make_forecaster(**options).fit(counts)
        generator = torch.Generator().manual_seed(3)
        with torch.no_grad():
            for weight in found[kind].predictor_.model.parameters():
                weight.add_(0.1 * torch.randn(weight.shape, generator=generator))
    return found
