"""Options: frozen, refused by name when impossible, unchanged through TOML and JSON."""

from typing import Any

import pytest
from pydantic import ValidationError

from leapts.config import ModelConfig
from leapts.errors import ConfigError, LeapTSError
from leapts.parts import ControlledState, HierarchicalScheduling, MlpMixing
from tests.model.variants import BRANCHES, make_config


@pytest.mark.parametrize(("schedule", "state"), [*BRANCHES, ("none", "factored")])
def test_options_survive_toml_and_json(schedule: str, state: str) -> None:
    config = make_config(schedule, state, mixing={"kind": "mlp", "rank": 3}, normalization="last")
    assert ModelConfig.from_toml(config.to_toml()) == config
    assert ModelConfig.from_json(config.to_json()) == config


def test_defaults_are_the_papers_model() -> None:
    config = ModelConfig(h=24, input_size=96)
    assert isinstance(config.scheduling, HierarchicalScheduling)
    assert isinstance(config.state, ControlledState)
    assert config.clusters == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"h": 0}, ["h=0: must be at least 1"]),
        ({"input_size": -5}, ["input_size=-5"]),
        ({"input_size": 100_001}, ["input_size=100001", "100000"]),
        ({"h": "abc"}, ["h='abc': must be a whole number"]),
        ({"h": 2.5}, ["h=2.5: must be a whole number"]),
        ({"h": 0, "n_series": "x"}, ["h=0", "n_series='x'"]),
        ({"mixing": 3}, ["mixing=3: must be a table of options"]),
        ({"mixing": {"kind": "x"}}, ["mixing=", "'mlp', 'pooled', 'none'"]),
        ({"mask_sharpness": float("nan")}, ["mask_sharpness=nan: must be a finite number"]),
        ({"series_embedding": "perhaps"}, ["series_embedding='perhaps': must be true or false"]),
        ({"temporal_clip": (1, 2, 3)}, ["temporal_clip=(1, 2, 3)", "at most 2 values"]),
        ({"hidden_size": 257}, ["hidden_size=257", "256"]),
        ({"encoder_layers": 5}, ["encoder_layers=5", "4"]),
        ({"hiden_size": 8}, ["hiden_size:", "did you mean hidden_size?"]),
        ({"scheduling": {"kind": "flat", "step": 3}}, ["scheduling.step: there is no such option"]),
        ({"normalization": "median"}, ["normalization='median'", "'mean', 'last', 'shift' or 'none'"]),
        ({"scheduling": {"kind": "greedy"}}, ["scheduling=", "hierarchical", "greedy"]),
        ({"scheduling": {"kind": "fixed"}}, ["scheduling.step: must be given"]),
        ({"scheduling": {"kind": "hierarchical", "temperature": 0}}, ["temperature=0", "greater than 0"]),
        ({"mask_sharpness": 0.0}, ["mask_sharpness=0.0", "greater than 0"]),
        ({"temporal_clip": (0.9, 0.1)}, ["temporal_clip", "(0.9, 0.1)"]),
        ({"mixing": {"kind": "mlp"}}, ["mixing needs n_series"]),
        ({"series_embedding": True}, ["series_embedding needs n_series"]),
        ({"n_series": 2, "state": {"kind": "cde", "clusters": 3}}, ["state.clusters is 3", "only 2 series"]),
    ],
)
def test_impossible_options_are_refused_by_name(options: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ConfigError) as refused:
        ModelConfig(**{"h": 24, "input_size": 96, **options})
    for word in words:
        assert word in str(refused.value)
    assert "Input should" not in str(refused.value)
    assert isinstance(refused.value, LeapTSError)


@pytest.mark.parametrize("text", ["h = ", "[1", "h = 24\nh = 25"])
def test_broken_toml_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="not valid TOML"):
        ModelConfig.from_toml(text)


def test_broken_json_is_refused() -> None:
    with pytest.raises(ConfigError, match="not valid JSON"):
        ModelConfig.from_json("{")
    with pytest.raises(ConfigError, match="must be a table"):
        ModelConfig.from_json("[]")


def test_options_are_frozen() -> None:
    with pytest.raises(ValidationError):
        ModelConfig(h=24, input_size=96).h = 3


def test_equal_options_have_equal_hashes() -> None:
    one, other = (ModelConfig(h=24, input_size=96, n_series=3, mixing=MlpMixing(rank=2)) for _ in range(2))
    assert hash(one) == hash(other)
