"""Evaluation: accuracy in and out of distribution, intervals, the certificate, and what explains a loss."""

from internalize.evaluation.accuracy import Accuracy, draw_splits, generate, measure
from internalize.evaluation.certificate import Certificate, certify
from internalize.evaluation.procedures import Cascade, MajorityVote, ModelProcedure, Procedure, Reply, Rule
from internalize.evaluation.search import worst_distribution
from internalize.evaluation.statistics import SUCCESS, SuccessRate, success_rate, wilson

__all__ = [
    "SUCCESS",
    "Accuracy",
    "Cascade",
    "Certificate",
    "MajorityVote",
    "ModelProcedure",
    "Procedure",
    "Reply",
    "Rule",
    "SuccessRate",
    "certify",
    "draw_splits",
    "generate",
    "measure",
    "success_rate",
    "wilson",
    "worst_distribution",
]
