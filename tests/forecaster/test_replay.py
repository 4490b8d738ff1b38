"""Recorded passes give what the model gives."""

import pandas as pd
import pytest
import torch

from leapts.forecaster.replay import ReplayedPasses
from tests.forecaster.frames import APART, JOINT, LOOKBACK, H, make_forecaster, make_frame

pytestmark = pytest.mark.usefixtures("few_recordings")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return make_frame()


@pytest.mark.parametrize(("options", "variates", "most"), [(JOINT, 3, 4), (APART, 1, 8)])
def test_a_recorded_pass_is_the_models_own(
    frame: pd.DataFrame, options: dict[str, object], variates: int, most: int
) -> None:
    model = make_forecaster(**options).fit(frame).fitted_.model
    passes = ReplayedPasses(model, variates)
    for count in range(1, most + 1):
        windows = torch.randn(count, variates, LOOKBACK, generator=torch.Generator().manual_seed(count))
        found = passes(windows)
        assert found is not None
        assert found.shape == (count, variates, H)
        torch.testing.assert_close(found, model.forecast(windows).values, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("doubles")
def test_a_pass_is_recorded_in_single_precision_whatever_the_default(frame: pd.DataFrame) -> None:
    passes = ReplayedPasses(make_forecaster(**APART).fit(frame).fitted_.model, 1)
    found = passes(torch.zeros(1, 1, LOOKBACK, dtype=torch.float32))
    assert found is not None
    assert found.dtype == torch.float32


def test_what_was_not_recorded_is_left_to_the_model(frame: pd.DataFrame) -> None:
    passes = ReplayedPasses(make_forecaster(**APART).fit(frame).fitted_.model, 1)
    assert passes(torch.zeros(9, 1, LOOKBACK)) is None
