"""A child that does nothing: `python -m tests.daemon.sleeper`."""

import time

time.sleep(60)
