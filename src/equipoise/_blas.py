"""How many threads BLAS may use."""

from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

__all__ = ["one_thread"]


def one_thread() -> AbstractContextManager[Any]:
    """Keep BLAS to one thread during a `with` block.

    In a loop over small products a second thread does little and waits at full speed in between:
    CPU seconds double, or worse when the processor is wanted elsewhere.
    """
    limit: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limit


@cache
def _libraries() -> "ThreadpoolController":
    """Return a handle of the BLAS libraries; finding them takes longer than a small audit."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
