"""The search space: the options that are not given, and the values of each."""

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leapts.data.panel import Panel
from leapts.errors import ConfigError
from leapts.forecasting import LeapTS
from leapts.forecasting.auto_config import FitPlan, plan_fit

if TYPE_CHECKING:
    import optuna


@dataclass(frozen=True)
class Space:
    """Options to search, with the values of each."""

    model: LeapTS
    choices: dict[str, tuple[Any, ...]]  # of the learning rate, the bounds
    defaults: dict[str, Any]  # the auto config
    fingerprint: str

    @classmethod
    def of(cls, model: LeapTS, panel: Panel) -> "Space":
        """Find the options that a model leaves open, for this data.

        Raises:
            ConfigError: When all options are given, or no steps can be held out for validation.
        """
        config = model.fit_config()
        given, plan = config.model, plan_fit(panel, config)
        if plan.val_size == 0:
            raise ConfigError(
                f"val_size=0: tuning needs held-out steps; use longer series, or val_size= of at least {model.h}"
            )
        network = plan.model
        table: dict[str, tuple[Any, tuple[Any, ...]]] = {  # the default of each option, and its values
            "input_size": (network.input_size, _lookbacks(plan, panel, model.h)),
            "hidden_size": (network.hidden_size, (16, 32, 64, 128)),
            "normalization": (network.normalization, ("mean", "last", "none")),
            "mixing": (network.mixing.kind, ("none", "mlp") if len(panel) > 1 and panel.is_aligned else ("none",)),
            "max_leaps": (getattr(network.scheduling, "max_leaps", None), (2, 3, 4, 6)),
            "learning_rate": (plan.training.learning_rate, (3e-4, 1e-2)),
        }
        fixed = set(given) | ({"max_leaps"} if "scheduling" in given else set())
        fixed |= {"mixing"} if {"series_embedding", "n_series", "state"} & set(given) else set()
        fixed |= {name for name in ("input_size", "learning_rate") if getattr(model, name) is not None}
        fixed |= {"learning_rate"} & set(model.training or {})
        choices = {name: values for name, (_, values) in table.items() if name not in fixed and len(values) > 1}
        if not choices:
            raise ConfigError("all options are given, so there is nothing to search; leave some of them out")
        return cls(model, choices, {name: table[name][0] for name in choices}, _fingerprint(model, panel, choices))

    def proposal(self, trial: "optuna.Trial") -> dict[str, Any]:
        """Propose a value for each option."""
        return {
            name: trial.suggest_float(name, *values, log=True)
            if name == "learning_rate"
            else trial.suggest_categorical(name, values)
            for name, values in self.choices.items()
        }

    def forecaster(self, options: dict[str, Any]) -> LeapTS:
        """Build the model with these options."""
        inside = dict(self.model.model or {})
        outside: dict[str, Any] = {name: options[name] for name in ("input_size", "learning_rate") if name in options}
        inside |= {name: options[name] for name in ("hidden_size", "normalization") if name in options}
        if "mixing" in options:
            inside |= {"mixing": {"kind": options["mixing"]}, "series_embedding": options["mixing"] != "none"}
        if "max_leaps" in options:
            inside["scheduling"] = {"kind": "hierarchical", "max_leaps": options["max_leaps"]}
        params: dict[str, Any] = {**self.model.get_params(), **outside, "model": inside or None}
        return LeapTS(**params)


def _lookbacks(plan: FitPlan, panel: Panel, h: int) -> tuple[int, ...]:
    """Return half to four times the default look-back, as far as the shortest series allows."""
    usual = plan.model.input_size
    room = (int(panel.lengths.min()) - plan.val_size - h) // 2
    return tuple(size for size in (max(1, usual // 2), usual, 2 * usual, 4 * usual) if size <= max(room, usual))


def _fingerprint(model: LeapTS, panel: Panel, choices: dict[str, tuple[Any, ...]]) -> str:
    """Return a digest of everything a search depends on."""
    digest = hashlib.sha256(json.dumps([model.get_params(), choices], sort_keys=True, default=str).encode())
    digest.update(panel.offsets.numpy().tobytes())
    digest.update(panel.values.numpy().tobytes())
    return digest.hexdigest()
