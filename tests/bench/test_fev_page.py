"""The fev-bench page from invented results: every score is SeasonalNaive's, times one factor for each model."""

from leapts_bench.gift import running
from leapts_bench.gift.published import FEV_NAIVE, fev_models
from leapts_bench.gift.running import LEAPTS
from leapts_bench.results import Line
from leapts_bench.suites import entries
from leapts_bench.tables.fev import fev_page
from leapts_bench.tables.gift import NOT_RUN
from leapts_bench.tables.summary import Results


def _results(factor: float, *left_out: str) -> Results:
    done: dict[str, Line] = {}
    naive = fev_models()[FEV_NAIVE].scores
    for run in running.runs("covariates"):
        if run.model == LEAPTS and run.dataset not in left_out:
            scores = {metric: factor * naive[metric][run.dataset] for metric in ("sql", "mase")}
            done[run.key] = {"key": run.key, "test": scores, "parameters": 5000, "seconds": {"core": 2.0}}
    return Results(entries("covariates"), done)


def test_without_results_the_page_says_so_and_still_has_the_published_models() -> None:
    page = fev_page(Results([], {}))
    assert f"| LeapTS | 0 of 11 | {NOT_RUN} | {NOT_RUN} | {NOT_RUN} |" in page
    assert "| 1 | TabPFN-TS-3 | pretrained, with covariates | 0.433 | 0.551 |" in page
    assert f"| walmart | 2.034 / 1.524 | {NOT_RUN} | {NOT_RUN} |" in page


def test_leapts_has_its_place_among_models_that_saw_no_test_data() -> None:
    page = fev_page(_results(0.5))
    assert "| LeapTS | 11 of 11 | 0.500 | 0.500 | 22 |" in page
    assert "| 6 | **LeapTS** | trained per set, without covariates | 0.500 | 0.500 |" in page
    assert "| - | TimesFM-2.5 | test data leaked | 0.507 | 0.638 |" in page


def test_a_missing_task_leaves_no_mean() -> None:
    assert f"| LeapTS | 10 of 11 | {NOT_RUN} | {NOT_RUN} | {NOT_RUN} |" in fev_page(_results(0.5, "walmart"))
