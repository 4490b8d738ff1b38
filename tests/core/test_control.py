"""The control signal and its increments, worked out from the weights."""

import torch

from leapts.core.control import ControlSignal, Outcome

ROWS, NUMBERS, SCALES, SUMMARY, CONTROL = 6, 5, 3, 4, 2
CLIP = (0.2, 0.6)


def _outcome() -> Outcome:
    generator = torch.Generator().manual_seed(0)
    remaining = torch.linspace(0.9, 0.0, ROWS)
    length = torch.linspace(0.1, 1.0, ROWS)
    scale = torch.eye(SCALES)[torch.arange(ROWS) % SCALES]
    return Outcome(remaining.unsqueeze(1), length.unsqueeze(1), scale, torch.randn(ROWS, NUMBERS, generator=generator))


def _signal() -> ControlSignal:
    torch.manual_seed(0)
    return ControlSignal(numbers=NUMBERS, scales=SCALES, summary=SUMMARY, control=CONTROL, temporal_clip=CLIP)


def test_the_control_signal_sees_what_remains_the_length_the_scale_and_the_summary_of_the_segment() -> None:
    signal, outcome = _signal(), _outcome()
    summary = torch.tanh(outcome.segment @ signal.summary.weight.T)
    seen = torch.cat([outcome.left, outcome.length, outcome.scale, summary], 1)
    drive = signal(outcome, torch.zeros(ROWS, CONTROL))
    torch.testing.assert_close(drive.control, torch.tanh(seen @ signal.signal.weight.T))
    assert signal.size == CONTROL


def test_the_increments_are_the_change_of_the_signal_and_the_clipped_length_of_the_leap() -> None:
    signal, outcome = _signal(), _outcome()
    previous = torch.full((ROWS, CONTROL), 0.25)
    drive = signal(outcome, previous)
    torch.testing.assert_close(drive.increments[:, :-1], drive.control - 0.25)
    torch.testing.assert_close(drive.increments[:, -1], outcome.length[:, 0].clamp(*CLIP))
