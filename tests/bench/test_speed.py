"""Measurements run what training and forecasting run; no time is asserted."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from leapts.config import ModelConfig
from leapts.model.build import build_model
from leapts_bench import results
from leapts_bench.protocol import Benchmark, prepare
from leapts_bench.runs import Learning
from leapts_bench.speed import FILE, Plan, measure, measuring, timing
from leapts_bench.speed.growth import memory_exponent
from leapts_bench.speed.inference import onnx_session
from leapts_bench.speed.limit import profiled
from leapts_bench.speed.plan import HORIZON, LOOKBACK, random_walks
from leapts_bench.speed.timing import exponent, fastest, peak_memory
from leapts_bench.speed.training import race, training_step
from leapts_bench.tables.speed import speed_page
from tests.bench.conftest import TINY

CONFIG = ModelConfig(h=HORIZON, input_size=LOOKBACK, hidden_size=8)


def test_every_candidate_is_called_in_every_round() -> None:
    calls: list[str] = []
    times = fastest({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=3)
    assert set(times) == {"a", "b"}
    turns = [call for call, before in zip(calls, ["", *calls], strict=False) if call != before]
    assert turns == ["a", "b"] * 4  # one turn to warm up


def test_a_slow_candidate_is_called_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "_SLOW_SECONDS", 0.0)
    calls: list[str] = []
    assert fastest({"a": lambda: calls.append("a")}, rounds=3)["a"] > 0
    assert calls == ["a", "a"]


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_the_exponent_of_a_power_law_is_recovered(power: float) -> None:
    assert exponent([7, 70, 700], [3 * size**power for size in (7, 70, 700)]) == pytest.approx(power)


def test_small_memory_does_not_affect_the_exponent() -> None:
    assert memory_exponent([1, 10, 100], [5_000, 10_000_000, 100_000_000]) == pytest.approx(1)
    assert memory_exponent([1, 10], [None, 10_000_000]) is None


def test_peak_memory_includes_freed_memory() -> None:
    held = peak_memory(lambda: torch.ones(32, 1024, 1024).sum())
    if held is None:
        pytest.skip("this system does not tell a process's highest mark anew")
    assert 100e6 < held < 200e6


def test_a_timed_step_does_not_change_the_weights() -> None:
    model = build_model(CONFIG, seed=1)
    before = copy.deepcopy(model.state_dict())
    step = training_step(model, random_walks(2, 3, LOOKBACK, 1), torch.zeros(2, 3, HORIZON))
    step()
    step()
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert any(weights.grad is not None and bool(weights.grad.any()) for weights in model.parameters())


@pytest.mark.parametrize(("budget", "finished"), [(0.0, False), (600.0, True)])
def test_a_race_ends_with_training_or_with_its_budget(budget: float, finished: bool) -> None:
    recipe = TINY.model_copy(update={"training": Learning(epochs=0.1, batch_size=64)})
    run = recipe.run("SeattleWeather", input_size=LOOKBACK, horizon=HORIZON, seed=1)
    data = prepare(run.dataset, input_size=LOOKBACK, horizon=HORIZON)
    assert isinstance(data, Benchmark)
    raced = race(run, data, Plan(budget=budget))
    assert raced["finished"] is finished
    assert raced["steps"] == (raced["max_steps"] if finished else 1)
    assert [seconds for seconds, _ in raced["looks"]] == sorted(seconds for seconds, _ in raced["looks"])
    assert raced["looks"]


def test_onnx_runtime_computes_the_same_forecast() -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    model, history = build_model(CONFIG, seed=1), random_walks(1, 3, LOOKBACK, 1)
    session = onnx_session(model, history)
    assert session is not None
    torch.testing.assert_close(torch.from_numpy(session()[0]), model.forecast(history).values, rtol=1e-5, atol=1e-5)


def test_the_shares_of_a_profile_add_up() -> None:
    shares = profiled(build_model(CONFIG, seed=1), random_walks(2, 3, LOOKBACK, 1), calls=2)
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["matrix products"] > 0


def test_each_point_leaves_a_line_for_each_number_of_threads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def pretend(_: Plan) -> dict[str, Any]:
        seen.append(torch.get_num_threads())
        return {"answer": 42}

    points: dict[str, Callable[[Plan], dict[str, Any]]] = {"limit": pretend}
    monkeypatch.setattr(measuring, "POINTS", points)
    before = torch.get_num_threads()
    measure(["limit"], [1, 2], Plan(rounds=1), folder, tell=lambda _: None)
    assert seen == [1, 2]
    assert torch.get_num_threads() == before
    lines = results.read(folder / FILE)
    assert [(line["point"], line["threads"], line["figures"]) for line in lines] == [
        ("limit", 1, {"answer": 42}),
        ("limit", 2, {"answer": 42}),
    ]
    assert all(line["commit"] and line["versions"]["torch"] and line["machine"]["cores"] for line in lines)


def _line(point: str, figures: dict[str, Any], *, threads: int = 1, quick: bool = False) -> dict[str, Any]:
    plan = Plan(is_quick=quick).to_dict()
    machine = {"processor": "abacus", "cores": 2, "system": "linux"}
    return {"point": point, "threads": threads, "plan": plan, "commit": "c" * 40, "machine": machine, "load": 0.1} | {
        "figures": figures
    }


def _inference(ours: float) -> dict[str, Any]:
    seconds = {"LeapTS": ours, "DLinear": 0.001, "TSMixer": 0.01}
    return {"places": [{"set": "ETTh2", "windows": 32, "variates": 7, "leaps": 2.0, "seconds": seconds}]}


def test_targets_are_for_one_thread() -> None:
    page = speed_page([_line("inference", _inference(0.004)), _line("inference", _inference(0.002), threads=2)])
    assert "| ETTh2 | 32 | LeapTS | DLinear | 4 | 3 | NO | 4 | 1 |" in page
    assert "| ETTh2 | 32 | LeapTS | TSMixer | 0.4 | 0.65 | yes | 4 | 10 |" in page
    assert "| ETTh2 | 32 | LeapTS | PatchTST | not run here | 0.01 | - | - | - |" in page
    assert "| ETTh2 | 32 | LeapTS | DLinear | 2 | - | - | 2 | 1 |" in page.split("With 2 threads")[1]


def test_the_last_line_of_a_point_counts_and_quick_runs_do_not() -> None:
    lines = [_line("inference", _inference(ours)) for ours in (0.009, 0.003)]
    page = speed_page([*lines, _line("inference", _inference(0.007), quick=True)])
    assert "| DLinear | 3 | 3 | yes |" in page
    assert speed_page([_line("inference", _inference(0.007), quick=True)]) == "not run here"


def test_a_race_is_to_the_best_error_of_the_baseline() -> None:
    race_of = {
        "LeapTS": {"looks": [(1.0, 0.5), (2.0, 0.3), (3.0, 0.2)], "steps": 9, "max_steps": 9, "finished": True},
        "iTransformer": {"looks": [(4.0, 0.4), (8.0, 0.3), (9.0, 0.35)], "steps": 9, "max_steps": 9, "finished": True},
        "PatchTST": {"looks": [(30.0, 0.1)], "steps": 3, "max_steps": 90, "finished": False},
    }
    place = {"set": "ETTh1", "step": {"LeapTS": 0.01, "DLinear": 0.002}, "steps_an_epoch": 100, "race": race_of}
    page = speed_page([_line("training", {"places": [place]})])
    assert "| ETTh1 | DLinear | 5 | 6 | yes | 10 | 2 | 1.0 | 0.2 |" in page
    assert "| ETTh1 | iTransformer | 0.3000 | 8.0 | 2.0 | 0.25 | 0.385 | yes | ended |" in page
    assert "| ETTh1 | PatchTST | 0.1000 | 30.0 | never | - | 0.385 | NO | 3 of 90 steps |" in page


def test_missed_targets_are_stated() -> None:
    task = {"name": "horizon", "sizes": [24, 48], "seconds": [0.01, 0.04], "memory": [None, 8_000_000]}
    grown = {**task, "exponent": 2.0, "last_exponent": 2.0, "memory_exponent": None}
    predict = {"LeapTS": 1.0, "neuralforecast's DLinear": 4.0}
    lines = [
        _line("growth", {"tasks": [grown]}),
        _line("mass", {"series": 100, "rows": 1000, "reading": 1.0, "fit": 10.0, "predict": predict}),
        _line("startup", {"seconds": {"python -c pass": 0.01, "import leapts": 0.05}, "leapts_loads_torch": False}),
        _line(
            "limit",
            {
                "peak": 1e9,
                "places": [
                    {
                        "set": "ETTh2",
                        "windows": 32,
                        "seconds": {"forward": 0.004, "products": 0.002},
                        "operations": 1_000_000,
                        "profile": {"matrix products": 0.7, "views": 0.3},
                    }
                ],
            },
        ),
    ]
    page = speed_page(lines)
    assert "| horizon | 24 / 48 | 2.00 | 2.00 | - | NO | 10 / 40 | - / 8 |" in page
    assert "10.0 % of the fit (1.00 of 10.0 s; at most 5 %: NOT reached)" in page
    assert "At least 5 times faster than neuralforecast's DLinear: NOT reached." in page
    assert "`import leapts` does not load torch." in page
    assert "| import leapts | 5.0 | 50 |" in page
    assert "| ETTh2, 32 windows | 2.00 | 25 % | 50 % | 4.00 | 2.00 |" in page
    assert "matrix products 70 %, views 30 %" in page
