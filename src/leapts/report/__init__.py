"""What people look at: reports and pictures of forecasts, and the leaps they were made in."""

from leapts.report.contents import ReportContents, collect
from leapts.report.page import report_html, write_report
from leapts.report.picture import forecast_svg

__all__ = ["ReportContents", "collect", "forecast_svg", "report_html", "write_report"]
