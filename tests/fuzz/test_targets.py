"""A short run of the fuzzers: right inputs with any bytes cut out, put in or changed."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.targets import SEEDS, TARGETS


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_mangled_file_ends_in_one_sentence(name, data):
    content = data.draw(st.sampled_from(SEEDS[name]))
    for _ in range(data.draw(st.integers(0, 4))):
        start = data.draw(st.integers(0, len(content)))
        stop = data.draw(st.integers(start, min(len(content), start + 12)))
        content = content[:start] + data.draw(st.binary(max_size=12)) + content[stop:]
    TARGETS[name](content)


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(content=st.binary(max_size=200))
def test_any_bytes_end_in_one_sentence(name, content):
    TARGETS[name](content)
