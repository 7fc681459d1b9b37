"""Works on one partition, from when `divvy agent` starts it until it is asked to end.

    divvy agent --exec 'python3 consumer.py ledger.db {workload} {unit}' ...

The agent sets DIVVY_TOKEN: a number that only grows from owner to owner. It goes
along with every write, so that a consumer that was stopped for a while and is not
the owner any more can do no harm.
"""

import os
import signal
import sys
import threading

from ledger import Refused, advance, connect

STEP_SECONDS = 0.1
REFUSED = 3


def main():
    path, workload, unit = sys.argv[1:]
    partition = f"{workload}:{unit}"
    token = int(os.environ["DIVVY_TOKEN"])
    worker = os.environ["DIVVY_WORKER"]

    # SIGTERM says that the partition goes to somebody else, who waits for this to end:
    # the step that is being done is finished, and no other begun.
    asked_to_end = threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: asked_to_end.set())

    ledger = connect(path)
    while not asked_to_end.is_set():
        try:
            position = advance(ledger, partition, token, worker)
        except Refused as refused:
            print(f"{partition}: {worker} was refused: {refused}", flush=True)
            sys.exit(REFUSED)
        # A real one does its work here.
        asked_to_end.wait(STEP_SECONDS)
    print(f"{partition}: {worker} ended in peace after step {position}", flush=True)


if __name__ == "__main__":
    main()
