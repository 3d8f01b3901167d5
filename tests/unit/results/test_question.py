import pytest

from equipoise.exceptions import InvalidParameterError
from equipoise.results.question import find_question


def test_a_question_that_there_is_not_names_the_nearest():
    with pytest.raises(InvalidParameterError, match=r"no question 'disparty'.*'disparity'"):
        find_question("disparty")
