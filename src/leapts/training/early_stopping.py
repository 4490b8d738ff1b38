"""Early stopping: keep the best weights, stop after `patience` validation checks without improvement, or go on."""

from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from torch import Tensor

from leapts.model import LeapTSModel


@dataclass
class TrainingReport:
    """The course of a training run."""

    steps: int = 0
    best_step: int = 0
    best_validation: float | None = None
    stopped_early: bool = False
    losses: list[tuple[int, float]] = field(default_factory=list)  # step, mean loss since the previous check
    validations: list[tuple[int, float]] = field(default_factory=list)  # step, mean absolute error
    best_loss: float | None = None  # the error that chose the weights; of quantiles, their pinball loss
    naive_mae: float | None = None  # of the seasonal naive forecast on the same validation windows
    combined_mae: float | None = None  # of the combination with simple forecasts on the same validation windows
    still_improving: bool = False  # the best validation check was among the last ones

    @property
    def quality(self) -> str:
        """Describe the validation error beside that of the seasonal naive forecast; empty without validation."""
        if self.best_validation is None:
            return ""
        naive = "" if self.naive_mae is None else f", seasonal naive {self.naive_mae:.3g}"
        best = self.best_validation if self.combined_mae is None else self.combined_mae
        more = "; still improving at the last step, so more steps may help" if self.still_improving else ""
        return f"validation MAE {best:.3g} (scaled){naive}{more}"

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "TrainingReport":
        """Create a report from plain values, as read from JSON."""
        pairs = {
            name: [(int(step), float(value)) for step, value in values[name]] for name in ("losses", "validations")
        }
        return cls(**{**values, **pairs})

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return asdict(self)


class Rounds(NamedTuple):
    """Rounds of training steps; another one follows while the end of a round still improves the validation error."""

    steps: int
    limit: int

    def are_done(self, report: TrainingReport) -> bool:
        """Whether training ends at this step."""
        number, place = divmod(report.steps, self.steps)
        return report.stopped_early or (
            place == 0 and number > 0 and (number == self.limit or not self.has_improved(report))
        )

    def has_improved(self, report: TrainingReport) -> bool:
        """Whether the best validation check is in the last quarter of a round."""
        return report.best_loss is not None and 0 < report.steps - self.steps / 4 < report.best_step

    def end(self, step: int) -> int:
        """Return the last step of the round of a step."""
        return -(-step // self.steps) * self.steps


@dataclass
class TrainingState:
    """The report so far, the weights to return, and the losses since the last check."""

    report: TrainingReport
    kept: dict[str, Tensor]  # the best weights; without validation, those of the last check
    checks_without_improvement: int = 0
    losses_since_check: list[float] = field(default_factory=list)

    @classmethod
    def fresh(cls, model: LeapTSModel) -> "TrainingState":
        """Create the state before the first step."""
        return cls(TrainingReport(), _copy_weights(model))

    def record_check(self, model: LeapTSModel, score: float | None, loss: float | None, patience: int) -> None:
        """Record a validation check: keep the weights if their loss is the lowest, or decide to stop."""
        report = self.report
        report.losses.append((report.steps, sum(self.losses_since_check) / len(self.losses_since_check)))
        self.losses_since_check.clear()
        if score is not None:
            report.validations.append((report.steps, score))
        if loss is None or report.best_loss is None or loss < report.best_loss:
            report.best_validation, report.best_loss, report.best_step = score, loss, report.steps
            self.kept = _copy_weights(model)
            self.checks_without_improvement = 0
        else:
            self.checks_without_improvement += 1
            report.stopped_early = 0 < patience <= self.checks_without_improvement


def _copy_weights(model: LeapTSModel) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}
