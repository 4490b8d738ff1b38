"""The result of one unit of a stress suite."""

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

_MOST_SHOWN = 5

# Must not be in a response: paths, classes and tracebacks.
INNARDS = re.compile(r"Traceback|File \"|\.py\b|leapts\.|object at 0x|site-packages|/(?:usr|home|root|tmp|work|proc)/")


@dataclass
class Outcome:
    """The number of cases by outcome, and the failures."""

    ends: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)  # the maximum of each figure

    @property
    def cases(self) -> int:
        """Return the number of cases."""
        return self.ends.total()

    def count(self, end: str, cases: int = 1) -> None:
        """Count cases with an allowed outcome."""
        self.ends[end] += cases

    def fail(self, message: str) -> None:
        """Record a failed case."""
        self.ends["failed"] += 1
        self.failures.append(message[:500])

    def most(self, name: str, value: float) -> None:
        """Record the maximum of a figure."""
        self.figures[name] = max(value, self.figures.get(name, value))

    def to_line(self) -> dict[str, Any]:
        """Return a result line: all counts, and the first failures."""
        return {
            "cases": self.cases,
            "ends": dict(sorted(self.ends.items())),
            "failed": len(self.failures),
            "failures": self.failures[:_MOST_SHOWN],
            "figures": {name: round(value, 6) for name, value in sorted(self.figures.items())},
        }
