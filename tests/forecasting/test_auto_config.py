"""What is plan says why, and the reason is the one that decided."""

import pandas as pd
import pytest

from leapts.config import FitConfig, TrainingConfig
from leapts.data.panel import Panel
from leapts.data.validation import read_panel
from leapts.errors import ConfigError
from leapts.forecasting.auto_config import AutoConfig, AutoOption, FitPlan, plan_fit

HALF = "half of the median series without the horizon (300 would be better)"


@pytest.mark.parametrize(
    ("freq", "steps", "h", "lookback", "reason"),
    [
        ("D", 500, 7, 28, "four seasons of 7"),
        ("D", 500, 14, 28, "twice the horizon"),
        ("15min", 2000, 48, 192, "four seasons of 96, cut to 192"),
        ("15min", 2000, 150, 300, "twice the horizon"),
        ("D", 610, 150, 155, HALF),
    ],
)
def test_the_look_back_is_plan_for_the_reason_given(freq: str, steps: int, h: int, lookback: int, reason: str) -> None:
    timestamps = pd.date_range("2024-01-01", periods=steps, freq=freq)
    panel = read_panel(pd.DataFrame({"ds": timestamps, "y": range(steps)}))
    plan = plan_fit(panel, FitConfig(h=h, input_size=None, val_size=None, model={}, training={}))
    assert AutoOption("input_size", lookback, reason) in plan.auto_config
    assert plan.model.input_size == lookback


def test_one_short_series_shortens_the_look_back_of_all_only_where_it_is_not_padded() -> None:
    lengths = {"a": 400, "b": 390, "new": 9}
    frames = [
        pd.DataFrame({"unique_id": name, "ds": pd.date_range("2024-01-01", periods=length), "y": range(length)})
        for name, length in lengths.items()
    ]

    def choose(series: str, *, pad_short: bool) -> AutoOption:
        panel = read_panel(pd.concat(frames)).select(list(series.split()))
        plan = plan_fit(panel, FitConfig(h=7, input_size=None, val_size=0, model={}, training={}, pad_short=pad_short))
        return next(one for one in plan.auto_config if one.option == "input_size")

    assert choose("a b new", pad_short=True) == AutoOption("input_size", 28, "four seasons of 7")
    assert choose("a b new", pad_short=False).value == 1
    assert choose("new", pad_short=True).reason.startswith("half of the median series")


def test_options_given_as_text_are_the_numbers_they_spell_and_others_are_refused() -> None:
    panel = read_panel(pd.DataFrame({"ds": range(100), "y": range(100)}))

    def choose(**training: object) -> TrainingConfig:
        model = {"state": {"kind": "cde", "clusters": "1"}}
        return plan_fit(panel, FitConfig(h=2, input_size=4, val_size=None, model=model, training=training)).training

    assert choose(max_steps="100", patience=None) == choose(max_steps=100)
    with pytest.raises(ConfigError, match="max_steps='many': must be a whole number"):
        choose(max_steps="many")


def test_a_look_back_of_one_value_is_taken_as_it_is() -> None:
    """Counted from its mean or its last value, nothing would be left to forecast from."""
    panel = read_panel(pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=60), "y": range(60)}))
    plan = plan_fit(panel, FitConfig(h=3, input_size=1, val_size=None, model={}, training={}))
    assert plan.model.normalization == "none"


def test_a_batch_is_for_the_windows_to_come_and_padded_ones_count() -> None:
    rows = [(name, step, step % 5) for name in range(200) for step in range(21)]
    panel = read_panel(pd.DataFrame(rows, columns=["unique_id", "ds", "y"]))

    def choose(panel: Panel, input_size: int, *, pad_short: bool) -> FitPlan:
        model = {"mixing": "none"}
        return plan_fit(
            panel, FitConfig(h=3, input_size=input_size, val_size=3, model=model, training={}, pad_short=pad_short)
        )

    padded, lone = choose(panel, 24, pad_short=True), choose(panel.select([0]), 12, pad_short=False)
    for plan, windows in ((padded, "2,600"), (lone, 4)):
        reasons = {one.option: one.reason for one in plan.auto_config}
        assert reasons["max_steps"].startswith(f"20 passes over {windows} windows")
        # A fit takes no more than there are; an update with more data takes as many as these.
        assert plan.training.batch_size == 512


def test_auto_config_prints_as_a_table_and_escapes_html() -> None:
    chosen = AutoConfig([AutoOption("input_size", 28, "four seasons of 7"), AutoOption("mixing", "<b>", "a & b")])
    lines = repr(chosen).splitlines()
    assert [line.split()[0] for line in lines] == ["option", "input_size", "mixing"]
    assert len({line.index(word) for line, word in zip(lines, ("reason", "four", "a &"), strict=True)}) == 1
    assert "<td>&lt;b&gt;</td><td>a &amp; b</td>" in chosen._repr_html_()
