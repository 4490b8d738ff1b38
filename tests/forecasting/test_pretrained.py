"""The pretrained network in a fit: fine-tuned, or a member of the forecast where validation prefers it."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from leapts import LeapTS
from leapts.config import FitConfig
from leapts.data.panel import Panel
from leapts.errors import ConfigError
from leapts.forecasting import pretrained
from leapts.forecasting.fit import fit
from leapts.forecasting.held_out import held_out_part, validation_windows
from leapts.forecasting.networks import load_universal
from leapts.forecasting.predictor import Predictor
from leapts.forecasting.pretrained import FEW_WINDOWS, FITTED, MEAN, PRETRAINED, with_pretrained
from leapts.persistence.onnx import exported_program

H, STEPS = 4, 60


def _frame(steps: int = STEPS) -> pd.DataFrame:
    noise = np.random.default_rng(0).normal(size=(2, steps))
    values = 20 + 5 * np.sin(2 * np.pi * np.arange(steps) / 7) + noise
    days = pd.date_range("2024", periods=steps)
    return pd.concat([pd.DataFrame({"unique_id": f"s{row}", "ds": days, "y": values[row]}) for row in range(2)])


def _panel(steps: int = STEPS) -> Panel:
    return LeapTS(H).read(_frame(steps))


def _own(steps: int = STEPS) -> Predictor:
    return fit(_panel(steps), FitConfig(h=H, init="random", training={"max_steps": 2}))


def _chosen(monkeypatch: pytest.MonkeyPatch, own: Predictor, errors: dict[str, float], val_size: int = 12) -> Predictor:
    monkeypatch.setattr(pretrained, "_validation_errors", lambda *_: (errors, errors))
    return with_pretrained(own, _panel(), val_size)


@pytest.mark.parametrize(
    ("errors", "kind", "name"),
    [
        ((1.0, 0.995, 0.992), "own", FITTED),
        ((1.0, 0.98, 0.985), "pretrained", PRETRAINED),
        ((1.0, 1.2, 0.985), "ensemble", MEAN),
    ],
)
def test_validation_chooses_by_the_margin_and_says_so(
    monkeypatch: pytest.MonkeyPatch, errors: tuple[float, ...], kind: str, name: str
) -> None:
    monkeypatch.setattr(pretrained, "FEW_WINDOWS", 4)
    found = _chosen(monkeypatch, _own(), dict(zip((FITTED, PRETRAINED, MEAN), errors, strict=True)))
    assert found.config.network.kind == kind
    assert (found.auto_config[-1].option, found.auto_config[-1].value) == ("network", name)


@pytest.mark.parametrize(("errors", "name"), [((0.5, 1.0, 1.0), MEAN), ((0.5, 0.98, 1.0), PRETRAINED), ((), MEAN)])
def test_few_validation_windows_cannot_choose_the_network_they_trained(errors: tuple[float, ...], name: str) -> None:
    found = dict(zip((FITTED, PRETRAINED, MEAN), errors, strict=True)) if errors else {}
    assert pretrained._choice(found, FEW_WINDOWS - 1) == name
    assert pretrained._choice(found or {FITTED: 1.0, PRETRAINED: 1.0, MEAN: 1.0}, FEW_WINDOWS) == FITTED


def test_the_mean_lies_between_both_and_survives_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own, mean = _own(), _chosen(monkeypatch, own := _own(), {FITTED: 1.0, PRETRAINED: 1.0, MEAN: 0.5})
    alone = _chosen(monkeypatch, own, {FITTED: 1.0, PRETRAINED: 0.5, MEAN: 1.0})
    panel = _panel()
    parts = [one.predict(one.windows(panel)).quantiles for one in (own, alone, mean)]
    assert torch.allclose((parts[0] + parts[1]) / 2, parts[2], rtol=1e-4)
    model = LeapTS(H)
    model._keep(mean)
    model.save(tmp_path / "model")
    loaded = LeapTS.load(tmp_path / "model")
    forecast, trace = loaded.predict(_frame(), level=[80], return_trace=True)
    assert forecast.equals(model.predict(_frame(), level=[80]))
    assert trace.groupby("unique_id")["length"].sum().tolist() == [H, H]
    with pytest.raises(ConfigError, match="init='random'"):
        exported_program(mean)
    updated = loaded.update(_frame(), max_steps=1).predictor_.model.state_dict()
    for name, weights in load_universal().state_dict().items():
        assert torch.equal(updated[f"pretrained.model.{name}"], weights)


@pytest.mark.parametrize("steps", [30, 60])
def test_all_validation_targets_of_the_mean_are_held_out(steps: int) -> None:
    panel, val_size = Panel.from_matrix(torch.arange(2.0 * steps, dtype=torch.float64).view(2, steps)), 10
    mean = pretrained._mean(_own(), panel)
    windows = validation_windows(mean, held_out_part(panel, val_size, mean.config), val_size)
    assert windows is not None
    assert len(windows) == 2 * (val_size - H + 1)
    targets = mean.scaling(panel)[0]
    found = windows.gather(torch.arange(len(windows))).target
    last = windows.gather(torch.tensor([val_size - H])).target.amax()
    step = 1 / float(targets.std[0])  # of the first series, scaled
    assert float(found[0].min()) == pytest.approx(float(last) - (val_size - 1) * step, rel=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {"init": "random"},
        {"input_size": 8},
        {"loss": "huber"},
        {"val_size": 0},
        {"model": {"hidden_size": 8}},
        {"training": {"max_steps": 5}},
        {"h": 1001},
    ],
)
def test_options_that_ask_for_a_network_keep_it(options: dict[str, Any]) -> None:
    assert FitConfig(h=H, init="auto", training={"random_seed": 3}).may_use_pretrained
    assert not FitConfig(**{"h": H, "init": "auto", **options}).may_use_pretrained


def test_fine_tuning_keeps_the_pretrained_weights_where_steps_do_harm(tmp_path: Path) -> None:
    model = LeapTS(H, init="pretrained", max_steps=2, batch_size=8, learning_rate=0.5).fit(_frame())
    assert model.report_.best_step == 0
    zero_shot = LeapTS.pretrained(H).fit(_frame())
    np.testing.assert_allclose(model.predict()["LeapTS"], zero_shot.predict()["LeapTS"], rtol=1e-4)
    zero_shot.save(tmp_path / "zero")
    assert LeapTS.load(tmp_path / "zero").predict(level=[80]).equals(zero_shot.predict(level=[80]))


def test_fine_tuning_lowers_the_validation_error_of_a_shape_it_can_learn() -> None:
    values = np.tile([0.0, 0.0, 1.0, 0.0, 9.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0], 20)
    frame = pd.DataFrame({"unique_id": 1, "ds": pd.date_range("2024", periods=len(values)), "y": values})
    report = LeapTS(11, init="pretrained", max_steps=12, training={"val_check_steps": 12}).fit(frame).report_
    assert report.best_step == 12
    before = LeapTS(11, init="pretrained", max_steps=1, learning_rate=1e-9).fit(frame).report_
    assert report.best_loss is not None
    assert before.best_loss is not None
    assert report.best_loss < before.best_loss


def test_too_short_series_are_not_fine_tuned() -> None:
    model = LeapTS(H, init="pretrained").fit(_frame(9))
    assert model.report_.steps == 0
    assert ("max_steps", 0) in [(one.option, one.value) for one in model.auto_config_]


@pytest.mark.parametrize("options", [{"input_size": 8}, {"model": {"hidden_size": 8}}, {"loss": "huber"}])
def test_fine_tuning_refuses_options_of_another_network(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        LeapTS(H, init="pretrained", **options).fit(_frame())
