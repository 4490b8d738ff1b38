"""What a run is: a frozen description whose hash is its key.

Two runs with one description are one run, in whatever suite they stand; so a description holds all that is chosen for
a run, and nothing else. What the code settles for all runs is told by the commit that a result names.
"""

import hashlib
import json
import math
from typing import Annotated, Any, Literal

from pydantic import Field

from leapts.config import ModelConfig, Options, RootOptions, Size, TrainingConfig

_KEY_LENGTH = 16

# The usual unit is a series' deviation, or the error of its naive forecast where series have levels of their own. That
# of OWA, for the latter alone, is what costs as much of OWA in every series; the level is each window's own; logs count
# errors in shares of the values themselves.
Unit = Literal["usual", "owa", "level", "log"]


class LeapTSDesign(Options):
    """LeapTS with the options of its `ModelConfig`, apart from look-back, horizon and variates, which the run gives."""

    kind: Literal["leapts"] = "leapts"
    options: dict[str, Any] = Field(default_factory=dict, description="of ModelConfig, where not its defaults")
    # Left out of the description where there is one, so that runs of before there could be more keep their keys.
    members: Size = Field(
        default=1, description="models with seeds of their own, whose mean is the forecast", exclude_if=lambda n: n == 1
    )

    def config(self, *, input_size: int, horizon: int, variates: int | None) -> ModelConfig:
        """The model's full options for a window."""
        return ModelConfig(**self.options, input_size=input_size, h=horizon, n_series=variates)


class PeerDesign(Options):
    """Another model under the same protocol."""

    kind: Literal["peer"] = "peer"
    name: str
    options: dict[str, Any] = Field(default_factory=dict, description="of the peer's own")


class NaiveDesign(Options):
    """The last value, for every step ahead: what has nothing to learn, and a model should be better than."""

    kind: Literal["naive"] = "naive"


Design = Annotated[LeapTSDesign | PeerDesign | NaiveDesign, Field(discriminator="kind")]


class Learning(Options):
    """How a model learns, counted in epochs, because the number of windows depends on the data and the horizon."""

    epochs: Annotated[float, Field(gt=0)] = 8
    batch_size: Size = Field(default=32, description="windows in a step, each with all variates")
    learning_rate: Annotated[float, Field(gt=0)] = 2e-3
    huber_delta: Annotated[float, Field(gt=0)] = 0.1
    patience: Annotated[int, Field(ge=0)] = Field(default=0, description="looks without a better one; 0: never stop")
    looks: Size = Field(default=16, description="looks at the validation windows over the whole course")
    # Left out of the description where it is the usual one, so that runs of before it could be chosen keep their keys.
    unit: Unit = Field(
        default="usual", description="what errors are counted in", exclude_if=lambda unit: unit == "usual"
    )
    unfinished: bool = Field(
        default=False,
        description="for M4, learn also from windows whose horizons go on after the ends of their series",
        exclude_if=lambda unfinished: not unfinished,
    )
    short_histories: bool = Field(
        default=False,
        description="for M4, learn also from windows with as little as a horizon of history, padded like short series",
        exclude_if=lambda short: not short,
    )
    teachers: Annotated[int, Field(ge=0)] = Field(
        default=0, description="models that teach, fitted first", exclude_if=lambda teachers: teachers == 0
    )

    def config(self, windows: int, seed: int) -> TrainingConfig:
        """The same in steps, for so many windows to learn from."""
        steps = max(1, round(self.epochs * math.ceil(windows / self.batch_size)))
        return TrainingConfig(
            max_steps=steps,
            batch_size=self.batch_size,
            val_check_steps=max(1, steps // self.looks),
            patience=self.patience,
            learning_rate=self.learning_rate,
            huber_delta=self.huber_delta,
            teachers=self.teachers,
            random_seed=seed,
        )


class Run(RootOptions):
    """One model fitted once to one set at one horizon."""

    dataset: str
    horizon: Size
    input_size: Size
    model: Design
    training: Learning
    seed: Annotated[int, Field(ge=0)] = 1

    @property
    def key(self) -> str:
        """The hash of the description: the same on every machine and in every version of Python."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:_KEY_LENGTH]

    def members(self) -> "list[Run]":
        """The models whose mean the run is, as runs of their own: itself, where it is one model.

        Members of the first seed have the seeds 1 to n, those of the second n + 1 to 2 n: no two runs share one.
        """
        if not isinstance(self.model, LeapTSDesign) or self.model.members == 1:
            return [self]
        count, alone = self.model.members, self.model.model_copy(update={"members": 1})
        seeds = range((self.seed - 1) * count + 1, self.seed * count + 1)
        return [self.model_copy(update={"model": alone, "seed": seed}) for seed in seeds]

    @property
    def model_name(self) -> str:
        """What the run fits."""
        match self.model:
            case LeapTSDesign():
                return "LeapTS"
            case NaiveDesign():
                return "Naive"
            case PeerDesign(name=name):
                return name

    def __str__(self) -> str:
        return f"{self.dataset} {self.input_size}->{self.horizon} {self.model_name} seed {self.seed}"


class AnalysisRun(Run):
    """A run whose schedules and vectors are analysed on the test windows after its errors are taken.

    It has a key of its own: a run of the same description that only took the errors does not stand in for it.
    """

    purpose: Literal["analysis"]


def parse_run(text: str) -> Run:
    """A run from its JSON, of whichever kind it is."""
    return (AnalysisRun if "purpose" in json.loads(text) else Run).model_validate_json(text)
