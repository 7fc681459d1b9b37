"""What the consumers write to: an SQLite file that refuses who was owner before.

Every partition has a row with the highest token that was ever seen. A write
brings its own token, and the transaction that writes compares the two. This is
the whole fence, and any database can do it.

    python3 ledger.py FILE owners     who wrote last, by partition
    python3 ledger.py FILE audit      looks for writes that the fence let through
"""

import sqlite3
import sys

TABLES = """
CREATE TABLE IF NOT EXISTS positions (
    partition TEXT PRIMARY KEY, token INTEGER NOT NULL, position INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS writes (
    number INTEGER PRIMARY KEY, partition TEXT NOT NULL, token INTEGER NOT NULL,
    worker TEXT NOT NULL, position INTEGER NOT NULL);
"""


class Refused(Exception):
    """Somebody with a higher token is owner now."""


def connect(path):
    # Transactions are begun by hand, and wait for those of other processes.
    ledger = sqlite3.connect(path, timeout=30, isolation_level=None)
    ledger.execute("PRAGMA synchronous = NORMAL")
    # Only one process at a time may see that they are missing.
    ledger.execute("BEGIN IMMEDIATE")
    for statement in filter(str.strip, TABLES.split(";")):
        ledger.execute(statement)
    ledger.execute("COMMIT")
    return ledger


def advance(ledger, partition, token, worker):
    """Goes on by one step, unless a higher token was seen; gives the position."""
    ledger.execute("BEGIN IMMEDIATE")
    try:
        row = ledger.execute(
            "SELECT token, position FROM positions WHERE partition = ?", [partition]
        ).fetchone()
        highest, position = row or (0, 0)
        if token < highest:
            raise Refused(f"token {token} is below {highest}")
        position += 1
        ledger.execute(
            "INSERT OR REPLACE INTO positions VALUES (?, ?, ?)", [partition, token, position]
        )
        ledger.execute(
            "INSERT INTO writes (partition, token, worker, position) VALUES (?, ?, ?, ?)",
            [partition, token, worker, position],
        )
        ledger.execute("COMMIT")
    except BaseException:
        ledger.execute("ROLLBACK")
        raise
    return position


def owners(ledger):
    """Who wrote last, by partition: worker, token, and how far it is."""
    rows = ledger.execute(
        "SELECT partition, worker, token, position FROM writes WHERE number IN"
        " (SELECT max(number) FROM writes GROUP BY partition) ORDER BY partition"
    )
    for partition, worker, token, position in rows:
        print(f"{partition} {worker} {token} {position}")


def audit(ledger):
    """Reads all writes in the order in which they were made."""
    seen, count = {}, 0
    rows = ledger.execute(
        "SELECT number, partition, token, worker, position FROM writes ORDER BY number"
    )
    for number, partition, token, worker, position in rows:
        highest, last = seen.get(partition, (0, 0))
        if token < highest:
            sys.exit(f"write {number}: {worker} wrote {partition} under {token}, after {highest}")
        if position != last + 1:
            sys.exit(f"write {number}: {partition} went from {last} to {position}")
        seen[partition], count = (token, position), count + 1
    print(f"{count} writes to {len(seen)} partitions: each one step on, none under an older token")


if __name__ == "__main__":
    {"owners": owners, "audit": audit}[sys.argv[2]](connect(sys.argv[1]))
