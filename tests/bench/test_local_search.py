from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leapts.errors import DataError
from leapts_bench import results, search
from leapts_bench.execution import Cut
from leapts_bench.local_search import Change, changes, final_selection, finalists, local_search
from leapts_bench.recipes import Recipe, chosen
from leapts_bench.runs import LeapTSDesign, Run
from leapts_bench.search import LOG, candidates

BASE = Recipe(model=LeapTSDesign(options={"mixing": {"kind": "mlp"}, "series_embedding": True}))


def _line(run: Run, error: float) -> results.Line:
    return {"key": run.key, "run": run.model_dump(mode="json"), "validations": [{"mse": error, "mae": error}] * 3}


def _pretend(monkeypatch: pytest.MonkeyPatch, error: Callable[[Run], float]) -> list[Run]:
    """Replace trials by instant ones of a data set with a base recipe; return the runs that are tried."""
    runs: list[Run] = []

    def pretended(run: Run, cuts: Sequence[Cut]) -> results.Line:
        assert len(cuts) == 3
        runs.append(run)
        return _line(run, error(run))

    monkeypatch.setattr(search, "trial", pretended)
    monkeypatch.setattr("leapts_bench.local_search.recipe", lambda _: BASE)
    return runs


def _rate_over_length(run: Run) -> float:
    return run.training.learning_rate / run.training.epochs


def _options(recipe: Recipe) -> dict[str, object]:
    config = recipe.model.config(input_size=96, horizon=24, variates=7)
    training = recipe.training
    return {
        "learning_rate": training.learning_rate,
        "epochs": training.epochs,
        "batch_size": training.batch_size,
        "huber_delta": training.huber_delta,
        "normalization": config.normalization,
        "mixing": config.mixing.kind,
    }


@given(st.sampled_from([*candidates("ETTh1", 7), *candidates("ILI", 7), Recipe()]))
def test_a_neighbor_differs_in_one_option(base: Recipe) -> None:
    neighbours = {change: change.applied(base) for change in changes(base, 7)}
    assert len({neighbour.model_dump_json() for neighbour in neighbours.values()} | {base.model_dump_json()}) == (
        len(neighbours) + 1
    )
    for change, neighbour in neighbours.items():
        assert _options(neighbour) == {**_options(base), change.option: change.value}
        config = neighbour.model.config(input_size=96, horizon=24, variates=7)
        assert config.series_embedding == (config.mixing.kind != "none") or change.option != "mixing"
        kept = base.model.config(input_size=96, horizon=24, variates=7)
        assert (config.hidden_size, config.scheduling, config.state) == (
            kept.hidden_size,
            kept.scheduling,
            kept.state,
        )


def test_a_single_series_has_no_mixing() -> None:
    assert "mixing" not in {change.option for change in changes(Recipe(), 1)}


def test_a_data_set_without_a_split_is_refused(folder: Path) -> None:
    with pytest.raises(DataError, match="M4-Hourly keeps its test part apart"):
        local_search("M4-Hourly", folder, tell=lambda _: None)


def test_finalists_are_the_recipe_its_best_neighbors_and_their_combination() -> None:
    better = [
        Change("epochs", 4.0),
        Change("epochs", 16.0),
        Change("normalization", "last"),
        Change("mixing", "none"),
    ]
    first, *neighbours, last = finalists(BASE, better)
    assert first == BASE
    assert neighbours == [change.applied(BASE) for change in better[:3]]
    assert _options(last) == {**_options(BASE), "epochs": 4.0, "normalization": "last", "mixing": "none"}
    assert list(finalists(BASE, better[:2])) == [BASE, *(change.applied(BASE) for change in better[:2])]
    assert list(finalists(BASE, [])) == [BASE]


def test_improvements_are_also_combined(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _pretend(monkeypatch, _rate_over_length)
    local_search("ETTh2", folder, tell=lambda _: None)
    best = chosen(results.read(folder / LOG))["ETTh2"]
    usual = BASE.training
    better = {"learning_rate": usual.learning_rate / 2, "epochs": usual.epochs * 2}
    assert best == Recipe(model=BASE.model, training=usual.model_copy(update=better))


def test_a_favorable_first_seed_replaces_no_recipe(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = _pretend(monkeypatch, lambda run: run.training.batch_size ** (-1 if run.seed == 1 else 1))
    local_search("ETTh2", folder, tell=lambda _: None)
    assert chosen(results.read(folder / LOG))["ETTh2"] == BASE
    assert [run.training.batch_size for run in runs if run.seed > 1] == [BASE.training.batch_size] * 2 + [
        BASE.training.batch_size * 2
    ] * 2


def test_a_resumed_local_search_repeats_no_trial(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = _pretend(monkeypatch, _rate_over_length)
    local_search("ETTh2", folder, tell=lambda _: None)
    lines = results.read(folder / LOG)
    (folder / LOG).unlink()
    for line in lines[:7]:
        results.append(folder / LOG, line)
    runs.clear()
    local_search("ETTh2", folder, tell=lambda _: None)
    assert [run.key for run in runs] == [line["key"] for line in lines[7:]]
    assert results.read(folder / LOG) == lines


def test_the_final_selection_of_a_short_data_set_uses_all_horizons(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ILI has the horizons 12, 18, 24 and 36; the best recipe at 24 is the worse one at the other three."""
    runs = _pretend(monkeypatch, lambda run: run.training.batch_size ** (-1 if run.horizon == 24 else 1))
    local_search("ILI", folder, tell=lambda _: None)
    assert {run.horizon for run in runs} == {24}
    larger = BASE.training.model_copy(update={"batch_size": BASE.training.batch_size * 2})
    assert chosen(results.read(folder / LOG))["ILI"] == Recipe(model=BASE.model, training=larger)
    runs.clear()
    final_selection("ILI", folder, tell=lambda _: None)
    assert {(run.horizon, run.seed) for run in runs} == {
        (horizon, seed) for horizon in (12, 18, 36) for seed in (1, 2, 3)
    }
    assert {run.training.batch_size for run in runs} == {BASE.training.batch_size, larger.batch_size}
    assert chosen(results.read(folder / LOG))["ILI"] == BASE


def test_a_final_selection_without_finalists_is_refused(folder: Path) -> None:
    with pytest.raises(DataError, match="ETTh2 is long enough"):
        final_selection("ETTh2", folder, tell=lambda _: None)
    with pytest.raises(DataError, match="ILI has no finalists"):
        final_selection("ILI", folder, tell=lambda _: None)


def test_more_seeds_count_before_a_smaller_error_of_fewer() -> None:
    lucky, steady, other = candidates("ETTh1", 7)[:3]

    def line(recipe: Recipe, seed: int, error: float) -> results.Line:
        return _line(recipe.run("ETTh1", input_size=96, horizon=36, seed=seed), error)

    lines = [line(lucky, 1, 0.1), line(steady, 1, 0.4), line(steady, 2, 0.2), line(other, 1, 0.3), line(other, 2, 0.3)]
    assert chosen(lines)["ETTh1"] == steady
    assert chosen([*lines, line(lucky, 2, 0.9)])["ETTh1"] == steady
    assert chosen([*lines, line(lucky, 2, 0.7)])["ETTh1"] == lucky
