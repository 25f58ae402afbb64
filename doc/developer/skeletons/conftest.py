"""The skeletons are tested with the seeds of the tests."""

from tests.conftest import pytest_generate_tests  # noqa: F401
