"""A playground in a process of its own, as a user starts it."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def playground(*directories: object) -> Iterator[str]:
    """Its address; when it is no longer needed it is stopped as by Ctrl-C, which must be clean."""
    words = [sys.executable, "-m", "internalize", "play", *map(str, directories), "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            said = process.stdout.readline()
            found = re.match(r"(http://127\.0\.0\.1:\d+) ", said)
            assert found, said + process.stderr.read()
            yield found[1]
        finally:
            process.send_signal(signal.SIGINT)
            said, errors = process.communicate(timeout=30)
        assert (process.returncode, said, errors) == (0, "Stopped.\n", "")
