"""Render the model card of the pretrained weights: the curve of training, and what they were trained on."""

import json
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl

from leapts.forecasting.networks import WEIGHTS, load_universal, training_facts

LOG = Path("benchmarks/results/pretrain.jsonl")
PAGE, CURVE = Path("docs/benchmarks/pretraining.md"), Path("docs/images/pretraining.svg")
DECISIONS = Path("docs/decisions/leapts-zero.md")
_ROWS = 12  # of the log, spread over it

_PAGE = """# LeapTS-Zero: model card

This page is written by `python -m leapts_pretrain card` from the weights of the package and from
`{log}`, the log of their training.

| | |
|---|---|
| use | zero-shot and fine-tuned forecasts of single series ([how](../how-to/zero-shot.md)) |
| weights | {weights:,}, in half precision ({size:.1f} MB) |
| windows of training | {windows:,} |
| hours of one core | {hours:.2f} |
| seed | {seed} |
| error relative to the seasonal naive forecast, synthetic / real validation windows | {synthetic:.3f} / {real:.3f} |
| sets of real series | {sets} ([licences](../decisions/leapts-zero.md#real-series)) |
| never seen | the sets of GIFT-Eval and fev-bench, those of the paper, and M4's test parts; refused by code |
| limits | one series at a time, no covariates, seasons up to 256 steps; not calibrated on your data |

M4's training parts are among the real series, so errors on M4 are no zero-shot results. Errors on test sets are in
[GIFT-Eval](gift-eval.md).

## The curve

The error is the geometric mean of the ratio of the error to that of a seasonal naive forecast, window by window, with
the running mean of the weights. The windows come from sets that training never sees.

![Relative error against windows of training](../images/pretraining.svg)

| windows (million) | hours of one core | loss | relative, synthetic | relative, real |
|---|---|---|---|---|
{rows}

## Real series

{corpus}
"""


def read_log(path: Path) -> list[dict[str, Any]]:
    """Read the validation checks of a run; of repeated steps, the last line counts."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return list({line["step"]: line for line in lines}.values())


def render(log: list[dict[str, Any]], decisions: str, weights: Path = WEIGHTS) -> str:
    """Fill in the page from the log, the facts in the weights file, and the table of the corpus."""
    facts = training_facts(weights)
    places = sorted({round(place * (len(log) - 1) / (_ROWS - 1)) for place in range(_ROWS)})
    rows = [
        f"| {one['windows'] / 1e6:.1f} | {one['hours']:.2f} | {one['loss']:.3f} | {one['synthetic']['relative']:.3f} "
        f"| {one['real']['relative']:.3f} |"
        for one in (log[place] for place in places)
    ]
    table = re.search(r"^\| set \|.*?(?=\n\n)", decisions, re.DOTALL | re.MULTILINE)
    if table is None:
        raise ValueError(f"{DECISIONS} has no table of the corpus")
    return _PAGE.format(
        log=LOG,
        weights=sum(weight.numel() for weight in load_universal(weights).parameters()),
        size=weights.stat().st_size / 1e6,
        windows=facts["windows"],
        hours=facts["hours"],
        seed=facts["seed"],
        synthetic=facts["synthetic"]["relative"],
        real=facts["real"]["relative"],
        sets=len(facts["sets"]),
        rows="\n".join(rows),
        corpus=table.group(),
    )


def draw_curve(log: list[dict[str, Any]], path: Path) -> None:
    """Draw the relative errors against the windows of training."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    with mpl.rc_context({"svg.hashsalt": "leapts", "svg.fonttype": "none"}):
        figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
        for name, color in (("synthetic", "#1f5fa8"), ("real", "#c25b12")):
            errors = [one[name]["relative"] for one in log]
            axis.plot([one["windows"] / 1e6 for one in log], errors, marker=".", color=color, label=name)
        axis.set(xlabel="windows of training (million)", ylabel="error relative to seasonal naive")
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def write_card(root: Path = Path()) -> None:
    """Write the page and its curve."""
    log = read_log(root / LOG)
    (root / PAGE).write_text(render(log, (root / DECISIONS).read_text()))
    draw_curve(log, root / CURVE)
