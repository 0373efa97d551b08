"""What was proved is kept, and written into the page if that was asked for."""

from tests.engines.claude.proofs import BOOK
from tests.engines.proofs import Recorder

RECORDER = Recorder(BOOK, __file__.rpartition("/")[0])

pytest_runtest_makereport = RECORDER.pytest_runtest_makereport
pytest_runtest_logreport = RECORDER.pytest_runtest_logreport
pytest_sessionfinish = RECORDER.pytest_sessionfinish
