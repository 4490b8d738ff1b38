"""The interval of leap lengths at each scale, computed from the look-back and the horizon."""

from dataclasses import dataclass

SCALE_NAMES = ("short", "mid", "long")


@dataclass(frozen=True)
class ScaleGrid:
    """The closed intervals of leap lengths: short, mid and long, or a single one for a short horizon."""

    shortest: tuple[int, ...]
    longest: tuple[int, ...]

    @classmethod
    def for_window(cls, lookback: int, horizon: int) -> "ScaleGrid":
        """Compute the grid of the paper, whose scales end at L / 4, L / 2 and the horizon."""
        if horizon <= lookback // 4 + 1:
            return cls.single_level(horizon)
        short = max(1, min(lookback // 4, horizon - 1))
        mid = max(short + 1, min(lookback // 2, horizon - 1))
        shortest_mid = max(2, min(mid, short + 1))
        shortest_long = max(3, min(horizon, max(mid + 1, horizon // 2)))
        # The paper's minimum of 3 exceeds a horizon of 2; the long interval is then the horizon itself.
        return cls(shortest=(1, shortest_mid, min(shortest_long, horizon)), longest=(short, mid, horizon))

    @classmethod
    def single_level(cls, horizon: int) -> "ScaleGrid":
        """Make a grid with one interval, from one step to the whole horizon."""
        return cls(shortest=(1,), longest=(horizon,))

    def __len__(self) -> int:
        return len(self.longest)

    @property
    def horizon(self) -> int:
        """Return the number of steps to forecast."""
        return self.longest[-1]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the name of each scale; a single scale is called long."""
        return SCALE_NAMES[-len(self) :]
