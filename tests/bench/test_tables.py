"""The page from a fixed results file. The figures there are made up; each can be checked by hand."""

from pathlib import Path

import pytest

from leapts.data.catalogue import find
from leapts_bench import fitting, results, tables
from leapts_bench.markdown import table
from leapts_bench.published import AVERAGE, best_other, published
from leapts_bench.runs import NaiveDesign, Run
from leapts_bench.speed.page import _race
from leapts_bench.speed.plan import OURS
from leapts_bench.suites import FULL, MEAN, NAIVE, NO_HIGH_LEVEL, SUITES, TAUGHT, Entry, entries
from leapts_bench.summary import Figure, Results, confidence_halfwidth
from tests.bench.conftest import TINY

GOLDEN = Path(__file__).parent / "golden"


def _run(dataset: str, horizon: int, seed: int = 1, options: dict[str, object] | None = None) -> Run:
    return TINY.changed(options or {}).run(dataset, input_size=96, horizon=horizon, seed=seed)


# Two seeds of COVID, one of ILI that misses in MAE, ETTh1 at one of two horizons, an ablation that does not hold.
_FLAT: dict[str, object] = {"scheduling": {"kind": "flat"}}
MAIN = [
    *(Entry(FULL, _run("COVID", horizon, seed)) for seed in (1, 2) for horizon in (12, 24)),
    *(Entry(FULL, _run("ETTh1", horizon)) for horizon in (18, 24)),
    *(Entry(FULL, _run("ILI", horizon)) for horizon in (12, 18, 24, 36)),
]
NAIVE_RUN = _run("COVID", 12).model_copy(update={"model": NaiveDesign()})
ABLATION = [Entry(FULL, _run("ETTh1", 18)), Entry(NO_HIGH_LEVEL, _run("ETTh1", 18, options=_FLAT))]
MEANS = [Entry(MEAN, TINY.averaged(4).run("COVID", input_size=96, horizon=horizon, seed=1)) for horizon in (12, 24)]
LESSONS = [Entry(TAUGHT, TINY.taught(4).run("COVID", input_size=96, horizon=horizon, seed=1)) for horizon in (12, 24)]
SUITES_OF_GOLDEN = {
    "main": [*MAIN, Entry(NAIVE, NAIVE_RUN)],
    "taught": LESSONS,
    "means": MEANS,
    "ablation": ABLATION,
}
FIGURES = {
    ("COVID", 12, 1): (2.8, 0.9),
    ("COVID", 24, 1): (5.0, 1.3),
    ("COVID", 12, 2): (3.0, 1.0),
    ("COVID", 24, 2): (5.2, 1.4),
    ("ETTh1", 18, 1): (0.290, 0.334),
    **{("ILI", horizon, 1): (1.5, 0.8) for horizon in (12, 18, 24, 36)},
}


def write_golden() -> None:
    """Make the results file anew; the page is then `render` of it, to be read before it is committed."""
    (GOLDEN / "results.jsonl").unlink(missing_ok=True)
    runs = {(run.dataset, run.horizon, run.seed): run for _, run in MAIN}
    for place, (mse, mae) in FIGURES.items():
        _record(runs[place], mse, mae)
    _record(ABLATION[1].run, 0.288, 0.330)
    _record(NAIVE_RUN, 2.5, 0.8)
    _record(MEANS[0].run, 2.75, 0.9)
    _record(MEANS[1].run, 5.0, 1.25)
    _record(LESSONS[0].run, 2.85, 0.95)
    _record(LESSONS[1].run, 5.0, 1.35)
    page = tables.render(SUITES_OF_GOLDEN, results.finished(GOLDEN))
    (GOLDEN / "benchmarks.md").write_text(page, encoding="utf-8")


def _record(run: Run, mse: float, mae: float) -> None:
    scores = {"mse": mse, "mae": mae, "mse_original": 4 * mse, "mae_original": 2 * mae, "leaps": 1.5, "windows": 100}
    scores |= {"mse_whole_batches": mse - 0.1, "mae_whole_batches": mae - 0.05}
    line = {
        "key": run.key,
        "commit": "0" * 40,
        "run": run.model_dump(mode="json"),
        "seed": run.seed,
        "test": scores,
        "validation": {"mse": mse / 2, "mae": mae / 2},
        "parameters": 1234,
        "seconds": {"fit": 10.0 * run.seed, "test": 1.0},
        "memory": {"imports": 300_000_000, "peak": 412_000_000},
    }
    results.append(GOLDEN / "results.jsonl", line)


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> str:
    """The page of the fixed results, with training forbidden."""

    def trained(*_: object) -> None:
        raise AssertionError("a table must not train")

    monkeypatch.setattr(fitting, "fit", trained)
    return tables.render(SUITES_OF_GOLDEN, results.finished(GOLDEN))


