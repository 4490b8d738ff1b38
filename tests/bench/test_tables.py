"""Benchmark pages from a fixed results file. Its numbers are invented; each can be checked by hand."""

from pathlib import Path

import pytest

from leapts.datasets.catalogue import find
from leapts_bench import fitting, results
from leapts_bench.runs import Job, NaiveDesign, Run
from leapts_bench.speed.plan import OURS
from leapts_bench.suites import DISTILLED, ENSEMBLE, FULL, NAIVE, NO_HIGH_LEVEL, SUITES, Entry, entries
from leapts_bench.tables import pages
from leapts_bench.tables.against_paper import losses, standing
from leapts_bench.tables.charts import against_paper_chart, baselines_chart
from leapts_bench.tables.gift import SECONDS_CHART, WEIGHTS_CHART
from leapts_bench.tables.markdown import table
from leapts_bench.tables.overview import BASELINES_CHART, PAPER_CHART, kinds
from leapts_bench.tables.published import AVERAGE, best_other, published
from leapts_bench.tables.speed import _race
from leapts_bench.tables.summary import Figure, Results, confidence_halfwidth
from leapts_bench.tables.variants import beside, distillation
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
_COVID = [("COVID", 12), ("COVID", 24)]
ENSEMBLES = [Entry(ENSEMBLE, TINY.ensemble(4).run(name, input_size=96, horizon=h, seed=1)) for name, h in _COVID]
STUDENTS = [Entry(DISTILLED, TINY.distilled(4).run(name, input_size=96, horizon=h, seed=1)) for name, h in _COVID]
SUITES_OF_GOLDEN = {
    "main": [*MAIN, Entry(NAIVE, NAIVE_RUN)],
    "distilled": STUDENTS,
    "ensembles": ENSEMBLES,
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
    """Rewrite the results file and the pages rendered from it; read them before a commit."""
    (GOLDEN / "results.jsonl").unlink(missing_ok=True)
    runs = {(run.dataset, run.horizon, run.seed): run for _, run in MAIN}
    for place, (mse, mae) in FIGURES.items():
        _record(runs[place], mse, mae)
    _record(ABLATION[1].run, 0.288, 0.330)
    _record(NAIVE_RUN, 2.5, 0.8)
    _record(ENSEMBLES[0].run, 2.75, 0.9)
    _record(ENSEMBLES[1].run, 5.0, 1.25)
    _record(STUDENTS[0].run, 2.85, 0.95)
    _record(STUDENTS[1].run, 5.0, 1.35)
    for name, page in pages.render(SUITES_OF_GOLDEN, results.finished(GOLDEN)).items():
        (GOLDEN / name).parent.mkdir(exist_ok=True)
        (GOLDEN / name).write_text(page, encoding="utf-8")


def _record(run: Job, mse: float, mae: float) -> None:
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
def rendered(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The pages of the fixed results, with training forbidden."""

    def trained(*_: object) -> None:
        raise AssertionError("a table must not train")

    monkeypatch.setattr(fitting, "fit", trained)
    return pages.render(SUITES_OF_GOLDEN, results.finished(GOLDEN))


@pytest.fixture
def page(rendered: dict[str, str]) -> str:
    """All pages in one text."""
    return "\n".join(rendered.values())


def test_the_pages_in_the_docs_are_those_of_the_stored_results(tmp_path: Path) -> None:
    """A changed setting needs new runs: without this test, the pages would still show the old ones."""
    root = Path(__file__).parents[2]
    pages.write(root / "benchmarks" / "results", tmp_path)
    for page in sorted(tmp_path.rglob("*.md")):
        name = page.relative_to(tmp_path)
        assert (root / "docs" / name).read_text() == page.read_text(), f"{name}: run python -m leapts_bench table"
    for chart in (PAPER_CHART, BASELINES_CHART, SECONDS_CHART, WEIGHTS_CHART):
        assert (root / "docs" / "images" / chart).stat().st_size < 100_000


def test_the_pages_of_fixed_results_are_those_on_record(rendered: dict[str, str]) -> None:
    for name, page in rendered.items():
        assert page == (GOLDEN / name).read_text(encoding="utf-8"), name


def test_the_overview_is_one_short_page_that_links_every_study(rendered: dict[str, str]) -> None:
    overview = rendered["benchmarks.md"]
    assert len(overview.split()) < 1200
    assert all(f"({name})" in overview for name in rendered if name != "benchmarks.md")


def test_charts_show_every_data_set_that_ran() -> None:
    of = pages.grouped(SUITES_OF_GOLDEN, results.finished(GOLDEN))
    chart = against_paper_chart(kinds(of))
    assert chart.startswith(b"<?xml")
    assert b"<!-- COVID -->" in chart
    assert b"<!-- ETTh1 -->" not in chart  # one of its horizons is missing
    assert baselines_chart(of["baselines"]).startswith(b"<?xml")


def test_a_cell_has_mean_and_spread_over_seeds(page: str) -> None:
    """COVID at 12: MSE 2.8 and 3.0 against the paper's 2.921; MAE 0.9 and 1.0 against 0.943."""
    row = "| COVID | 12 | 2.900 ± 0.141 | 2.921 | -0.7 % | 2.876 (Amplifier) | 2.500 | 0.950 ± 0.071 | 0.943 | +0.7 %"
    assert row in page


def test_an_ensemble_is_compared_with_one_model(page: str) -> None:
    """COVID at 12: 2.75 after 2.9, and 0.9 after 0.95; both below the paper on the average."""
    assert "| COVID | 12 | 2.750 | 2.900 | -5.2 % | 2.921 | 0.900 | 0.950 | -5.3 % | 0.943 |" in page
    assert "| COVID | 3.875 | 4.071 | -4.8 % | 1.075 | 1.174 | -8.4 % | 1 | yes |" in page
    assert "Ensemble: MSE and MAE at or below the paper's on 1 of 1 data sets" in page


def test_an_average_needs_every_horizon(page: str) -> None:
    assert "| COVID | average | 4.000 ± 0.141 | 4.071 |" in page
    assert "| ETTh1 | average | not run here | 0.316 | - |" in page


def test_a_set_counts_as_reached_only_when_both_metrics_are(page: str) -> None:
    assert "| ILI | 1.500 | 1.556 | -3.6 % | 0.800 | 0.738 | +8.4 % | 1 | no |" in page
    assert "| COVID | 4.000 ± 0.141 | 4.071 | -1.7 % | 1.150 ± 0.071 | 1.174 | -2.0 % | 2 | yes |" in page
    assert "One model: MSE and MAE at or below the paper's on 1 of 2 data sets" in page
    assert "One model is above the paper's MSE or MAE on ILI (MSE -3.6 %, MAE +8.4 %)." in page


def test_an_ablation_that_does_not_hold_is_stated(page: str) -> None:
    assert "the full model is NOT the best. Relative to it: w/o High-Level -1.2 %" in page


def test_runs_of_a_replaced_recipe_do_not_count() -> None:
    current = [entry for entry in MAIN if entry.run.dataset != "ILI"]
    rendered = pages.render({"main": current, "ablation": ABLATION}, results.finished(GOLDEN))
    assert all("| ILI |" not in page for page in rendered.values())


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


def test_confidence_intervals_are_those_of_student() -> None:
    """Five values with standard deviation 1, at 95 %: 2.776 / sqrt(5)."""
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
    """Runs of a data set at all horizons, with one error for each variant and seed."""
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


def test_the_naive_forecast_is_compared_with_every_kind_of_model() -> None:
    main = _results({(FULL, 1): 3.0, (NAIVE, 1): 1.0})
    assert standing(main).below_naive == ("COVID",)
    assert standing(_results({(DISTILLED, 1): 2.0}), DISTILLED, main).below_naive == ("COVID",)
    assert standing(_results({(DISTILLED, 1): 0.5}), DISTILLED, main).below_naive == ()
    said = losses({"One model": standing(main)}, Results([], {}), Results([], {}))
    assert any("naive forecast" in one and "COVID" in one for one in said)


def test_distillation_is_compared_with_the_seeds_of_both() -> None:
    main, students = _results({(FULL, 1): 4.0, (FULL, 2): 100.0}), _results({(DISTILLED, 1): 3.0})
    page = beside(DISTILLED, students, main, words=("distilled", "one model"))
    assert page.count("| 3.000 | 4.000 | -25.0 % |") == 6
    said = distillation(students, main)
    assert "COVID -25.0 %" in said
    assert "1 to 1 times as long" in said
    assert "median 0.8" in said


def test_a_race_against_a_baseline_that_had_only_begun_is_open() -> None:
    races = {
        OURS: {"looks": [(1.0, 0.5)], "finished": True},
        "PatchTST": {"looks": [(9.0, 0.6)], "finished": False, "steps": 3, "max_steps": 900},
    }
    assert _race(races, "PatchTST", 1)[-2:] == ["open", "3 of 900 steps"]
    races["PatchTST"]["finished"] = True
    assert _race(races, "PatchTST", 1)[-2:] == ["yes", "ended"]
