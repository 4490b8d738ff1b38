"""Options of the parts of a network: how series are mixed, leaps are scheduled, and the state is carried."""

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from leapts.registration import SCHEDULERS, STATE_CELLS

Size = Annotated[int, Field(ge=1)]


class Options(BaseModel):
    """A frozen group of options; unknown names and impossible values are refused by name."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class MlpMixing(Options):
    """Mixing by an MLP over all series. Cost: 2 x series x rank for each latent number."""

    kind: Literal["mlp"] = "mlp"
    rank: Size | None = Field(default=None, description="width of the MLP; by default the number of series, at most 64")


class PooledMixing(Options):
    """Mixing by the mean of all series: linear in their number, independent of their order."""

    kind: Literal["pooled"] = "pooled"


class NoMixing(Options):
    """No mixing: the model is univariate (channel independent)."""

    kind: Literal["none"] = "none"


class CovariateChannels(Options):
    """Channels of the covariates of a network: one for a number, and one for each of several categories."""

    future: Size = Field(default=1, description="channels that are known over the horizon")
    past: Annotated[int, Field(ge=0)] = Field(default=0, description="channels that are known up to the forecast")
    static: Size = Field(default=1, description="channels that a series has once")


class SchedulingOptions(Options):
    """Base of the options of every scheduler; a subclass gives `kind` its one value."""

    draws_at_random: ClassVar[bool] = False  # also without a generator, so that a forecast depends on its batch
    kind: str


class StateOptions(Options):
    """Base of the options of every state cell; a subclass gives `kind` its one value."""

    kind: str


class HierarchicalScheduling(SchedulingOptions):
    """The paper's controller: a scale, then a length."""

    kind: Literal["hierarchical"] = "hierarchical"
    max_leaps: Size = 4
    temperature: Annotated[float, Field(gt=0, description="of the Gumbel-softmax")] = 1.0


class FlatScheduling(SchedulingOptions):
    """Ablation: a length without a scale."""

    kind: Literal["flat"] = "flat"
    max_leaps: Size = 4


class MonteCarloScheduling(SchedulingOptions):
    """Ablation: random partitions of the horizon."""

    draws_at_random: ClassVar[bool] = True
    kind: Literal["monte_carlo"] = "monte_carlo"
    max_leaps: Size = 4
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0


class FixedStepScheduling(SchedulingOptions):
    """Ablation: always the same length, such as one period of the data."""

    kind: Literal["fixed"] = "fixed"
    step: Size


class NoScheduling(SchedulingOptions):
    """Ablation: the coarse forecast alone."""

    kind: Literal["none"] = "none"


class ControlledState(StateOptions):
    """The paper's neural controlled differential equation."""

    kind: Literal["cde"] = "cde"
    field: Literal["factored", "full"] = "factored"
    rank: Size | None = Field(default=None, description="of the factored field; by default the hidden size")
    clusters: Size = Field(default=1, description="groups of series, each with its own vector field")


class RecurrentState(StateOptions):
    """Ablation: a plain recurrent network."""

    kind: Literal["rnn"] = "rnn"


class LongShortTermState(StateOptions):
    """Ablation: an LSTM."""

    kind: Literal["lstm"] = "lstm"


class OwnNetwork(Options):
    """The network that a fit trains from random weights."""

    kind: Literal["own"] = "own"

    def min_history(self, input_size: int, h: int, *, is_masked: bool) -> int | None:  # noqa: ARG002
        """Return the known steps that a look-back needs; None if no step may be unknown."""
        return input_size if is_masked else None


class PretrainedNetwork(Options):
    """The universal network, as it was pretrained or fine-tuned."""

    kind: Literal["pretrained"] = "pretrained"

    def min_history(self, input_size: int, h: int, *, is_masked: bool) -> int | None:  # noqa: ARG002
        """Return the known steps that a look-back needs: four horizons."""
        return min(input_size, 4 * h)


class EnsembleNetwork(Options):
    """The mean of the quantiles of a network of the fit and of the pretrained one."""

    kind: Literal["ensemble"] = "ensemble"
    lookback: Size = Field(description="steps of history that the network of the fit sees")

    def min_history(self, input_size: int, h: int, *, is_masked: bool) -> int | None:  # noqa: ARG002
        """Return the known steps that a look-back needs: those of the network of the fit."""
        return self.lookback


Network = Annotated[OwnNetwork | PretrainedNetwork | EnsembleNetwork, Field(discriminator="kind")]
Mixing = Annotated[MlpMixing | PooledMixing | NoMixing, Field(discriminator="kind")]
SCHEDULERS.declare(HierarchicalScheduling, FlatScheduling, MonteCarloScheduling, FixedStepScheduling, NoScheduling)
STATE_CELLS.declare(ControlledState, RecurrentState, LongShortTermState)
