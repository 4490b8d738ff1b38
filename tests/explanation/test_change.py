"""The change between two forecasts is the sum of its causes, and a cause that is absent is zero."""

import numpy as np
import pandas as pd
import pytest
import torch

from leapts import LeapTS
from leapts.errors import ConfigError
from leapts.explanation.change import explain_change
from leapts.explanation.ledger import Explanation
from tests.forecasting.frames import UNIVARIATE, make_forecaster

H = 6


def _known(data: pd.DataFrame, back: int) -> pd.DataFrame:
    return data.groupby("unique_id", sort=False).head(160 - back)


@pytest.mark.parametrize("kind", ["univariate", "multivariate", "no leaps", "random steps", "pretrained"])
@pytest.mark.parametrize("shift", [0, 1, 4])
def test_parts_add_up_to_the_change(kind: str, shift: int, models: dict[str, LeapTS], data: pd.DataFrame) -> None:
    old, new = _known(data, shift), data.copy()
    new.loc[new["ds"] == "2024-06-01", "y"] += 3
    model = LeapTS.pretrained(h=H) if kind == "pretrained" else models[kind]
    change = explain_change(model.explain(old), model.explain(new))
    frame = change.to_frame()
    assert change.error() < 1e-12
    np.testing.assert_allclose(frame["change"], frame[list(change.parts)].sum(axis=1), atol=1e-9)
    after = model.predict(new).groupby("unique_id").head(H - shift)
    np.testing.assert_allclose(frame["after"], after["LeapTS"])
    assert frame["ds"].tolist() == after["ds"].tolist()
    assert float(change.parts["revised data"].abs().max()) > 0
    assert float(change.parts["model"].abs().max()) == 0
    assert (float(change.parts["new data"].abs().max()) > 1e-3) == (shift > 0)


def test_a_cause_that_is_absent_is_zero(models: dict[str, LeapTS], data: pd.DataFrame) -> None:
    model = models["univariate"]
    same = explain_change(model.explain(data), model.explain(data))
    assert all(float(part.abs().max()) < 1e-5 for part in same.parts.values())
    assert "before" in str(same)
    other = make_forecaster(**UNIVARIATE, random_seed=2).fit(data)
    swapped = explain_change(model.explain(data), other.explain(data))
    assert float(swapped.parts["model"].abs().max()) > 0
    assert float(swapped.parts["revised data"].abs().max()) < 1e-5


def test_another_gate_is_a_cause_of_its_own(models: dict[str, LeapTS], data: pd.DataFrame) -> None:
    model = models["univariate"]
    before = model.explain(data)
    other = make_forecaster(**UNIVARIATE).fit(data)
    network, changed = model.predictor_.model, other.predictor_.model
    changed.load_state_dict(network.state_dict())
    with torch.no_grad():
        changed.get_parameter("fusion.gate_logit").fill_(2.0)
    change = explain_change(before, other.explain(data))
    assert float(change.parts["gate"].abs().max()) > 0


def test_forecasts_without_common_steps_are_refused(models: dict[str, LeapTS], data: pd.DataFrame) -> None:
    model = models["univariate"]
    before, after = model.explain(_known(data, 2)), model.explain(data)
    with pytest.raises(ConfigError, match="later"):
        explain_change(after, before)
    with pytest.raises(ConfigError, match="same ones"):
        explain_change(before, model.explain(data[data["unique_id"] == "a"]))
    with pytest.raises(ConfigError, match="mean of several"):
        explain_change(before, Explanation.mean([after, after]))
    with pytest.raises(ConfigError, match="no step"):
        explain_change(model.explain(_known(data, H)), after)
