"""From a name to a peer that trains and forecasts as LeapTS does."""

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

# By what a run on two cores costs. PatchTST and TimesNet take minutes to hours an epoch at their published sizes.
CHEAP = ("DLinear", "TSMixer", "TimeMixer", "iTransformer", "N-HiTS", "N-BEATS", "TiDE", "Amplifier", "AMD")
COSTLY = ("PatchTST", "TimesNet")
BASELINES = CHEAP + COSTLY

_OWN: dict[str, Callable[..., nn.Module]] = {"Amplifier": Amplifier, "AMD": AMD}


class PeerModel(nn.Module):
    """A peer with the two faces that training and scoring know of LeapTS: `forward` to learn by, `forecast` to ask.

    Dropout belongs to learning alone. Its randomness comes from the generator of the step, as exploration does in
    LeapTS, so that a run is the same whatever was drawn before it.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(
        self, history: Float[Tensor, "batch variates lookback"], generator: Generator | None = None
    ) -> Float[Tensor, "batch variates horizon"]:
        """The forecast; a generator means that the peer is learning."""
        self.network.train(generator is not None)
        if generator is None:
            return self._asked(history)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(generator.initial_seed())
            return self._asked(history)

    @torch.inference_mode()
    def forecast(self, history: Float[Tensor, "batch variates lookback"]) -> Forecast:
        """The forecast without gradients or dropout."""
        self.network.eval()
        return Forecast(self._asked(history), None, None)

    def _asked(self, history: Tensor) -> Tensor:
        values: Tensor = self.network(history)
        return values


def build_peer(
    name: str, options: dict[str, Any], *, input_size: int, horizon: int, variates: int | None, seed: int
) -> PeerModel:
    """A peer with fresh weights.

    Args:
        name: One of `BASELINES`.
        options: Its own, where not its defaults.
        input_size: The look-back.
        horizon: The steps to forecast.
        variates: How many series are forecast together; none: each for itself.
        seed: What its weights are drawn from.

    Raises:
        ConfigError: When there is no such peer, or it has no such option.
        ImportError: When it needs neuralforecast, which is not installed.
    """
    if name not in BASELINES:
        raise ConfigError(f"there is no peer {name!r}; there are {', '.join(BASELINES)}")
    sizes = {"input_size": input_size, "horizon": horizon, "variates": variates or 1}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if name in MODULES:
            return PeerModel(build_neural(name, options, **sizes, seed=seed))
        try:
            return PeerModel(_OWN[name](**sizes, **options))
        except TypeError as error:
            raise ConfigError(f"{name}: {error}") from None


def is_available(name: str) -> bool:
    """Whether a peer can be built here."""
    return name in _OWN or (name in MODULES and is_installed())
