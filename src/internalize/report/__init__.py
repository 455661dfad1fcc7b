"""Reports: a page about runs, and its charts."""

from internalize.report.page import command, stage_curve, write_report

__all__ = ["command", "stage_curve", "write_report"]
