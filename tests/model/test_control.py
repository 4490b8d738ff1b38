"""The control signal and its increments, computed by hand from the weights."""

import torch

from leapts.model.state_cells import Control, ControlSignal

ROWS, HORIZON, OUTPUTS, SCALES, SUMMARY, CONTROL = 6, 10, 5, 3, 4, 2
CLIP = (0.2, 0.6)
LEFT, LENGTH = torch.linspace(9, 0, ROWS), torch.linspace(1, 10, ROWS)
SCALE = torch.eye(SCALES)[torch.arange(ROWS) % SCALES]
SEGMENT = torch.randn(ROWS, OUTPUTS, generator=torch.Generator().manual_seed(0))


def _control_signal() -> ControlSignal:
    torch.manual_seed(0)
    return ControlSignal(
        horizon=HORIZON, outputs=OUTPUTS, scales=SCALES, summary=SUMMARY, control=CONTROL, temporal_clip=CLIP
    )


def _after_leap(signal: ControlSignal, previous: float) -> Control:
    control = signal(LEFT, LENGTH, SCALE, SEGMENT, torch.full((ROWS, CONTROL), previous))
    assert isinstance(control, Control)
    return control


def test_the_control_signal_depends_on_remaining_steps_length_scale_and_summary_of_the_segment() -> None:
    signal = _control_signal()
    summary = torch.tanh(SEGMENT @ signal.summary.weight.T)
    inputs = torch.cat([LEFT[:, None] / HORIZON, LENGTH[:, None] / HORIZON, SCALE, summary], 1)
    torch.testing.assert_close(_after_leap(signal, 0.0).signal, torch.tanh(inputs @ signal.signal.weight.T))
    assert signal.size == CONTROL


def test_the_increments_are_the_change_of_the_signal_and_the_clipped_length_of_the_leap() -> None:
    control = _after_leap(_control_signal(), 0.25)
    torch.testing.assert_close(control.increments[:, :-1], control.signal - 0.25)
    torch.testing.assert_close(control.increments[:, -1], (LENGTH / HORIZON).clamp(*CLIP))
