"""Early stopping keeps the best weights and stops after `patience` checks without improvement."""

import pytest
import torch

from leapts.training.early_stopping import Rounds, TrainingReport, TrainingState
from tests.model.variants import make_model


def _state() -> TrainingState:
    return TrainingState(TrainingReport(), {})


def _check(state: TrainingState, score: float | None, *, patience: int = 2, losses: tuple[float, ...] = (1.0,)) -> None:
    state.report.steps += 10
    state.losses_since_check.extend(losses)
    state.record_check(make_model("none"), score, score, patience)


def test_a_fresh_state_has_a_copy_of_the_weights_and_an_empty_report() -> None:
    model = make_model("none")
    state = TrainingState.fresh(model)
    assert state.report == TrainingReport(0, 0, None, False, [], [])
    assert (state.checks_without_improvement, state.losses_since_check) == (0, [])
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    assert all(torch.equal(state.kept[name], value) for name, value in weights.items())


def test_a_check_records_its_score_and_the_mean_loss_since_the_previous_check() -> None:
    state = _state()
    _check(state, 0.5, losses=(1.0, 2.0, 6.0))
    _check(state, 0.25, losses=(5.0,))
    assert state.report.losses == [(10, 3.0), (20, 5.0)]
    assert state.report.validations == [(10, 0.5), (20, 0.25)]
    assert state.losses_since_check == []


def test_the_best_weights_are_kept_and_the_earliest_of_equal_scores() -> None:
    state = _state()
    _check(state, 0.5)
    kept = state.kept
    assert kept
    for worse in (0.5, 0.7):
        _check(state, worse, patience=9)
        assert state.kept is kept
        assert (state.report.best_step, state.report.best_validation) == (10, 0.5)
    assert state.checks_without_improvement == 2
    _check(state, 0.4, patience=9)
    assert state.kept is not kept
    assert (state.report.best_step, state.report.best_validation) == (40, 0.4)
    assert state.checks_without_improvement == 0


def test_without_validation_the_last_weights_are_kept() -> None:
    state = _state()
    for step in (10, 20):
        _check(state, None)
        assert (state.report.best_step, state.report.best_validation) == (step, None)
    assert state.report.validations == []
    assert state.checks_without_improvement == 0


def test_training_stops_after_patience_checks_and_never_with_patience_zero() -> None:
    state, endless = _state(), _state()
    stopped = []
    for score in (0.5, 0.6, 0.6, 0.6):
        _check(state, score, patience=2)
        _check(endless, score, patience=0)
        stopped.append(state.report.stopped_early)
    assert stopped == [False, False, True, True]
    assert not endless.report.stopped_early
    hasty = _state()
    _check(hasty, 0.5, patience=1)
    _check(hasty, 0.6, patience=1)
    assert hasty.report.stopped_early


def test_a_report_survives_json() -> None:
    report = TrainingReport(20, 10, 0.5, True, [(10, 1.5)], [(10, 0.5)])
    values = {**report.to_dict(), "losses": [[10, 1.5]], "validations": [[10.0, 0.5]]}
    again = TrainingReport.from_dict(values)
    assert again == report
    assert type(again.validations[0]) is tuple


@pytest.mark.parametrize(
    ("steps", "best_step", "done", "improving"),
    [
        (50, 50, False, True),
        (100, 99, False, True),
        (100, 60, True, False),
        (300, 300, True, True),
        (250, 90, False, False),
    ],
)
def test_rounds_follow_while_their_end_improves(steps: int, best_step: int, done: bool, improving: bool) -> None:
    report = TrainingReport(steps=steps, best_step=best_step, best_validation=1.0, best_loss=1.0)
    rounds = Rounds(steps=100, limit=3)
    assert (rounds.are_done(report), rounds.has_improved(report)) == (done, improving)
