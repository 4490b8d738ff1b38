"""The model card of the pretrained weights follows from the log and from the weights."""

from pathlib import Path

import pytest

from leapts.forecasting.networks import training_facts
from leapts_pretrain.card import DECISIONS, LOG, PAGE, draw_curve, read_log, render

ROOT = Path(__file__).parents[2]


def test_the_page_is_that_of_the_committed_log_and_weights() -> None:
    page = render(read_log(ROOT / LOG), (ROOT / DECISIONS).read_text())
    assert (ROOT / PAGE).read_text() == page, "write it again: python -m leapts_pretrain card"
    assert f"{training_facts()['windows']:,}" in page
    for name in training_facts()["sets"]:
        assert f"| {name} |" in page


def test_the_last_line_of_a_step_counts_and_the_table_has_both_ends(tmp_path: Path) -> None:
    error = '"synthetic": {"relative": 0.9}, "real": {"relative": 0.8}'
    lines = [f'{{"step": {step}, "windows": {step}000, "hours": 0.1, "loss": {loss}, {error}}}' for step, loss in
             [*((step, 2.0) for step in range(1, 41)), (40, 1.5)]]  # fmt: skip
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    log = read_log(tmp_path / "log.jsonl")
    page = render(log, "| set | source |\n|---|---|\n| a | b |\n\n")
    assert len(log) == 40
    assert "| 0.0 | 0.10 | 2.000 | 0.900 | 0.800 |" in page
    assert "| 0.0 | 0.10 | 1.500 | 0.900 | 0.800 |" in page
    draw_curve(log, tmp_path / "curve.svg")
    assert "windows of training" in (tmp_path / "curve.svg").read_text()


def test_a_page_without_a_corpus_is_refused() -> None:
    with pytest.raises(ValueError, match="corpus"):
        render(read_log(ROOT / LOG), "# nothing")
