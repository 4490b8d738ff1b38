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

_LEARNING_RATES = (3e-4, 1e-2)
_HIDDEN_SIZES = (16, 32, 64, 128)
_MAX_LEAPS = (2, 3, 4, 6)


@dataclass(frozen=True)
class Space:
    """Options to search, with the values of each."""

    model: LeapTS
    choices: dict[str, tuple[Any, ...]]
    defaults: dict[str, Any]  # the auto config
    fingerprint: str

    @classmethod
    def of(cls, model: LeapTS, panel: Panel) -> "Space":
        """Find the options that a model leaves open, for this data.

        Raises:
            ConfigError: When all options are given, or no steps can be held out for validation.
        """
        config = model.fit_config()
        given = config.model
        picked = plan_fit(panel, config)
        if picked.val_size == 0:
            raise ConfigError(
                f"val_size=0: tuning needs held-out steps; use longer series, or val_size= of at least {model.h}"
            )
        defaults = {
            "input_size": picked.model.input_size,
            "hidden_size": picked.model.hidden_size,
            "normalization": picked.model.normalization,
            "mixing": picked.model.mixing.kind,
            "max_leaps": getattr(picked.model.scheduling, "max_leaps", None),
            "learning_rate": picked.training.learning_rate,
        }
        choices: dict[str, tuple[Any, ...]] = {
            "input_size": _lookbacks(picked, panel, model.h),
            "hidden_size": _HIDDEN_SIZES,
            "normalization": ("mean", "last", "none"),
            "mixing": ("none", "mlp") if len(panel) > 1 and panel.is_aligned else ("none",),
            "max_leaps": _MAX_LEAPS,
            "learning_rate": _LEARNING_RATES,
        }
        fixed = set(given) | ({"max_leaps"} if "scheduling" in given else set())
        fixed |= {"mixing"} if {"series_embedding", "n_series", "state"} & set(given) else set()
        fixed |= {name for name in ("input_size", "learning_rate") if getattr(model, name) is not None}
        fixed |= {"learning_rate"} & set(model.training or {})
        choices = {name: values for name, values in choices.items() if name not in fixed and len(values) > 1}
        if not choices:
            raise ConfigError("all options are given, so there is nothing to search; leave some of them out")
        return cls(model, choices, {name: defaults[name] for name in choices}, _fingerprint(model, panel, choices))

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


def _lookbacks(picked: FitPlan, panel: Panel, h: int) -> tuple[int, ...]:
    """Return half to four times the default look-back, as far as the shortest series allows."""
    usual = picked.model.input_size
    room = (int(panel.lengths.min()) - picked.val_size - h) // 2
    return tuple(size for size in (max(1, usual // 2), usual, 2 * usual, 4 * usual) if size <= max(room, usual))


def _fingerprint(model: LeapTS, panel: Panel, choices: dict[str, tuple[Any, ...]]) -> str:
    """Return a digest of everything a search depends on."""
    digest = hashlib.sha256(json.dumps([model.get_params(), choices], sort_keys=True, default=str).encode())
    digest.update(panel.offsets.numpy().tobytes())
    digest.update(panel.values.numpy().tobytes())
    return digest.hexdigest()
