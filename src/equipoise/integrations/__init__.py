"""Results where people work: MLflow, model cards, pytest."""
