"""Runs seeds on a Ray cluster, or on this machine with a Ray of its own (extra `[ray]`).

Ray decides where each process runs; the process is the one that `local.py` starts, so the rows are the same. The directory of
the runs must lie on a file system that all nodes share. What a lost node was training is tried again on another, from its
last checkpoint.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from internalize.checking import check_types
from internalize.errors import UserError
from internalize.launch.local import Event, Group, Job, cores, grouped, listen, start, tell, work_of

RETRIES = 3  # of a process whose node or parent is lost
PATIENCE = 60  # seconds that a retry waits for the lock of the lost process


@dataclass(frozen=True)
class Ray:
    """Where Ray runs, and what each training process is given."""

    address: str | None = None
    """of a running cluster, such as auto; left out, Ray is started on this machine and stopped afterwards"""
    cpus: float = 1.0
    """cores that Ray sets aside for each process (which trains on one thread)"""
    gpus: float | None = None
    """GPUs for each process, also a part of one; left out, 1 when the device is a GPU, else 0"""

    def __post_init__(self) -> None:
        check_types(self, "ray.")
        for name in ("cpus", "gpus"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise UserError(f"ray.{name} is {value}; it must be at least 0.")


def run_jobs_on_ray(
    jobs: Sequence[Job],
    on_event: Callable[[Job, Event], None],
    where: Ray,
    device: str = "cpu",
    together: int | None = None,
) -> None:
    """As `run_jobs`, but Ray decides how many run at once, from what each asks for and the cluster has. Raises `UserError`."""
    groups = grouped(jobs, device, together)
    if not groups:
        return
    if not find_spec("ray"):
        raise UserError("Ray is not installed; pip install 'internalize[ray]'.")
    failures: list[str] = []
    with _cluster(where.address) as ray:
        gpus = where.gpus if where.gpus is not None else float(device != "cpu")
        _check_resources(ray.cluster_resources(), where.cpus, gpus)
        remote = ray.remote(num_cpus=where.cpus, num_gpus=gpus, max_retries=RETRIES)(_train)
        # The queue lies on the node that asks, which is the one node that is never lost.
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        events = ray.util.queue.Queue(actor_options={"num_cpus": 0, "scheduling_strategy": here})
        running = {remote.remote(work_of(group, 1, device), number, events): group for number, group in enumerate(groups)}
        try:
            while running:
                ended, _ = ray.wait(list(running), timeout=0.2)
                for number, event in events.get_nowait_batch(events.qsize()):
                    if event["kind"] == "error":
                        failures.append(event["message"])
                    tell(groups[number], event, on_event)
                for task in ended:
                    failures += _failures(ray, task, running.pop(task))
        finally:
            for task in running:
                ray.cancel(task, force=True)
    if failures:
        raise UserError(" ".join(failures))


def _train(work: Mapping[str, Any], number: int, events: Any) -> int:
    """On a node: do the work in a process, and report its events. Returns how many of them are errors."""
    errors = 0
    for event in listen(start({**work, "patience": PATIENCE}), work["label"]):
        errors += event["kind"] == "error"
        events.put((number, event))
    return errors


def _failures(ray: Any, task: Any, group: Group) -> list[str]:
    """What went wrong with a task that is over, if its process did not tell."""
    label = ", ".join(job.label for job in group)
    try:
        told = ray.get(task)
    except ray.exceptions.RayError as error:
        reason = str(error).strip().splitlines()[-1]
        return [f"{label}: Ray gave up after {RETRIES} retries ({reason}); run the same command again to resume."]
    if told or all(job.finished for job in group):
        return []
    return [
        f"{label}: trained, but {group[0].directory} is not written here; the directory of the runs must lie on a file system "
        "that all nodes share."
    ]


@contextmanager
def _cluster(address: str | None) -> Iterator[Any]:
    """Ray, connected; a cluster that was started here is stopped afterwards."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a cluster that is started here reports to nobody
    import ray
    import ray.util.queue
    import ray.util.scheduling_strategies

    own = {"num_cpus": cores(), "include_dashboard": False, "object_store_memory": 100 * 2**20}
    try:
        ray.init(address=address or "local", log_to_driver=False, logging_level="error", **({} if address else own))
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise UserError(f"ray.address is {address or 'local'}; Ray cannot be reached there ({error}).") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_resources(found: Mapping[str, float], cpus: float, gpus: float) -> None:
    for name, asked in (("CPU", cpus), ("GPU", gpus)):
        if asked > found.get(name, 0):
            raise UserError(f"each process asks for {asked:g} {name}(s), and the cluster has {found.get(name, 0):g} in all.")
