"""Evaluation: accuracy in and out of distribution, and intervals."""

from internalize.evaluation.accuracy import Accuracy, draw_splits, generate, measure
from internalize.evaluation.statistics import SUCCESS, SuccessRate, success_rate, wilson

__all__ = ["SUCCESS", "Accuracy", "SuccessRate", "draw_splits", "generate", "measure", "success_rate", "wilson"]
