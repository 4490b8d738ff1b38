"""What a search may try: the options that a forecaster leaves open, with the values each may take."""

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leapts.data.panel import Panel
from leapts.errors import ConfigError
from leapts.forecaster import LeapTS
from leapts.forecaster.picking import Picked, pick_options

if TYPE_CHECKING:
    import optuna

_LEARNING_RATES = (3e-4, 1e-2)
_HIDDEN_SIZES = (16, 32, 64, 128)
_MAX_LEAPS = (2, 3, 4, 6)


@dataclass(frozen=True)
class Space:
    """What is searched: the options a forecaster leaves open, with the values each may take."""

    model: LeapTS
    choices: dict[str, tuple[Any, ...]]
    usual: dict[str, Any]  # what is picked without a search
    fingerprint: str

    @classmethod
    def of(cls, model: LeapTS, panel: Panel) -> "Space":
        """What the forecaster leaves open, on these data.

        Raises:
            ConfigError: When there is nothing to search, or nothing to judge by.
        """
        given = dict(model.model or {})
        picked = pick_options(
            panel,
            model.h,
            input_size=model.input_size,
            val_size=model.val_size,
            model=given,
            training={},
            pad_short=model.pad_short,
        )
        if picked.val_size == 0:
            raise ConfigError(
                "no steps are held out, so there is nothing to judge by; give longer series, or val_size= of at "
                f"least {model.h}"
            )
        usual = {
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
        fixed |= {"mixing"} if {"variate_identity", "n_series", "state"} & set(given) else set()
        fixed |= {name for name in ("input_size", "learning_rate") if getattr(model, name) is not None}
        fixed |= {"learning_rate"} & set(model.training or {})
        choices = {name: values for name, values in choices.items() if name not in fixed and len(values) > 1}
        if not choices:
            raise ConfigError("every option is given, so there is nothing to search; leave some of them open")
        return cls(model, choices, {name: usual[name] for name in choices}, _fingerprint(model, panel, choices))

    def proposal(self, trial: "optuna.Trial") -> dict[str, Any]:
        """One value for each option."""
        return {
            name: trial.suggest_float(name, *values, log=True)
            if name == "learning_rate"
            else trial.suggest_categorical(name, values)
            for name, values in self.choices.items()
        }

    def forecaster(self, options: dict[str, Any]) -> LeapTS:
        """The forecaster with these options."""
        inside = dict(self.model.model or {})
        outside: dict[str, Any] = {name: options[name] for name in ("input_size", "learning_rate") if name in options}
        inside |= {name: options[name] for name in ("hidden_size", "normalization") if name in options}
        if "mixing" in options:
            inside |= {"mixing": {"kind": options["mixing"]}, "variate_identity": options["mixing"] != "none"}
        if "max_leaps" in options:
            inside["scheduling"] = {"kind": "hierarchical", "max_leaps": options["max_leaps"]}
        params: dict[str, Any] = {**self.model.get_params(), **outside, "model": inside or None}
        return LeapTS(**params)


def _lookbacks(picked: Picked, panel: Panel, h: int) -> tuple[int, ...]:
    """Half to four times what would be picked, as far as the shortest series leaves windows to learn from."""
    usual = picked.model.input_size
    room = (int(panel.lengths.min()) - picked.val_size - h) // 2
    return tuple(size for size in (max(1, usual // 2), usual, 2 * usual, 4 * usual) if size <= max(room, usual))


def _fingerprint(model: LeapTS, panel: Panel, choices: dict[str, tuple[Any, ...]]) -> str:
    """Of everything the course of a search depends on."""
    digest = hashlib.sha256(json.dumps([model.get_params(), choices], sort_keys=True, default=str).encode())
    digest.update(panel.offsets.numpy().tobytes())
    digest.update(panel.values.numpy().tobytes())
    return digest.hexdigest()
