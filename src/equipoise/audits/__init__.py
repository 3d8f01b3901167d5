"""A question in, an `AuditResult` out."""
