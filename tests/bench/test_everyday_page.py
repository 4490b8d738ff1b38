"""The page of the defaults from invented results, each of which can be checked by hand."""

from leapts_bench.everyday import running, sets
from leapts_bench.everyday.running import LEAPTS, SYMMETRIC
from leapts_bench.results import Line
from leapts_bench.suites import entries
from leapts_bench.tables.everyday import everyday_page
from leapts_bench.tables.markdown import NOT_RUN
from leapts_bench.tables.summary import Results

MASE = {"Naive": 2.0, "SeasonalNaive": 1.0, "Drift": 4.0, "HistoricMean": 3.0, "AutoETS": 1.1, LEAPTS: 0.99}
QUANTILES = {"crossings": 0, "pairs": 10, "outside": 0, "values": 20}


def _results(mase: dict[str, float], behind: tuple[str, ...] = ()) -> Results:
    done: dict[str, Line] = {}
    for run in running.runs():
        if run.model not in (*mase, SYMMETRIC):
            continue
        error = mase.get(run.model, 1.0) * (1.2 if run.model == LEAPTS and run.dataset in behind else 1)
        test: dict[str, float] = {"mase": error, "mae": error, "fitted": 100, "series": 1, "windows": 5}
        if run.model in (LEAPTS, SYMMETRIC):
            factor = 1.0 if run.model == LEAPTS else 1.25
            test |= {"crps": 0.1 * factor, "coverage_80": 0.83, "coverage_95": 0.94, **QUANTILES}
        if run.model == LEAPTS:
            test |= {"coverage_total": 0.78, "coverage_independent": 0.5}
        done[run.key] = {"key": run.key, "test": test, "parameters": 1, "seconds": {"core": 3.0}}
    return Results(entries("defaults"), done)


def test_without_results_the_page_says_so() -> None:
    page = everyday_page(Results([], {}))
    assert f"| nile_yearly | {NOT_RUN} | {NOT_RUN} |" in page
    assert f"LeapTS: {NOT_RUN}." in page


def test_leapts_is_held_to_the_best_simple_forecast_of_each_set() -> None:
    page = everyday_page(_results(MASE))
    row = f"| nile_yearly | 100 | 0.990 | 1.000 (SeasonalNaive) | 0.990 | 1.100 | {NOT_RUN} | 3 |"
    assert row in page
    assert "Worst ratio to the best simple forecast: 0.990" in page
    assert "more than 5 % behind it on 0 of 13 sets." in page
    assert "- Against AutoETS, in geometric mean: -10.0 % on 13 of 13 sets; the error is lower on 13 of them." in page
    assert f"- Against AutoTheta, in geometric mean: {NOT_RUN}." in page


def test_sets_on_which_leapts_is_behind_are_named() -> None:
    page = everyday_page(_results(MASE, behind=("nile_yearly",)))
    assert "Worst ratio to the best simple forecast: 1.188 (nile_yearly); more than 5 % behind it on 1 of 13" in page


def test_a_simple_forecast_that_was_not_run_leaves_no_best_one() -> None:
    assert f"| nile_yearly | 100 | 0.990 | {NOT_RUN} | {NOT_RUN} |" in everyday_page(_results({LEAPTS: 0.99}))


def test_quantiles_and_totals_are_compared_over_the_sets() -> None:
    page, count = everyday_page(_results(MASE)), len(sets.SMALL) + len(sets.M4) + len(sets.GIFT)
    assert f"lower on {count} of {count} sets, -20.0 % in geometric mean" in page
    assert "difference to 80 % coverage: 3.0 points for learned quantiles (goal: at most 3), 3.0 for" in page
    assert "difference to 95 % coverage: 1.0 points" in page
    assert f"Of learned quantiles: 0 of {10 * count} pairs cross, 0 of {20 * count} values" in page
    assert f"Mean coverage over {count} sets: 78.0 % from sample paths, 50.0 % from independent draws" in page
    assert "2.0 and 30.0 points (goal: at most 5)" in page
