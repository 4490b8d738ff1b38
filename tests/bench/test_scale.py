"""The page on scale agrees with the measurement."""

import math
from dataclasses import replace

import pytest

from leapts_bench import results
from leapts_bench.scale import DOCUMENT, RESULTS, measure
from leapts_bench.scale_document import Costs, render

COSTS = Costs(
    read=1e-5,
    forecast=3e-5,
    write=1e-5,
    model=1e-5,
    start=2.0,
    history=300.0,
    output=200.0,
    rows=6000.0,
    memory=2e4,
    process=3e8,
)


def test_the_page_is_made_from_the_last_measurement() -> None:
    assert DOCUMENT.read_text() == render(results.read(RESULTS)[-1])


def test_the_number_of_machines_follows_from_the_time_of_all_series() -> None:
    assert COSTS.seconds == pytest.approx(5e-5)
    assert COSTS.machines(1) == 1
    assert COSTS.machines(1e10) == math.ceil(1e10 * 5e-5 / 3600 / 16)
    # Three tenths of 64 GB hold the rows of 3.2 million series.
    assert COSTS.machines_that_exchange(1e10) == 3125
    # Without rows, only forecasting in half of the time remains.
    assert replace(COSTS, rows=0).machines_that_exchange(1e10) == math.ceil(1e10 * 5e-5 / 1800 / 16)


@pytest.mark.slow
def test_a_measurement_has_all_costs_above_zero() -> None:
    line = measure(series=300, repeats=1)
    costs = Costs.of(line)
    assert all(value > 0 for value in vars(costs).values()), costs
    assert costs.forecast > costs.model
    assert costs.rows > costs.history
    assert "| 10 billion |" in render(line)
