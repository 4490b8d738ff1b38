"""A benchmark run: a frozen description whose hash is its key.

Two runs with the same description are one run, whichever suites contain them. A description holds every choice made for
a run, and nothing else; what the code fixes for all runs is recorded by the commit in the result.
"""

import hashlib
import json
import math
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from leapts.config import ModelConfig, RootOptions, TrainingConfig
from leapts.parts import Options, Size

_KEY_LENGTH = 16

# Names of model options in keys and results files, where they differ from today's.
_STORED_NAMES = {"series_embedding": "variate_identity"}
_NAMES_TODAY = {stored: today for today, stored in _STORED_NAMES.items()}

# The unit of the training loss. usual: the standard deviation of a series, or the error of its naive forecast where
# series have different levels; owa: weighted so that equal losses cost equal OWA (for the latter only); level: that
# of each window; log: relative errors.
Unit = Literal["usual", "owa", "level", "log"]


class LeapTSDesign(Options):
    """LeapTS with the options of `ModelConfig`, except look-back, horizon and number of series."""

    kind: Literal["leapts"] = "leapts"
    options: dict[str, Any] = Field(
        default_factory=dict, description="options of ModelConfig that are not its defaults"
    )
    # Left out of the description of a single model, so that the keys of earlier runs stay valid.
    members: Size = Field(
        default=1, description="networks of an ensemble, with different seeds", exclude_if=lambda n: n == 1
    )

    @field_validator("options", mode="before")
    @classmethod
    def _named_as_today(cls, options: dict[str, Any]) -> dict[str, Any]:
        return {_NAMES_TODAY.get(name, name): value for name, value in options.items()}

    def config(self, *, input_size: int, horizon: int, variates: int | None) -> ModelConfig:
        """Build the full model options for a window."""
        return ModelConfig(**self.options, input_size=input_size, h=horizon, n_series=variates)


class BaselineDesign(Options):
    """A baseline under the same protocol."""

    kind: Literal["peer"] = "peer"
    name: str
    options: dict[str, Any] = Field(default_factory=dict, description="options of the baseline")


class NaiveDesign(Options):
    """The naive forecast: the last value, repeated for every step ahead."""

    kind: Literal["naive"] = "naive"


Design = Annotated[LeapTSDesign | BaselineDesign | NaiveDesign, Field(discriminator="kind")]


class Learning(Options):
    """Training options, counted in epochs: the number of windows depends on the data and the horizon."""

    epochs: Annotated[float, Field(gt=0)] = 8
    batch_size: Size = Field(default=32, description="windows per step, each with all series")
    learning_rate: Annotated[float, Field(gt=0)] = 2e-3
    huber_delta: Annotated[float, Field(gt=0)] = 0.1
    patience: Annotated[int, Field(ge=0)] = Field(
        default=0, description="validation checks without improvement before stopping; 0: never stop"
    )
    looks: Size = Field(default=16, description="validation checks over the whole training")
    # Left out of the description where it is the default, so that the keys of earlier runs stay valid.
    unit: Unit = Field(
        default="usual", description="unit of the training loss", exclude_if=lambda unit: unit == "usual"
    )
    unfinished: bool = Field(
        default=False,
        description="for M4, also train on windows whose horizon ends after the series",
        exclude_if=lambda unfinished: not unfinished,
    )
    short_histories: bool = Field(
        default=False,
        description="for M4, also train on windows with at least one horizon of history, padded like short series",
        exclude_if=lambda short: not short,
    )
    teachers: Annotated[int, Field(ge=0)] = Field(
        default=0,
        description="teachers of knowledge distillation, trained first",
        exclude_if=lambda teachers: teachers == 0,
    )

    def config(self, windows: int, seed: int) -> TrainingConfig:
        """Convert to training options in steps, for a number of training windows."""
        steps = max(1, round(self.epochs * math.ceil(windows / self.batch_size)))
        return TrainingConfig(
            max_steps=steps,
            batch_size=self.batch_size,
            val_check_steps=max(1, steps // self.looks),
            patience=self.patience,
            learning_rate=self.learning_rate,
            huber_delta=self.huber_delta,
            distill_from=self.teachers,
            random_seed=seed,
        )


class Job(RootOptions):
    """One model on one data set at one horizon; a line of a results file."""

    dataset: str
    horizon: Size
    seed: Annotated[int, Field(ge=0)] = 1

    @property
    def key(self) -> str:
        """Hash of the description; the same on every machine and in every version of Python."""
        text = json.dumps(self.description(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:_KEY_LENGTH]

    def description(self) -> dict[str, Any]:
        """All choices of the run as JSON, with options named as in keys and results files."""
        return self.model_dump(mode="json")

    @property
    def model_name(self) -> str:
        """Name of the model."""
        raise NotImplementedError


class Run(Job):
    """A model trained once, with a description of all its options."""

    input_size: Size
    model: Design
    training: Learning

    def description(self) -> dict[str, Any]:
        """All choices of the run as JSON, with options named as in keys and results files."""
        found = super().description()
        if isinstance(self.model, LeapTSDesign):
            options = found["model"]["options"]
            found["model"]["options"] = {_STORED_NAMES.get(name, name): value for name, value in options.items()}
        return found

    def members(self) -> "list[Run]":
        """List the members of an ensemble as runs of their own; a single model is its only member.

        Members of the first seed have the seeds 1 to n, those of the second n + 1 to 2 n, and so on.
        """
        if not isinstance(self.model, LeapTSDesign) or self.model.members == 1:
            return [self]
        count, alone = self.model.members, self.model.model_copy(update={"members": 1})
        seeds = range((self.seed - 1) * count + 1, self.seed * count + 1)
        return [self.model_copy(update={"model": alone, "seed": seed}) for seed in seeds]

    @property
    def model_name(self) -> str:
        """Name of the model."""
        match self.model:
            case LeapTSDesign():
                return "LeapTS"
            case NaiveDesign():
                return "Naive"
            case BaselineDesign(name=name):
                return name

    def __str__(self) -> str:
        return f"{self.dataset} {self.input_size}->{self.horizon} {self.model_name} seed {self.seed}"


class AnalysisRun(Run):
    """A run whose schedules and state vectors are analyzed on the test windows.

    It has its own key: a run of the same description without the analysis does not replace it.
    """

    purpose: Literal["analysis"]


class PublishedRun(Job):
    """A forecaster on one task of a published benchmark, with nothing chosen for that task."""

    benchmark: Literal["gift", "covariates", "defaults"]
    model: str
    version: str = Field(description="of the forecaster; raised when its defaults change, so that it runs again")

    @property
    def model_name(self) -> str:
        """Name of the forecaster."""
        return self.model

    def __str__(self) -> str:
        return f"{self.dataset} {self.model} seed {self.seed}"


def parse_run(text: str) -> Job:
    """Parse a run of any kind from JSON."""
    given = json.loads(text)
    kind = PublishedRun if "benchmark" in given else AnalysisRun if "purpose" in given else Run
    return kind.model_validate_json(text)
