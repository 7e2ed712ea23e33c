# %% start
import io
import logging
import logging.handlers
import queue

written = io.StringIO()
records = queue.Queue()
listener = logging.handlers.QueueListener(records, logging.StreamHandler(written))
listener.start()
logger = logging.getLogger("queued")
logger.addHandler(logging.handlers.QueueHandler(records))
logger.warning("one")

# %% after
import time

if "listener" in globals():
    logger.warning("two")
    until = time.monotonic() + 20
    while "two" not in written.getvalue():
        assert time.monotonic() < until, written.getvalue()
        time.sleep(0.05)
