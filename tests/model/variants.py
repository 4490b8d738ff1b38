"""Variants of the network for tests, and small models of them."""

from typing import Any

import torch

from leapts.config import ModelConfig
from leapts.model import LeapTSModel
from leapts.model.build import build_model

LOOKBACK, HORIZON, N_SERIES = 16, 12, 5
CLUSTERS = (1, 0, 2, 0, 1)

SCHEDULES: dict[str, dict[str, Any]] = {
    "hierarchical": {"kind": "hierarchical", "max_leaps": 4},
    "flat": {"kind": "flat", "max_leaps": 4},
    "monte_carlo": {"kind": "monte_carlo", "max_leaps": 5},
    "fixed": {"kind": "fixed", "step": 5},
}
STATES: dict[str, dict[str, Any]] = {
    "factored": {"kind": "cde", "field": "factored"},
    "full": {"kind": "cde", "field": "full"},
    "clustered": {"kind": "cde", "field": "factored", "clusters": 3},
    "clustered_full": {"kind": "cde", "field": "full", "clusters": 3},
    "rnn": {"kind": "rnn"},
    "lstm": {"kind": "lstm"},
}
BRANCHES = [(schedule, state) for schedule in SCHEDULES for state in STATES]


def make_config(schedule: str = "hierarchical", state: str = "factored", **options: Any) -> ModelConfig:
    """Options of a small model."""
    base: dict[str, Any] = {
        "h": HORIZON,
        "input_size": LOOKBACK,
        "n_series": N_SERIES,
        "hidden_size": 8,
        "control_size": 4,
        "summary_size": 3,
        "scheduling": {"kind": "none"} if schedule == "none" else SCHEDULES[schedule],
        "state": STATES[state],
    }
    return ModelConfig(**{**base, **options})


def make_model(schedule: str = "hierarchical", state: str = "factored", seed: int = 0, **options: Any) -> LeapTSModel:
    """A small model with large weights, so that its rows have different schedules."""
    config = make_config(schedule, state, **options)
    model = build_model(config, seed=seed, clusters=CLUSTERS if config.clusters > 1 else None)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.5)
    return model


def make_history(batch: int = 7, seed: int = 0, *, n_series: int = N_SERIES, lookback: int = LOOKBACK) -> torch.Tensor:
    """Random walks."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, n_series, lookback, generator=generator).cumsum(2)
