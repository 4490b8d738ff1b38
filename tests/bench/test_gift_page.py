"""The GIFT-Eval page from invented results: every score is SeasonalNaive's, times one factor for each model."""

import re
from pathlib import Path

import pytest

from leapts_bench import results
from leapts_bench.gift import gift_eval, running
from leapts_bench.gift.published import LEAKED, NAIVE, gift_models
from leapts_bench.gift.running import ENSEMBLE, FLAIR, LEAPTS, SEASONAL_NAIVE
from leapts_bench.results import Line
from leapts_bench.suites import entries
from leapts_bench.tables.gift import NOT_RUN, Comparison, gift_page
from leapts_bench.tables.gift_charts import seconds_chart, weights_chart
from leapts_bench.tables.summary import Results

NOTHING = Results([], {})


def _results(factors: dict[str, float], left_out: tuple[str, ...] = ()) -> Results:
    done: dict[str, Line] = {}
    for run in running.runs("gift"):
        if run.model in factors and run.dataset not in left_out:
            naive = gift_models()[NAIVE].scores
            scores = {metric: factors[run.model] * naive[metric][run.dataset] for metric in ("mase", "crps")}
            done[run.key] = {"key": run.key, "test": scores, "parameters": 5000, "seconds": {"core": 2.0}}
    return Results(entries("gift"), done)


def test_without_results_the_page_says_so_and_still_has_the_published_models() -> None:
    page = gift_page(NOTHING)
    assert f"| **LeapTS** | 0 of 37 | {NOT_RUN} |" in page
    assert "| statistical | 6 | FLAIR (0.928) |" in page


def test_errors_are_relative_to_seasonal_naive() -> None:
    found = Comparison(_results({LEAPTS: 0.5, ENSEMBLE: 0.25}))
    assert found.relative(found.here[LEAPTS], "mase") == pytest.approx(0.5)
    assert found.error(gift_models()[NAIVE]) == pytest.approx(1.0)
    assert found.seconds(LEAPTS) == pytest.approx(2.0 * len(gift_eval.configurations()))
    row = "| **LeapTS ensemble** | 37 of 37 | 0.250 | 0.250 | 0.250 | 0.250 | 74 | - |"
    assert row in gift_page(_results({ENSEMBLE: 0.25}))


def test_ranks_count_the_better_models_of_a_kind() -> None:
    found = Comparison(_results({LEAPTS: 0.999, ENSEMBLE: 0.01}))
    statistical = [one for one in found.rivals if one.kind == "statistical"]
    assert found.rank(LEAPTS, statistical) == "3 of 7"  # after FLAIR and auto_arima
    assert found.rank(ENSEMBLE, found.rivals) == f"1 of {len(found.rivals) + 1}"
    assert all(one.kind != LEAKED for one in found.rivals)


def test_models_are_compared_on_the_configurations_that_leapts_has_run() -> None:
    left_out = tuple(name for name in gift_eval.configurations() if not name.startswith("ett1/"))
    found = Comparison(_results({LEAPTS: 0.9}, left_out))
    assert found.configurations == [name for name in gift_eval.configurations() if name.startswith("ett1/")]
    assert found.relative(found.here[ENSEMBLE], "mase") is None
    assert found.rank(ENSEMBLE, found.rivals) == NOT_RUN


def test_the_page_says_where_leapts_loses_and_to_whom() -> None:
    page = gift_page(_results({LEAPTS: 0.9}))
    assert "- **trained per set**: in 12 of 18 groups: " in page
    assert re.search(r"M short \(xLSTM-Mixer, -\d\d\.\d %\)", page)
    assert "- **zero-shot**: in 0 of 18 groups." in gift_page(_results({LEAPTS: 0.2}))


def test_charts_mark_ours_and_name_what_is_missing() -> None:
    found = Comparison(_results({LEAPTS: 0.9}))
    for chart in (seconds_chart(found), weights_chart(found)):
        assert chart.startswith(b"<?xml")
        assert b">LeapTS</text>" in chart
        assert b"LeapTS ensemble, LeapTS-Zero: not run yet" in chart


@pytest.mark.parametrize(("name", "published"), [(SEASONAL_NAIVE, NAIVE), (FLAIR, "FLAIR")])
def test_stored_runs_of_published_models_score_as_published(name: str, published: str) -> None:
    """FLAIR draws samples, so that single configurations differ more."""
    folder = Path(__file__).parents[2] / "benchmarks" / "results"
    found = Comparison(Results(entries("gift"), results.finished(folder)))
    for metric in ("mase", "crps"):
        expected = found.error(gift_models()[published], metric=metric)
        assert found.relative(found.here[name], metric) == pytest.approx(expected, rel=0.01 if name == FLAIR else 1e-5)
