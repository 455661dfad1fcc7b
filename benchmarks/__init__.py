"""Benchmarks: the engine against what a researcher would otherwise write, side by side in one run."""
