"""Candidate algorithms: training sample in, algorithm out."""

from equipoise.search.frontier import (
    FeaturePath,
    FrontierRule,
    ReweightedEstimator,
    ScoreAlgorithm,
)
from equipoise.search.linear_rule import LinearRule
from equipoise.search.reweighted import LinearAlgorithm, ReweightedRule
from equipoise.search.sample import Algorithm, SelectionRule, TrainingSample
from equipoise.search.top_share import ScoreRule, TopShare

__all__ = [
    "Algorithm",
    "FeaturePath",
    "FrontierRule",
    "LinearAlgorithm",
    "LinearRule",
    "ReweightedEstimator",
    "ReweightedRule",
    "ScoreAlgorithm",
    "ScoreRule",
    "SelectionRule",
    "TopShare",
    "TrainingSample",
]
