"""Launching: seeds side by side on this machine, what they will cost, and how far they are."""

from internalize.launch.local import Job, cores, run_jobs
from internalize.launch.plan import Plan, duration, make_plan
from internalize.launch.progress import display

__all__ = ["Job", "Plan", "cores", "display", "duration", "make_plan", "run_jobs"]
