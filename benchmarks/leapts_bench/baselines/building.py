"""Build a baseline by name, with the training and inference interface of LeapTS."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from leapts.errors import ConfigError
from leapts.model.network import Forecast
from leapts_bench.baselines.amd import AMD
from leapts_bench.baselines.amplifier import Amplifier
from leapts_bench.baselines.neural import MODULES, build_neural, is_installed

# By the cost of a run on two cores. PatchTST and TimesNet take minutes to hours per epoch at their published sizes.
CHEAP = ("DLinear", "TSMixer", "TimeMixer", "iTransformer", "N-HiTS", "N-BEATS", "TiDE", "Amplifier", "AMD")
COSTLY = ("PatchTST", "TimesNet")
BASELINES = CHEAP + COSTLY

_OWN: dict[str, Callable[..., nn.Module]] = {"Amplifier": Amplifier, "AMD": AMD}


class BaselineModel(nn.Module):
    """A baseline with the interface of LeapTS: `forward` for training, `forecast` for inference.

    Dropout is for training only. Its randomness comes from the generator of the step, like exploration noise in
    LeapTS, so that a run does not depend on earlier draws.
    """

    median = 0

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.levels: Tensor
        self.register_buffer("levels", torch.tensor([0.5]), persistent=False)

    def forward(
        self,
        history: Float[Tensor, "batch variates lookback"],
        generator: Generator | None = None,
        covariates: None = None,  # noqa: ARG002
    ) -> Float[Tensor, "batch variates horizon"]:
        """Forecast; with a generator, in training mode."""
        self.network.train(generator is not None)
        if generator is None:
            return self._asked(history)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(generator.initial_seed())
            return self._asked(history)

    @torch.inference_mode()
    def forecast(
        self,
        history: Float[Tensor, "batch variates lookback"],
        *,
        quantiles: bool = False,  # noqa: ARG002
        covariates: None = None,  # noqa: ARG002
    ) -> Forecast:
        """Forecast points without gradients or dropout."""
        self.network.eval()
        return Forecast(self._asked(history), None, None)

    def _asked(self, history: Tensor) -> Tensor:
        values: Tensor = self.network(history)
        return values


def build_baseline(
    name: str, options: dict[str, Any], *, input_size: int, horizon: int, variates: int | None, seed: int
) -> BaselineModel:
    """Build a baseline with initial weights.

    Args:
        name: One of `BASELINES`.
        options: Options of the model that differ from its defaults.
        input_size: The look-back.
        horizon: The steps to forecast.
        variates: Number of series of a multivariate model; None for a univariate one.
        seed: The seed of the weights.

    Raises:
        ConfigError: When there is no such baseline or option.
        ImportError: When it needs neuralforecast, which is not installed.
    """
    if name not in BASELINES:
        raise ConfigError(f"there is no baseline {name!r}; there are {', '.join(BASELINES)}")
    sizes = {"input_size": input_size, "horizon": horizon, "variates": variates or 1}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if name in MODULES:
            return BaselineModel(build_neural(name, options, **sizes, seed=seed))
        try:
            return BaselineModel(_OWN[name](**sizes, **options))
        except TypeError as error:
            raise ConfigError(f"{name}: {error}") from None


def is_available(name: str) -> bool:
    """Check whether a baseline can be built here."""
    return name in _OWN or (name in MODULES and is_installed())
