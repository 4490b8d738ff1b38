"""What people look at: reports of forecasts and the leaps they were made in."""

from leapts.report.contents import ReportContents, collect
from leapts.report.page import report_html, write_report

__all__ = ["ReportContents", "collect", "report_html", "write_report"]
