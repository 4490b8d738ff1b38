"""The model's options: frozen, validated once, to and from JSON and TOML.

Nothing here imports torch, so that a command line can read a configuration at once. `leapts.assembly` turns options
into a model.
"""

import json
import tomllib
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from leapts.errors import ConfigError
from leapts.wording import nearest

Size = Annotated[int, Field(ge=1)]

# What is taken out of a window before it is looked at: its mean and spread, its last value and spread, its last value
# alone, or nothing.
NormalizationName = Literal["mean", "last", "shift", "none"]


class Options(BaseModel):
    """A frozen group of options; unknown names and impossible values are refused by name."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class RootOptions(Options):
    """Options that stand by themselves and explain what is wrong with them."""

    if not TYPE_CHECKING:  # the checker keeps the signature that the fields give

        def __init__(self, **options: Any) -> None:
            try:
                super().__init__(**options)
            except ValidationError as error:
                raise ConfigError(_explain(error, type(self).model_fields)) from None


class MlpMixing(Options):
    """Variates exchange through an MLP over all of them. Cost: 2 x variates x rank for each latent number."""

    kind: Literal["mlp"] = "mlp"
    rank: Size | None = Field(default=None, description="width of the exchange; by default all variates, at most 64")


class PooledMixing(Options):
    """Variates exchange through their mean: linear in their number, indifferent to their order."""

    kind: Literal["pooled"] = "pooled"


class NoMixing(Options):
    """Every variate for itself."""

    kind: Literal["none"] = "none"


class HierarchicalScheduling(Options):
    """The paper's controller: a scale, then a length."""

    kind: Literal["hierarchical"] = "hierarchical"
    max_leaps: Size = 4
    temperature: Annotated[float, Field(gt=0, description="of the Gumbel-softmax")] = 1.0


class FlatScheduling(Options):
    """Ablation: a length without a scale."""

    kind: Literal["flat"] = "flat"
    max_leaps: Size = 4


class MonteCarloScheduling(Options):
    """Ablation: random partitions of the horizon."""

    kind: Literal["monte_carlo"] = "monte_carlo"
    max_leaps: Size = 4
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0


class FixedStepScheduling(Options):
    """Ablation: always the same length, such as one period of the data."""

    kind: Literal["fixed"] = "fixed"
    step: Size


class NoScheduling(Options):
    """Ablation: the coarse forecast alone."""

    kind: Literal["none"] = "none"


class ControlledState(Options):
    """The paper's neural controlled differential equation."""

    kind: Literal["cde"] = "cde"
    field: Literal["factored", "full"] = "factored"
    rank: Size | None = Field(default=None, description="of the factored field; by default the hidden size")
    clusters: Size = Field(default=1, description="groups of variates, each with a vector field of its own")


class RecurrentState(Options):
    """Ablation: a plain recurrent network."""

    kind: Literal["rnn"] = "rnn"


class LongShortTermState(Options):
    """Ablation: an LSTM."""

    kind: Literal["lstm"] = "lstm"


Mixing = Annotated[MlpMixing | PooledMixing | NoMixing, Field(discriminator="kind")]
Scheduling = Annotated[
    HierarchicalScheduling | FlatScheduling | MonteCarloScheduling | FixedStepScheduling | NoScheduling,
    Field(discriminator="kind"),
]
State = Annotated[ControlledState | RecurrentState | LongShortTermState, Field(discriminator="kind")]


class ModelConfig(RootOptions):
    """All that decides what a model is, apart from its weights."""

    h: Size = Field(description="steps to forecast")
    input_size: Size = Field(description="steps of history a forecast looks back on")
    n_series: Size | None = Field(
        default=None, description="variates forecast together; none: any number, each for itself"
    )
    hidden_size: Annotated[int, Field(ge=1, le=256)] = 64
    encoder_layers: Annotated[int, Field(ge=1, le=4)] = 2
    head_layers: Annotated[int, Field(ge=1, le=4)] = 1
    normalization: NormalizationName = "mean"
    variate_identity: bool = Field(default=False, description="a learned vector for each variate")
    mixing: Mixing = NoMixing()
    scheduling: Scheduling = HierarchicalScheduling()
    state: State = ControlledState()
    control_size: Size = 16
    summary_size: Size = 16
    mask_sharpness: Annotated[float, Field(gt=0)] = 0.5
    temporal_clip: tuple[Annotated[float, Field(ge=0)], Annotated[float, Field(gt=0, le=1e6)]] = (0.05, 1.0)

    @property
    def clusters(self) -> int:
        """Groups of variates with dynamics of their own."""
        return self.state.clusters if isinstance(self.state, ControlledState) else 1

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Self:
        if self.temporal_clip[0] > self.temporal_clip[1]:
            raise ValueError(f"temporal_clip is (lowest, highest), not {self.temporal_clip}")
        clusters = self.clusters
        tells_apart = [
            name
            for name, used in {
                "mixing": self.mixing.kind != "none",
                "variate_identity": self.variate_identity,
                "state.clusters": clusters > 1,
            }.items()
            if used
        ]
        if tells_apart and self.n_series is None:
            raise ValueError(f"{', '.join(tells_apart)} needs n_series: how many variates are forecast together")
        if self.n_series is not None and clusters > self.n_series:
            raise ValueError(f"state.clusters is {clusters}, but there are only {self.n_series} variates to group")
        return self

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """Read options from TOML."""
        return cls(**_parsed(tomllib.loads, text, "TOML"))

    def to_toml(self) -> str:
        """Options as TOML; what is unset is left out."""
        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read options from JSON."""
        return cls(**_parsed(json.loads, text, "JSON"))

    def to_json(self) -> str:
        """Options as JSON."""
        return self.model_dump_json(indent=2)


class TrainingConfig(RootOptions):
    """How a model learns. All randomness follows from the seed and the step, so a run can stop and go on anywhere."""

    max_steps: Size
    batch_size: Size = Field(description="windows in a step")
    val_check_steps: Size = Field(description="steps between looks at the validation windows")
    patience: Annotated[int, Field(ge=0)] = Field(
        default=5, description="stop after so many looks without a better validation error; 0: never"
    )
    learning_rate: Annotated[float, Field(gt=0)] = 2e-3
    huber_delta: Annotated[float, Field(gt=0)] = Field(
        default=0.1, description="where the loss turns from squared to absolute, in standardised units"
    )
    gradient_clip: Annotated[float, Field(gt=0)] = 1.0
    teachers: Annotated[int, Field(ge=0)] = Field(
        default=0, description="models fitted first, whose mean forecast is half of what the model learns; 0: none"
    )
    random_seed: Annotated[int, Field(ge=0, lt=2**63)] = 1


def _parsed(parse: Callable[[str], Any], text: str, language: str) -> dict[str, Any]:
    try:
        options = parse(text)
    except ValueError as error:
        raise ConfigError(f"the options are not valid {language}: {error}") from None
    if not isinstance(options, dict):
        raise ConfigError(f"the options must be a table of names and values, not {options!r}")
    return options


def _explain(error: ValidationError, known: Collection[str]) -> str:
    """One line for each wrong option: its name, what is wrong, and the value given."""
    lines = []
    for problem in error.errors():
        name = ".".join(str(part) for part in problem["loc"])
        message = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            near = nearest(name, known) if len(problem["loc"]) == 1 else None
            message = f"there is no such option; did you mean {near}?" if near else "there is no such option"
        given = "" if problem["type"] in ("missing", "value_error") else f" (given: {problem['input']!r})"
        lines.append(f"{name}: {message}{given}" if name else message)
    return "; ".join(lines)
