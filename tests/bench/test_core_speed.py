"""The page on the core's speed shows what its results file holds."""

import core_speed
from leapts_bench import results


def test_the_page_has_the_figures_of_every_run() -> None:
    page = core_speed.PAGE.read_text(encoding="utf-8")
    lines = results.read(core_speed.RESULTS)
    assert core_speed.rendered(page, lines) == page
    for line in lines[-1:]:
        assert f"{line['sizes'][0]['sparse_over_products']:.2f}" in page


def test_a_changed_figure_changes_the_page() -> None:
    page = core_speed.PAGE.read_text(encoding="utf-8")
    lines = results.read(core_speed.RESULTS)
    lines[-1]["sizes"][0]["sparse_over_products"] = 123.456
    assert "123.46" in core_speed.rendered(page, lines)
