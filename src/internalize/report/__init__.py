"""Reports: a page about runs, and its charts."""

from internalize.report.page import MAX_LOSS, render_page, stage_curve, write_report

__all__ = ["MAX_LOSS", "render_page", "stage_curve", "write_report"]
