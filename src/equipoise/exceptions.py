"""Every error and warning that equipoise raises.

::

    EquipoiseError
    ├── InvalidParameterError (ValueError)      an argument is wrong
    ├── DataError (ValueError)                  the table is wrong
    │   ├── ColumnNotFoundError
    │   ├── MissingValuesError
    │   ├── NotBinaryError
    │   └── GroupTooSmallError
    ├── EstimationError (ArithmeticError)       the numbers have no answer
    │   ├── ConvexHullError
    │   └── ConvergenceError
    ├── ResourceError (OSError)                 memory, disk or a cluster gave out
    └── MissingDependencyError (ImportError)    an optional package is absent
    EquipoiseWarning (UserWarning)
    ├── ApproximationWarning
    └── SmallGroupWarning
"""

__all__ = [
    "ApproximationWarning",
    "ColumnNotFoundError",
    "ConvergenceError",
    "ConvexHullError",
    "DataError",
    "EquipoiseError",
    "EquipoiseWarning",
    "EstimationError",
    "GroupTooSmallError",
    "InvalidParameterError",
    "MissingDependencyError",
    "MissingValuesError",
    "NotBinaryError",
    "ResourceError",
    "SmallGroupWarning",
]


class EquipoiseError(Exception):
    """Base of every error that equipoise raises on purpose."""


class InvalidParameterError(EquipoiseError, ValueError):
    """An argument has a value that it cannot have."""


class DataError(EquipoiseError, ValueError):
    """The table does not hold what the audit needs."""


class ColumnNotFoundError(DataError):
    """A named column is not in the table."""


class MissingValuesError(DataError):
    """A column has missing values and `missing="raise"`."""


class NotBinaryError(DataError):
    """A rate needs a column of zeros and ones."""


class GroupTooSmallError(DataError):
    """A group has too few rows for the test asked for."""


class EstimationError(EquipoiseError, ArithmeticError):
    """The data admit no answer to the question asked."""


class ConvexHullError(EstimationError):
    """The hypothesised value lies outside the convex hull of the data."""


class ConvergenceError(EstimationError):
    """An iteration stopped before it reached its tolerance."""


class ResourceError(EquipoiseError, OSError):
    """The machine gave out, not the data: memory, disk, a stream or a cluster."""


class MissingDependencyError(EquipoiseError, ImportError):
    """An optional package is needed and not installed."""


class EquipoiseWarning(UserWarning):
    """Base of every warning that equipoise emits."""


class ApproximationWarning(EquipoiseWarning):
    """A large-sample approximation is used outside its safe range."""


class SmallGroupWarning(EquipoiseWarning):
    """A group is small enough for its interval to be unreliable."""
