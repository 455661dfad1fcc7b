"""Reports: a page about runs, and its charts."""

from internalize.report.page import MAX_LOSS, stage_curve, write_page, write_report

__all__ = ["MAX_LOSS", "stage_curve", "write_page", "write_report"]
