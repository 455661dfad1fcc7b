"""Launching: seeds side by side on this machine or on a Ray cluster, what they will cost, and how far they are."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from internalize.launch.local import Job, cores, run_jobs
    from internalize.launch.plan import Plan, duration, make_plan
    from internalize.launch.progress import display
    from internalize.launch.ray import Ray, run_jobs_on_ray
else:
    from internalize.lazy import lazily

    __getattr__ = lazily(
        __name__,
        {
            "internalize.launch.local": "Job cores run_jobs",
            "internalize.launch.plan": "Plan duration make_plan",
            "internalize.launch.progress": "display",
            "internalize.launch.ray": "Ray run_jobs_on_ray",
        },
    )

__all__ = ["Job", "Plan", "Ray", "cores", "display", "duration", "make_plan", "run_jobs", "run_jobs_on_ray"]
