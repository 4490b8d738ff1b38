"""A short share of the metamorphic tests."""

from pathlib import Path

import pytest

from leapts.data.scaling import Scaler
from leapts_qa import metamorphic
from leapts_qa.metamorphic_relations import PREDICT


@pytest.mark.parametrize(("unit", "examples"), [("predict seed 0", 30), ("fit seed 0", 6)])
def test_forecasts_change_as_the_data_do(unit: str, examples: int, tmp_path: Path) -> None:
    outcome = metamorphic.run(unit, tmp_path, examples=examples)
    assert not outcome.failures
    assert outcome.cases == examples
    assert len(outcome.ends) >= 3


@pytest.mark.parametrize("law", PREDICT)
def test_every_relation_holds_for_every_kind_of_model(law: str) -> None:
    for freq in metamorphic.KINDS:
        assert metamorphic.check_predict(metamorphic.Example(law, freq, (20, 20), seed=7)) <= metamorphic.TOLERANCE


def test_lost_precision_is_detected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Scaler, "from_last_values", lambda scaler, _: scaler)
    outcome = metamorphic.run("predict seed 0", tmp_path, examples=40)
    assert "scaled and offset" in outcome.failures[0]
