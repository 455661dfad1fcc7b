"""Reports: a page about runs, and its charts."""

from internalize.report.page import stage_curve, write_page, write_report

__all__ = ["stage_curve", "write_page", "write_report"]
