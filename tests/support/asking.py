"""What a table answers to one declaration."""

from equipoise.data.scan import answer


def answer_of(declared):
    """Return the cells or rows; raise if there are none."""
    (found,) = answer([declared])
    if isinstance(found, Exception):
        raise found
    return found
