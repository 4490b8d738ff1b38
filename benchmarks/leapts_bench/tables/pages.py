"""The benchmark pages as files: rendering never trains, and no number is typed by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from leapts.files import write_file
from leapts_bench import results
from leapts_bench.anomalies.page import FILE as ANOMALIES
from leapts_bench.anomalies.page import anomalies_page
from leapts_bench.results import Line
from leapts_bench.speed import FILE as SPEED_FILE
from leapts_bench.suites import DISTILLED, ENSEMBLE, SUITES, Entry, entries
from leapts_bench.tables.against_paper import averages
from leapts_bench.tables.analysis import analysis
from leapts_bench.tables.baselines import baselines
from leapts_bench.tables.charts import against_paper_chart, baselines_chart
from leapts_bench.tables.everyday import everyday_page
from leapts_bench.tables.fev import fev_page
from leapts_bench.tables.gift import SECONDS_CHART, WEIGHTS_CHART, Comparison, gift_page
from leapts_bench.tables.gift_charts import seconds_chart, weights_chart
from leapts_bench.tables.main_results import comparison, costs, whole_batches
from leapts_bench.tables.overview import BASELINES_CHART, PAPER_CHART, kinds, overview
from leapts_bench.tables.speed import speed_page
from leapts_bench.tables.studies import ablation, m4, seeds, sensitivity, synthetic
from leapts_bench.tables.summary import Results
from leapts_bench.tables.variants import distillation, ensembles

Entries = Mapping[str, Sequence[Entry]]

_LEGEND = """*here*: this code, mean over seeds, with the standard deviation where there are several. *paper*: LeapTS as
published. *difference*: here against the paper, below zero where here is better. Errors are on scaled values unless
stated otherwise; lower is better."""
_COMPARISON = """*best baseline of the paper*: the lowest error the paper prints for another model. *naive forecast*:
the last value repeated, measured here."""


def write(folder: Path, docs: Path) -> None:
    """Render the results of a folder into pages and charts of a documentation folder."""
    suites = {suite: entries(suite) for suite in SUITES}
    done = results.cut_short(folder) | results.finished(folder)
    for name, page in render(suites, done, results.read(folder / SPEED_FILE)).items():
        (docs / name).parent.mkdir(parents=True, exist_ok=True)
        write_file(docs / name, page.encode())
    write_file(docs / "benchmarks" / "anomalies.md", anomalies_page(results.read(folder / ANOMALIES)).encode())
    (docs / "images").mkdir(exist_ok=True)
    of = grouped(suites, done)
    write_file(docs / "images" / PAPER_CHART, against_paper_chart(kinds(of)))
    write_file(docs / "images" / BASELINES_CHART, baselines_chart(of["baselines"]))
    comparison_of_gift = Comparison(of["gift"])
    write_file(docs / "images" / SECONDS_CHART, seconds_chart(comparison_of_gift))
    write_file(docs / "images" / WEIGHTS_CHART, weights_chart(comparison_of_gift))


def grouped(suites: Entries, done: Mapping[str, Line]) -> dict[str, Results]:
    """Group the finished runs by suite."""
    return {suite: Results(suites.get(suite, ()), done) for suite in SUITES}


def render(suites: Entries, done: Mapping[str, Line], speed: Sequence[Line] = ()) -> dict[str, str]:
    """Render all pages, by file name, from the finished runs and the measurements of speed."""
    of = grouped(suites, done)
    studies = {
        "main": _page("Main results", _main(of)),
        "distillation": _page(
            "Knowledge distillation",
            _LEGEND,
            averages(of["distilled"], DISTILLED),
            distillation(of["distilled"], of["main"]),
        ),
        "ensembles": _page(
            "Ensembles", _LEGEND, averages(of["ensembles"], ENSEMBLE), ensembles(of["ensembles"], of["main"])
        ),
        "m4": _page("M4", _LEGEND, "## One model", m4(of["m4"]), "## Ensemble of four", m4(of["ensembles"], ENSEMBLE)),
        "synthetic": _page("Synthetic scenarios", synthetic(of["synthetic"])),
        "long-look-back": _page(
            "Long look-back", "Look-back 720 and long horizons.", _LEGEND, _COMPARISON, comparison("long", of["long"])
        ),
        "ablation": _page("Ablation", _LEGEND, ablation(of["ablation"])),
        "sensitivity": _page("Sensitivity", sensitivity(of["sensitivity"])),
        "seeds": _page("Seeds", seeds(of["seeds"])),
        "baselines": _page("Baselines", baselines(of["baselines"])),
        "analysis": _page("What drives the leaps", analysis(of["analysis"])),
        "speed": _page("Speed", speed_page(speed)),
        "gift-eval": gift_page(of["gift"]),
        "fev-bench": fev_page(of["covariates"]),
        "defaults": everyday_page(of["defaults"]),
    }
    return {"benchmarks.md": overview(of, speed), **{f"benchmarks/{name}.md": page for name, page in studies.items()}}


def _main(of: Mapping[str, Results]) -> str:
    return "\n\n".join(
        [
            _LEGEND,
            "## Averages over the horizons",
            averages(of["main"]),
            "## All horizons",
            _COMPARISON,
            comparison("main", of["main"]),
            "## ILI with and without the last incomplete batch",
            whole_batches(of["main"], of["distilled"]),
            "## Errors in original units, and training cost",
            costs(of["main"]),
        ]
    )


def _page(title: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", *(part.strip("\n") for part in parts)]) + "\n"
