from collections.abc import Sequence
from pathlib import Path

import pytest

from leapts_bench import results, search
from leapts_bench.execution import Cut, trial
from leapts_bench.protocol import Benchmark
from leapts_bench.recipes import FILE, Recipe, chosen, merit, written
from leapts_bench.runs import LeapTSDesign, Run
from leapts_bench.search import LOG, candidates
from tests.bench.conftest import TINY, tiny_run

COMMITTED_LOG = Path(__file__).parents[2] / "benchmarks" / "results" / LOG


def _line(run: Run, rung: int, error: float) -> results.Line:
    validation = {"mse": error, "mae": error}
    return {"key": run.key, "run": run.model_dump(mode="json"), "rung": rung, "validation": validation}


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """The runs that were tried; a low learning rate and many epochs give the smallest error."""
    runs: list[Run] = []

    def pretend(run: Run, cuts: Sequence[Cut]) -> results.Line:
        assert not cuts
        runs.append(run)
        return _line(run, 0, run.training.learning_rate / run.training.epochs)

    monkeypatch.setattr(search, "trial", pretend)
    return runs


def test_the_stored_recipes_are_the_best_of_the_log() -> None:
    assert FILE.read_text(encoding="utf-8") == written(results.read(COMMITTED_LOG))


def test_a_search_halves_its_candidates_and_ends_with_the_best(folder: Path, tried: list[Run]) -> None:
    search.search("ETTh1", folder, tell=lambda _: None)
    lines = results.read(folder / LOG)
    assert [sum(line["rung"] == rung for line in lines) for rung in range(3)] == [16, 5, 2]
    best = chosen(lines)["ETTh1"]
    assert best.training.learning_rate == min(run.training.learning_rate for run in tried)
    assert best.training.epochs == max(run.training.epochs for run in tried)


def test_the_previous_recipe_is_in_the_last_rung_on_m4(
    folder: Path, tried: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    former = Recipe(model=LeapTSDesign(options={"hidden_size": 8}))
    monkeypatch.setattr(search, "recipe", lambda _: former)
    search.search("M4-Weekly", folder, tell=lambda _: None)
    longest = max(run.training.epochs for run in tried)
    last = [run for run in tried if run.training.epochs == longest]
    assert len(last) == 5
    assert last[-1].model == former.model
    assert last[-1].training == former.training.model_copy(update={"epochs": longest, "looks": 1})


def test_a_resumed_search_repeats_no_trial(folder: Path, tried: list[Run]) -> None:
    search.search("ETTh1", folder, tell=lambda _: None)
    lines = results.read(folder / LOG)
    (folder / LOG).unlink()
    for line in lines[:7]:
        results.append(folder / LOG, line)
    tried.clear()
    search.search("ETTh1", folder, tell=lambda _: None)
    assert [run.key for run in tried] == [line["key"] for line in lines[7:]]
    assert results.read(folder / LOG) == lines


def test_the_best_trial_of_any_rung_is_chosen() -> None:
    short, long = candidates("ETTh1", 7)[:2]
    lines = [
        _line(recipe.run("ETTh1", input_size=96, horizon=36, seed=1), rung, error)
        for recipe, rung, error in ((short, 0, 0.1), (long, 2, 0.3))
    ]
    assert chosen(lines)["ETTh1"] == short


def test_a_trial_on_more_validation_parts_counts_before_a_smaller_error() -> None:
    one, other = candidates("ILI", 7)[:2]
    single = _line(one.run("ILI", input_size=36, horizon=24, seed=1), 2, 0.1)
    several = _line(other.run("ILI", input_size=36, horizon=24, seed=1), 0, 0.3)
    several["validations"] = [several.pop("validation")] * 3
    assert merit(several) == pytest.approx(0.3)
    assert chosen([several, single])["ILI"] == other


def test_on_m4_trials_judged_at_their_end_come_first() -> None:
    def line(looks: int, error: float) -> results.Line:
        training = TINY.training.model_copy(update={"looks": looks})
        run = Recipe(model=TINY.model, training=training).run("M4-Hourly", input_size=24, horizon=12, seed=1)
        return {**_line(run, 0, error), "validation": {"smape": error, "mase": error}}

    assert chosen([line(16, 0.1), line(1, 0.2)])["M4-Hourly"].training.looks == 1
    assert chosen([line(16, 0.1)])["M4-Hourly"].training.looks == 16


def test_a_trial_never_opens_the_test_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(_: Benchmark) -> None:
        raise AssertionError("the test windows were opened")

    monkeypatch.setattr(Benchmark, "test", opened)
    assert merit(trial(tiny_run())) > 0


@pytest.mark.parametrize("variates", [1, 21])
def test_candidates_are_the_same_every_time_and_all_different(variates: int) -> None:
    some = candidates("Weather", variates)
    assert some == candidates("Weather", variates)
    assert some != candidates("ETTh1", variates)
    assert len({candidate.model_dump_json() for candidate in some}) == len(some)
    if variates == 1:
        assert {candidate.model.options["mixing"]["kind"] for candidate in some} == {"none"}


@pytest.mark.parametrize(
    ("compact", "smallest", "width"),
    [(1.0149, 2.0, 64), (1.0151, 2.0, 128), (0.9, 2.0, 64), (1.01, 1.015, 32), (1.01, 1.0152, 64), (1.02, 1.004, 32)],
)
def test_the_smallest_variant_that_is_nearly_as_good_is_chosen(compact: float, smallest: float, width: int) -> None:
    best = Recipe(model=LeapTSDesign(options={"hidden_size": 128}))
    forms = {128: best, 64: best.compact(64), 32: best.compact(32)}
    lines = [
        _line(recipe.run("ETTh2", input_size=96, horizon=36, seed=1), 2, cost)
        for recipe, cost in zip(forms.values(), (1.0, compact, smallest), strict=True)
    ]
    assert chosen(lines)["ETTh2"] == forms[width]


def test_a_search_of_a_timed_data_set_ends_with_compact_variants(folder: Path, tried: list[Run]) -> None:
    for name in ("ETTh2", "ETTm1"):
        search.search(name, folder, tell=lambda _: None)
    timed, other = ([run for run in tried if run.dataset == name] for name in ("ETTh2", "ETTm1"))
    assert len(timed) == len(other) + 2 == 16 + 5 + 2 + 2
    finals = [Recipe(model=run.model) for run in timed[-4:-2] if isinstance(run.model, LeapTSDesign)]
    assert [run.model for run in timed[-2:]] in [[final.compact(width).model for width in (64, 32)] for final in finals]


def test_a_compact_variant_is_not_larger_than_its_recipe() -> None:
    wide = Recipe(model=LeapTSDesign(options={"hidden_size": 128, "mixing": {"kind": "mlp"}}))
    narrow = Recipe(model=LeapTSDesign(options={"hidden_size": 32}))
    config = wide.compact(64).model.config(input_size=96, horizon=60, variates=7)
    assert (config.hidden_size, config.scheduling.model_dump()["max_leaps"]) == (64, 2)
    assert config.mixing.kind == "mlp"
    assert narrow.compact(64).model.config(input_size=96, horizon=60, variates=7).hidden_size == 32
