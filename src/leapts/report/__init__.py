"""What people look at: pictures of forecasts and the leaps they were made in."""

from leapts.report.picture import forecast_svg

__all__ = ["forecast_svg"]
