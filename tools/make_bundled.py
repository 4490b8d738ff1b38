"""Generate the two bundled data sets that are not observations: ShopSales and RetailPromotions.

python tools/make_bundled.py            write them into src/leapts/datasets/bundled

The series follow the formulas below, with seeded noise; no real shop or product stands behind them.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

BUNDLED = Path(__file__).parents[1] / "src" / "leapts" / "datasets" / "bundled"
SEED = 2026
Array = npt.NDArray[np.float64]

# Shop: sales in the first month, growth a year, share of the yearly season, month of its peak.
SHOPS = {
    "bookshop": (4200.0, 0.02, 0.35, 12),
    "garden_center": (6100.0, 0.05, 0.60, 5),
    "ice_cream_parlor": (2600.0, 0.08, 0.85, 7),
    "ski_rental": (3300.0, -0.01, 0.80, 1),
}
# Product: sales a day, list price, price elasticity, promotions a year, factor from Friday to Sunday.
PRODUCTS = {
    "coffee": (62.0, 7.90, 2.1, 10, 1.25),
    "detergent": (35.0, 11.50, 2.6, 8, 1.40),
    "ice_cream": (48.0, 4.60, 1.6, 6, 1.55),
    "orange_juice": (85.0, 2.40, 1.9, 12, 1.15),
}
DISCOUNTS = (0.15, 0.20, 0.30)
UPLIFT = 1.25  # of a promotion beyond its lower price: leaflets, a second placement
DIP = 0.85  # in the week after a promotion, when people have stocked up


def shop_sales(years: int = 12) -> pd.DataFrame:
    """Generate monthly sales of four shops, wide: a trend times a yearly season times noise."""
    random = np.random.default_rng(SEED)
    dates = pd.date_range("2014-01-01", periods=12 * years, freq="MS")
    month = np.arange(len(dates))
    columns: dict[str, object] = {"ds": dates.strftime("%Y-%m-%d")}
    for name, (level, growth, season, peak) in SHOPS.items():
        trend = level * (1 + growth) ** (month / 12)
        wave = np.exp(season * np.cos(2 * np.pi * (month + 1 - peak) / 12))
        columns[name] = _whole(trend * wave * np.exp(random.normal(0, 0.04, len(month))))
    return pd.DataFrame(columns)


def retail_promotions(days: int = 731) -> pd.DataFrame:
    """Generate daily sales of four products, long, with their price and a promotion flag."""
    random = np.random.default_rng(SEED + 1)
    dates = pd.date_range("2024-01-01", periods=days, freq="D")
    frames = []
    for name, (level, price, elasticity, promotions, weekend) in PRODUCTS.items():
        discount = _discounts(random, days, promotions)
        is_promoted = discount > 0
        after = np.zeros(days, dtype=bool)
        for lag in range(1, 8):
            after[lag:] |= is_promoted[:-lag]
        summer = np.exp((0.5 if name == "ice_cream" else 0.08) * np.cos(2 * np.pi * (dates.day_of_year - 196) / 365.25))
        sales = level * np.where(dates.day_of_week >= 4, weekend, 1.0) * summer * (1 - discount) ** -elasticity
        sales *= np.where(is_promoted, UPLIFT, np.where(after, DIP, 1.0)) * np.exp(random.normal(0, 0.10, days))
        frames.append(
            pd.DataFrame(
                {
                    "unique_id": name,
                    "ds": dates.strftime("%Y-%m-%d"),
                    "y": _whole(sales),
                    "price": np.round(price * (1 - discount), 2),
                    "promo": is_promoted.astype(int),
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def _discounts(random: np.random.Generator, days: int, promotions: int) -> Array:
    """Draw promotions of one week, Monday to Sunday, never two in a row: the discount of each day."""
    weeks = np.zeros(days // 7 + 1)
    candidates = random.permutation(np.arange(1, len(weeks) - 1))
    wanted = promotions * days // 365
    for week in candidates:
        if np.count_nonzero(weeks) < wanted and not weeks[week - 1 : week + 2].any():
            weeks[week] = random.choice(DISCOUNTS)
    return np.repeat(weeks, 7)[:days]


def _whole(values: npt.ArrayLike) -> npt.NDArray[np.int64]:
    rounded: npt.NDArray[np.int64] = np.rint(np.asarray(values)).astype(np.int64)
    return rounded


def main() -> None:
    """Write both files."""
    for name, frame in (("shop_sales", shop_sales()), ("retail_promotions", retail_promotions())):
        frame.to_csv(BUNDLED / f"{name}.csv", index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
