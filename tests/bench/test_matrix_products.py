"""The decision page on speed has the figures of the results file."""

from leapts_bench import results
from leapts_bench.speed import matrix_products


def test_the_page_has_the_figures_of_every_run() -> None:
    page = matrix_products.PAGE.read_text(encoding="utf-8")
    lines = results.read(matrix_products.RESULTS)
    assert matrix_products.rendered(page, lines) == page
    for line in lines[-1:]:
        assert f"{line['sizes'][0]['sparse_over_products']:.2f}" in page


def test_a_changed_figure_changes_the_page() -> None:
    page = matrix_products.PAGE.read_text(encoding="utf-8")
    lines = results.read(matrix_products.RESULTS)
    lines[-1]["sizes"][0]["sparse_over_products"] = 123.456
    assert "123.46" in matrix_products.rendered(page, lines)
