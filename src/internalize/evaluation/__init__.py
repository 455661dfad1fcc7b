"""Evaluation: accuracy in and out of distribution, and intervals."""

from internalize.evaluation.accuracy import Accuracy, draw_splits, generate, measure
from internalize.evaluation.statistics import wilson

__all__ = ["Accuracy", "draw_splits", "generate", "measure", "wilson"]
