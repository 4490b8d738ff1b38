"""Baselines of neuralforecast: its modules, without its training.

Around a module the package cuts windows, scales them if asked to, and draws batches; here the benchmark does all that.
Only the `forward` of the module is used, which takes a batch as a dictionary.
"""

import importlib.util
import logging
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from leapts.errors import ConfigError

# The name of a baseline, and its class in the package.
MODULES = {
    "DLinear": "DLinear",
    "TSMixer": "TSMixer",
    "TimeMixer": "TimeMixer",
    "iTransformer": "iTransformer",
    "N-HiTS": "NHITS",
    "N-BEATS": "NBEATS",
    "TiDE": "TiDE",
    "PatchTST": "PatchTST",
    "TimesNet": "TimesNet",
}

# An option of the benchmark: TimesNet, and TiDE on most data sets, expect windows with mean 0 and standard deviation 1;
# the package scales them outside of its modules.
STANDARDISED = "standardised"
_LEAST_DEVIATION = 1e-5


class NeuralNetwork(nn.Module):
    """A module of neuralforecast that takes histories in the layout of the benchmark."""

    def __init__(self, module: nn.Module, *, is_multivariate: bool, is_standardised: bool) -> None:
        super().__init__()
        self.module = module
        self.is_multivariate = is_multivariate
        self.is_standardised = is_standardised

    def forward(self, history: Float[Tensor, "batch variates lookback"]) -> Float[Tensor, "batch variates horizon"]:
        """Forecast all series at once, or each independently, as the module requires."""
        if not self.is_standardised:
            return self._forecast(history)
        mean = history.mean(2, keepdim=True)
        deviation = history.std(2, keepdim=True, correction=0).clamp(min=_LEAST_DEVIATION)
        return self._forecast((history - mean) / deviation) * deviation + mean

    def _forecast(self, history: Tensor) -> Tensor:
        batch, variates, lookback = history.shape
        rows = history if self.is_multivariate else history.reshape(batch * variates, 1, lookback)
        parts = {
            "insample_y": rows.transpose(1, 2).contiguous(),
            "insample_mask": torch.ones_like(rows).transpose(1, 2),
            "futr_exog": None,
            "hist_exog": None,
            "stat_exog": None,
        }
        ahead: Tensor = self.module(parts)
        return ahead.transpose(1, 2).reshape(batch, variates, -1)


def build_neural(
    name: str, options: dict[str, Any], *, input_size: int, horizon: int, variates: int, seed: int
) -> NeuralNetwork:
    """Build the module of neuralforecast with this name; the option `STANDARDISED` is handled here.

    Raises:
        ConfigError: When it refuses an option.
        ImportError: When neuralforecast is not installed.
    """
    if not is_installed():
        raise ImportError(f"{name} needs: pip install 'leapts[neural]'")
    # Suppress the package's message about its seed.
    for chatty in ("lightning_fabric", "lightning.fabric", "pytorch_lightning"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    import neuralforecast.models as models

    kind = getattr(models, MODULES[name])
    own = {option: value for option, value in options.items() if option != STANDARDISED}
    joint: bool = kind.MULTIVARIATE
    together = {"n_series": variates} if joint else {}
    try:
        module: nn.Module = kind(h=horizon, input_size=input_size, random_seed=seed, **together, **own)
    except TypeError as error:
        raise ConfigError(f"{name}: {error}") from None
    return NeuralNetwork(module, is_multivariate=joint, is_standardised=options.get(STANDARDISED, False))


def is_installed() -> bool:
    """Check whether neuralforecast is installed."""
    return importlib.util.find_spec("neuralforecast") is not None
