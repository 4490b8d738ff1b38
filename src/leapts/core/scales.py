"""The length ranges a leap may have at each scale, from the look-back and the horizon alone."""

from dataclasses import dataclass

SCALE_NAMES = ("short", "mid", "long")


@dataclass(frozen=True)
class ScaleGrid:
    """The closed interval of leap lengths of each scale, shortest scale first.

    A grid has three intervals (short, mid, long) or, where the horizon is too short for a choice of scale, one.
    """

    shortest: tuple[int, ...]
    longest: tuple[int, ...]

    @classmethod
    def for_window(cls, lookback: int, horizon: int) -> "ScaleGrid":
        """The paper's grid: short and mid anchored to a quarter and a half of the look-back, long to the horizon.

        A horizon of at most a quarter of the look-back plus one has no room for three scales and gets one.
        """
        if horizon <= lookback // 4 + 1:
            return cls.single_level(horizon)
        short = max(1, min(lookback // 4, horizon - 1))
        mid = max(short + 1, min(lookback // 2, horizon - 1))
        shortest_mid = max(2, min(mid, short + 1))
        shortest_long = max(3, min(horizon, max(mid + 1, horizon // 2)))
        # As printed, the floor of 3 exceeds the horizon when that is 2: the long interval is then the horizon itself.
        return cls(shortest=(1, shortest_mid, min(shortest_long, horizon)), longest=(short, mid, horizon))

    @classmethod
    def single_level(cls, horizon: int) -> "ScaleGrid":
        """One interval over the whole horizon: a length is chosen without choosing a scale first."""
        return cls(shortest=(1,), longest=(horizon,))

    def __len__(self) -> int:
        return len(self.longest)

    @property
    def horizon(self) -> int:
        """The number of steps the leaps have to fill."""
        return self.longest[-1]

    @property
    def names(self) -> tuple[str, ...]:
        """What each scale is called; a single level spans the horizon and is called long."""
        return SCALE_NAMES[-len(self) :]
