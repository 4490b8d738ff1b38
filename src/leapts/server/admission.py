"""Who may wait, and who is better told at once to come again."""

import math
from weakref import WeakKeyDictionary

from leapts.forecasting.arrays import ArrayForecaster
from leapts.model.network import Record
from leapts.server.problems import busy

_MEMORY, _FADING = 0.7, 0.995  # how much of what was counts beside what is: of a pace, and of the largest request

_SHORT = 0.005  # seconds
_ROUNDING = 1.01  # what is added up and taken off again is never exact


class Queue:
    """How much work is waiting, in seconds of it, and who may still join.

    Where more is asked for than can be done, waiting grows without end, for everyone. So whoever would have to wait for
    more work than the largest request of late makes by itself is asked to come again, at once.
    """

    def __init__(self, most: float) -> None:
        """Begins empty.

        Args:
            most: Seconds of work that anyone may be asked to wait for, however small the requests are.
        """
        self.ahead = 0.0
        self._most = most
        self._largest = 0.0
        self._paces: WeakKeyDictionary[ArrayForecaster, dict[Record, float]] = WeakKeyDictionary()

    def estimate(self, forecaster: ArrayForecaster, record: Record, rows: int) -> float:
        """Seconds that so many rows take."""
        return rows * self._paces.get(forecaster, {}).get(record, forecaster.row_seconds)

    def learn(self, forecaster: ArrayForecaster, record: Record, rows: int, seconds: float) -> None:
        """Remember what a pass took; a short one says more of what a pass costs than of what its rows do."""
        if seconds < _SHORT:
            return
        paces = self._paces.setdefault(forecaster, {})
        pace = seconds / rows
        paces[record] = pace + _MEMORY * (paces.get(record, pace) - pace)

    def require_room(self, seconds: float = 0.0) -> None:
        """Refuse who would have to wait too long.

        Raises:
            Problem: When too much is waiting already.
        """
        if self.ahead > _ROUNDING * max(self._most, self._largest, seconds):
            detail = f"requests that take {self.ahead:.2f} s are waiting already"
            raise busy(detail, max(1, math.ceil(self.ahead)), limit="a higher --max-wait")

    def join(self, seconds: float) -> None:
        """Wait with so much work, until `leave`.

        Raises:
            Problem: When too much is waiting already.
        """
        self.require_room(seconds)
        self._largest = max(seconds, self._largest * _FADING)
        self.ahead += seconds

    def leave(self, seconds: float) -> None:
        """So much work is done, or given up."""
        self.ahead -= seconds
