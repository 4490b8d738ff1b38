"""Explanations in plain words."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from leapts.messages import counted

if TYPE_CHECKING:
    from leapts.explanation.ledger import Explanation


def in_words(explanation: "Explanation", place: int) -> str:
    """Describe the forecast of one series: the share of the leaps first, then every part, then what it depends on."""
    ledger, h = explanation.ledger, explanation.values.shape[1]
    digits = _digits(float(explanation.size[place]))
    means = dict(zip(ledger.names, ledger.parts[place].mean(1).tolist(), strict=True))
    leaps = [means.pop(name) for name in ledger.names if name.startswith("leap ")]
    level, mean = means.pop("level"), float(explanation.values[place].mean())
    text = f"{explanation.panel.series[place]}: {mean:.{digits}f} on average over {counted(h, 'step')}. "
    if explanation.gate is None:
        text += "The model has no leaps. "
    else:
        means["leaps"] = sum(leaps)
        share = float(explanation.leaps_share[place])
        text += f"The gate is {explanation.gate:.2f}: leaps make {share:.0%} of what is added to the level. "
    added = ", ".join(f"{name} {value:+.{digits}f}" for name, value in means.items())
    effect = explanation.effects[place].sum(0).numpy()
    first, last = _strongest(effect, h)
    steps = f"{first} to {last} steps" if first != last else counted(first, "step")
    total = effect[len(effect) - first : len(effect) - last + 1].sum()
    return (
        f"{text}Its mean is the level of the window, {level:.{digits}f}; {added}. Of the history, the values {steps} "
        f"back move the total the most: {total:+.{digits}f} by their difference from the mean of the look-back."
    )


def _strongest(effect: npt.NDArray[np.float64], width: int) -> tuple[int, int]:
    """Find the run of a quarter of the look-back or of the horizon with the largest total effect; in steps back."""
    width = max(1, min(width, len(effect) // 4))
    sums = np.abs(np.convolve(effect, np.ones(width), "valid"))
    end = int(sums.argmax()) + width
    return len(effect) - end + width, len(effect) - end + 1


def _digits(size: float) -> int:
    """Digits after the point that show a thousandth of a number."""
    return int(max(0, min(6, 3 - np.floor(np.log10(size)) - 1)))
