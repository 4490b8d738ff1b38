"""State cells against references: torchcde for the differential equation, torch for the recurrent cells."""

import pytest
import torch
import torchcde

from leapts.model.state_cells import (
    Control,
    ControlledCell,
    ControlSignal,
    FactoredField,
    FullField,
    LongShortTermCell,
    RecurrentCell,
    StateCell,
    VectorField,
)

HIDDEN, CONTROL, ROWS = 6, 3, 10
SIZES = [4, 6]


def _field(kind: str) -> VectorField:
    torch.manual_seed(0)
    if kind == "full":
        return FullField(clusters=2, hidden=HIDDEN, control=CONTROL, width=5).double()
    return FactoredField(clusters=2, hidden=HIDDEN, control=CONTROL, width=5, rank=7).double()


def _control(seed: int = 0) -> Control:
    generator = torch.Generator().manual_seed(seed)
    signal = torch.randn(ROWS, CONTROL, dtype=torch.float64, generator=generator)
    increments = torch.randn(ROWS, CONTROL + 1, dtype=torch.float64, generator=generator)
    return Control(signal, increments)


def _cells() -> list[tuple[StateCell, torch.Tensor]]:
    hidden = torch.randn(ROWS, HIDDEN, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    cells: list[StateCell] = [
        ControlledCell(_field("full")),
        ControlledCell(_field("factored")),
        RecurrentCell(hidden=HIDDEN, control=CONTROL).double(),
        LongShortTermCell(hidden=HIDDEN, control=CONTROL).double(),
    ]
    return [(cell, cell.begin(hidden)) for cell in cells]


@pytest.mark.parametrize("kind", ["full", "factored"])
def test_leaps_are_the_euler_solution_of_the_controlled_equation(kind: str) -> None:
    leaps = 5
    field = _field(kind)
    cell = ControlledCell(field)
    generator = torch.Generator().manual_seed(1)
    # The path of (control, time) through one knot per leap, linear in between.
    knots = torch.randn(ROWS, leaps + 1, CONTROL + 1, dtype=torch.float64, generator=generator)
    first = torch.randn(ROWS, HIDDEN, dtype=torch.float64, generator=generator)

    class Reference(torch.nn.Module):
        def forward(self, t: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
            signal = knots[:, int(t) + 1, :-1]  # the field depends on the control signal after the leap
            units = torch.eye(CONTROL + 1, dtype=torch.float64)
            columns = [field.at(z, signal, SIZES)(unit.expand(ROWS, -1)) for unit in units]
            return torch.stack(columns, 2)

    solution = torchcde.cdeint(
        X=torchcde.LinearInterpolation(knots),
        func=Reference(),
        z0=first,
        t=torch.arange(leaps + 1, dtype=torch.float64),
        method="euler",
        options={"step_size": 1.0, "perturb": True},
        adjoint=False,
    )
    state = first
    for leap in range(leaps):
        control = Control(knots[:, leap + 1, :-1], knots[:, leap + 1] - knots[:, leap])
        state = cell.advance(state, control, SIZES)
        torch.testing.assert_close(state, solution[:, leap + 1])


@pytest.mark.parametrize("kind", ["full", "factored"])
def test_each_cluster_has_its_own_field(kind: str) -> None:
    cell, control = ControlledCell(_field(kind)), _control()
    state = torch.randn(ROWS, HIDDEN, dtype=torch.float64)
    ours = cell.advance(state, control, SIZES)
    first_only = cell.advance(state, control, [ROWS, 0])
    torch.testing.assert_close(ours[:4], first_only[:4])
    assert not torch.allclose(ours[4:], first_only[4:])


def test_contributions_add_up_to_the_change_of_state() -> None:
    for cell, state in _cells():
        change = cell.contributions(state, _control(), SIZES)
        after = cell.visible(cell.advance(state, _control(), SIZES))
        torch.testing.assert_close(change.control + change.temporal, after - cell.visible(state))


def test_no_increment_no_contribution() -> None:
    for kind in ("full", "factored"):
        cell, control = ControlledCell(_field(kind)), _control()
        state = torch.randn(ROWS, HIDDEN, dtype=torch.float64)
        still = control.increments.clone()
        still[:, -1] = 0
        assert not cell.contributions(state, control._replace(increments=still), SIZES).temporal.any()
        still = torch.zeros_like(still)
        still[:, -1] = 1
        assert not cell.contributions(state, control._replace(increments=still), SIZES).control.any()


def test_recurrent_cell_equals_torch() -> None:
    cell = RecurrentCell(hidden=HIDDEN, control=CONTROL).double()
    reference = torch.nn.RNNCell(CONTROL + 1, HIDDEN).double()
    with torch.no_grad():
        reference.weight_ih.copy_(cell.update.weight[:, : CONTROL + 1])
        reference.weight_hh.copy_(cell.update.weight[:, CONTROL + 1 :])
        reference.bias_ih.copy_(cell.update.bias)
        reference.bias_hh.zero_()
    control, state = _control(), torch.randn(ROWS, HIDDEN, dtype=torch.float64)
    inputs = torch.cat([control.signal, control.increments[:, -1:]], 1)
    torch.testing.assert_close(cell.advance(cell.begin(state), control, [ROWS]), reference(inputs, state))


def test_long_short_term_cell_equals_torch() -> None:
    cell = LongShortTermCell(hidden=HIDDEN, control=CONTROL).double()
    reference = torch.nn.LSTMCell(CONTROL + 1, HIDDEN).double()
    with torch.no_grad():
        reference.weight_ih.copy_(cell.gates.weight[:, : CONTROL + 1])
        reference.weight_hh.copy_(cell.gates.weight[:, CONTROL + 1 :])
        reference.bias_ih.copy_(cell.gates.bias)
        reference.bias_hh.zero_()
    control, hidden = _control(), torch.randn(ROWS, HIDDEN, dtype=torch.float64)
    inputs = torch.cat([control.signal, control.increments[:, -1:]], 1)
    state = cell.advance(cell.begin(hidden), control, [ROWS])
    after, memory = reference(inputs, (hidden, hidden))
    torch.testing.assert_close(cell.visible(state), after)
    torch.testing.assert_close(state, torch.cat([after, memory], 1))


def test_control_signal_and_increments_follow_the_paper() -> None:
    control = ControlSignal(horizon=8, outputs=5, scales=3, summary=2, control=4, temporal_clip=(0.3, 0.6)).double()
    generator = torch.Generator().manual_seed(0)
    ratios = torch.tensor([[0.8, 0.2], [0.5, 0.5], [0.0, 1.0]], dtype=torch.float64)
    scale = torch.eye(3, dtype=torch.float64)
    segment = torch.randn(3, 5, dtype=torch.float64, generator=generator)
    previous = torch.randn(3, 4, dtype=torch.float64, generator=generator)
    after = control(8 * ratios[:, 0], 8 * ratios[:, 1], scale, segment, previous)
    summary = torch.tanh(segment @ control.summary.weight.T)
    expected = torch.tanh(torch.cat([ratios, scale, summary], 1) @ control.signal.weight.T)
    torch.testing.assert_close(after.signal, expected)
    torch.testing.assert_close(after.increments[:, :-1], expected - previous)
    assert after.increments[:, -1].tolist() == [0.3, 0.5, 0.6]
