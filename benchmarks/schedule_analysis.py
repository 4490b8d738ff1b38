"""The paper's analyses of schedules: what moves the state, which scales, how many leaps, and how states group.

Each set is fitted on its first four fifths (the last eighth of them chooses the weights) and analysed on the last
fifth, with look-back 96 and horizon 48. The sets that come as files are read from the folder LEAPTS_DATA names.

Run it:  python benchmarks/schedule_analysis.py [set ...]
"""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from leapts import LeapTS
from leapts.analysis import Volatility, by_volatility, embed, overall, representations, trace_windows
from leapts.data.catalogue import find
from leapts.data.loading import load_dataset
from leapts.data.panel import Panel
from recording import append

RESULTS = Path(__file__).parent / "results" / "schedule_analysis.jsonl"
SETS = ("Scenario1", "Scenario2", "Scenario3", "ETTh2", "ETTm2", "Exchange", "Weather")
LOOKBACK, H, STEPS, SEED = 96, 48, 1000, 1
VOLATILITIES: tuple[Volatility, ...] = ("changes", "level")


def main() -> None:
    """Analyse each set and append the figures."""
    torch.set_num_threads(1)
    for name in sys.argv[1:] or SETS:
        panel = load_dataset(find(name))
        test = int(panel.lengths[0]) // 5
        model = _fitted(panel.head(-test), {})
        unseen = panel.tail(test + LOOKBACK)
        figures: dict[str, Any] = {
            "set": name,
            "lookback": LOOKBACK,
            "h": H,
            "max_steps": STEPS,
            "seed": SEED,
            "validation": model.report_.best_validation,
        }
        for volatility in VOLATILITIES:
            traced = trace_windows(model, unseen, volatility=volatility)
            figures[volatility] = [asdict(one) for one in by_volatility(traced)]
        figures["overall"] = asdict(overall(traced))
        if name == "Scenario1":
            plain = _fitted(panel.head(-test), {"scheduling": {"kind": "none"}})
            figures["separation"] = {"LeapTS": _separation(model, unseen), "no scheduling": _separation(plain, unseen)}
        append(RESULTS, figures)
        print(figures)


def _fitted(panel: Panel, options: dict[str, Any]) -> LeapTS:
    model = LeapTS(H, LOOKBACK, val_size=int(panel.lengths[0]) // 8, max_steps=STEPS, random_seed=SEED, model=options)
    return model.fit(panel)


def _separation(model: LeapTS, panel: Panel) -> float:
    """Of the three clusters of the first scenario; a series' name starts with its cluster's letter."""
    vectors, names = representations(model, panel)
    return embed(vectors, [name[0] for name in names]).separation


if __name__ == "__main__":
    main()
