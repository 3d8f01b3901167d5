"""Candidate algorithms: training sample in, algorithm out."""
