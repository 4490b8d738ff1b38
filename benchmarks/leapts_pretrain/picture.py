"""Draw examples of the generators for the documentation."""

from pathlib import Path

import matplotlib as mpl
import numpy as np

from leapts_pretrain.blocks import standardized
from leapts_pretrain.generators import GENERATORS

COLUMNS, LENGTH, SEED = 5, 512, 7


def draw(path: Path) -> None:
    """Draw a grid of examples: a row for every generator."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(len(GENERATORS), COLUMNS, figsize=(12, 9), sharex=True, layout="constrained")
    for row, (name, entry) in zip(axes, GENERATORS.items(), strict=True):
        block = standardized(entry.generate(np.random.default_rng(SEED), 16 * COLUMNS, LENGTH))[::16]
        for axis, series in zip(row, block, strict=True):
            axis.plot(series, linewidth=0.6, color="#1f5fa8")
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set_visible(False)
        row[0].set_title(name.replace("_", " ").capitalize(), loc="left", fontsize=9)
    figure.savefig(path, dpi=110)
    plt.close(figure)