def test_the_page_in_the_docs_is_that_of_the_results_on_record(tmp_path: Path) -> None:
    """A setting that changes makes new runs: without this, the page would go on showing those of before."""
    root = Path(__file__).parents[2]
    tables.write(root / "benchmarks" / "results", tmp_path / "benchmarks.md")
    shown = (root / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert shown == (tmp_path / "benchmarks.md").read_text(encoding="utf-8"), "run: python -m leapts_bench table"


def test_the_page_of_fixed_results_is_the_one_on_record(page: str) -> None:
    assert page == (GOLDEN / "benchmarks.md").read_text(encoding="utf-8")


def test_seeds_become_mean_and_spread(page: str) -> None:
    """COVID at 12: MSE 2.8 and 3.0 against the paper's 2.921; MAE 0.9 and 1.0 against 0.943."""
    row = "| COVID | 12 | 2.900 ± 0.141 | 2.921 | -0.7 % | 2.876 (Amplifier) | 2.500 | 0.950 ± 0.071 | 0.943 | +0.7 %"
    assert row in page


def test_the_mean_of_several_models_stands_beside_one(page: str) -> None:
    """COVID at 12: 2.75 after 2.9, and 0.9 after 0.95; both below the paper on the average."""
    assert "| COVID | 12 | 2.750 | 2.900 | -5.2 % | 2.921 | 0.900 | 0.950 | -5.3 % | 0.943 |" in page
    assert "| COVID | 3.875 | 4.071 | -4.8 % | 1.075 | 1.174 | -8.4 % | 1 | yes |" in page
    assert "1 of 1 sets run in full (of 1)" in page


def test_an_average_needs_every_horizon(page: str) -> None:
    assert "| COVID | average | 4.000 ± 0.141 | 4.071 |" in page
    assert "| ETTh1 | average | not run here | 0.316 | - |" in page


def test_a_set_counts_as_reached_only_when_both_metrics_are(page: str) -> None:
    assert "| ILI | 1.500 | 1.556 | -3.6 % | 0.800 | 0.738 | +8.4 % | 1 | no |" in page
    assert "| COVID | 4.000 ± 0.141 | 4.071 | -1.7 % | 1.150 ± 0.071 | 1.174 | -2.0 % | 2 | yes |" in page
    assert "1 of 2 sets run in full (of 3)" in page


def test_an_ablation_that_does_not_hold_is_said_plainly(page: str) -> None:
    assert "the full model is NOT the best: against it, w/o High-Level -1.2 %" in page


def test_runs_of_a_replaced_recipe_are_listed_and_count_nowhere() -> None:
    replaced = [entry for entry in MAIN if entry.run.dataset != "ILI"]
    page = tables.render({"main": replaced, "ablation": ABLATION}, results.finished(GOLDEN))
    above, listed = page.split("## Runs of earlier recipes")
    assert "| ILI |" not in above
    assert listed.count("| ILI |") == 4


def test_only_seeds_that_ran_at_every_horizon_are_averaged() -> None:
    done = results.finished(GOLDEN)
    done.pop(_run("COVID", 24, 2).key)
    average = Results(MAIN, done).average("COVID", FULL, "mse")
    assert average == Figure(3.9, 0.0, 1)


def test_published_figures_are_those_of_the_paper() -> None:
    assert published("main", "ETTh1", 18, "MSE") == 0.282
    assert published("main", "ILI", AVERAGE, "MAE") == 0.738
    assert published("main", "SZ-taxi", 12, "MSE") is None
    assert best_other("main", "COVID", 24, "MSE") == ("iTransformer", 5.220)
    assert best_other("main", "SZ-taxi", 24, "MSE") is None


def test_confidence_intervals_are_students() -> None:
    """Of five values with deviation 1, at 95 %: 2.776 / sqrt(5)."""
    assert confidence_halfwidth(Figure(0.0, 1.0, 5), 0.95) == pytest.approx(2.7764 / 5**0.5, rel=1e-4)


def test_a_ragged_table_is_refused() -> None:
    with pytest.raises(AssertionError, match="too few or too many"):
        table(["a", "b"], [["1"]])


@pytest.mark.parametrize("suite", SUITES)
def test_no_suite_names_one_run_twice_under_one_variant(suite: str) -> None:
    named = [(variant, run.key) for variant, run in entries(suite)]
    places = [(variant, run.dataset, run.horizon, run.seed) for variant, run in entries(suite)]
    assert named
    assert len(set(named)) == len(set(places))


def _results(figures: dict[tuple[str, int], float], dataset: str = "COVID") -> Results:
    """Runs of a set at all of its horizons, with one error for each variant and seed."""
    suite, done = [], {}
    for (variant, seed), error in figures.items():
        for horizon in find(dataset).horizons:
            run = _run(dataset, horizon, seed, {"hidden_size": 8 if variant == NAIVE else 4})
            suite.append(Entry(variant, run))
            errors = {"mse": error, "mae": error}
            done[run.key] = {
                "key": run.key,
                "seed": seed,
                "test": errors,
                "validation": errors,
                "seconds": {"fit": error},
            }
    return Results(suite, done)


def test_what_repeats_the_last_value_is_held_against_every_variant() -> None:
    main = _results({(FULL, 1): 3.0, (NAIVE, 1): 1.0})
    said = "To repeat the last value is at or below LeapTS in both on: COVID."
    assert said in tables.glance(main)
    assert said in tables.glance(_results({(TAUGHT, 1): 2.0}), TAUGHT, main)
    assert said not in tables.glance(_results({(TAUGHT, 1): 0.5}), TAUGHT, main)


def test_teaching_is_compared_with_the_seeds_of_both() -> None:
    main, taught = _results({(FULL, 1): 4.0, (FULL, 2): 100.0}), _results({(TAUGHT, 1): 3.0})
    page = tables.beside(TAUGHT, taught, main, words=("taught", "untaught"))
    assert page.count("| 3.000 | 4.000 | -25.0 % |") == 6
    said = tables.taught_glance(taught, main)
    assert "COVID -25.0 %" in said
    assert "Fits took 1 to 1 times as long, half of them less than 0.8 times" in said


def test_a_race_against_a_peer_that_had_only_begun_is_open() -> None:
    races = {
        OURS: {"looks": [(1.0, 0.5)], "finished": True},
        "PatchTST": {"looks": [(9.0, 0.6)], "finished": False, "steps": 3, "max_steps": 900},
    }
    assert _race(races, "PatchTST", 1)[-2:] == ["open", "3 of 900 steps"]
    races["PatchTST"]["finished"] = True
    assert _race(races, "PatchTST", 1)[-2:] == ["yes", "ended"]
