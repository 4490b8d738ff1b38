"""What one unit of a campaign found."""

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

_MOST_SHOWN = 5

# What no answer to a stranger may hold: paths, classes, and the way an error took.
INNARDS = re.compile(r"Traceback|File \"|\.py\b|leapts\.|object at 0x|site-packages|/(?:usr|home|root|tmp|work|proc)/")


@dataclass
class Outcome:
    """How many cases were tried, how each ended, and which of them broke the law."""

    ends: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)  # the largest of each kind that was seen

    @property
    def cases(self) -> int:
        """How many were tried."""
        return self.ends.total()

    def count(self, end: str, cases: int = 1) -> None:
        """Cases that ended as they may."""
        self.ends[end] += cases

    def fail(self, message: str) -> None:
        """A case that ended as it may not."""
        self.ends["failed"] += 1
        self.failures.append(message[:500])

    def most(self, name: str, value: float) -> None:
        """Remember the largest value of a figure."""
        self.figures[name] = max(value, self.figures.get(name, value))

    def to_line(self) -> dict[str, Any]:
        """For the results file: all counts, and the first of the failures."""
        return {
            "cases": self.cases,
            "ends": dict(sorted(self.ends.items())),
            "failed": len(self.failures),
            "failures": self.failures[:_MOST_SHOWN],
            "figures": {name: round(value, 6) for name, value in sorted(self.figures.items())},
        }
