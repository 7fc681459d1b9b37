#!/usr/bin/env python3
"""An independent implementation of divvy's native placement, and the source of native.json.

Written from the definitions in the crate's documentation, not from its code, so that the vectors
test the one against the other. It also serves whoever has to place partitions in another language.
The output never changes: a difference means that partitions would move.

    pip install xxhash && python3 reference.py > native.json
"""

import json
import math
import struct

import xxhash

M32, M64 = 2**32 - 1, 2**64 - 1
WORKER_DOMAIN = int.from_bytes(b"worker", "big")
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def key_hash(text, seed=0):
    return xxhash.xxh3_64_intdigest(text.encode(), seed)


def worker_identity(worker, seed):
    return xxhash.xxh3_128_intdigest(worker.encode(), seed ^ WORKER_DOMAIN)


def ln(x):
    """Natural logarithm by the series of atanh, in a fixed order of IEEE 754 operations."""
    mantissa, exponent = math.frexp(x)
    mantissa, exponent = mantissa * 2.0, exponent - 1
    if mantissa > math.sqrt(2.0):
        mantissa, exponent = mantissa * 0.5, exponent + 1
    s = (mantissa - 1.0) / (mantissa + 1.0)
    square, series = s * s, 0.0
    for k in range(11, -1, -1):
        series = series * square + 1.0 / (2 * k + 1)
    return exponent * math.log(2.0) + 2.0 * s * series


def pair_hash(partition, worker, seed=0):
    key, identity = key_hash(partition, seed), worker_identity(worker, seed)
    x = ((key & M32) * (identity & M32 | 1) + (identity >> 32 & M32)) & M32
    x = x ^ (x >> 16) ^ (key >> 32)
    return x * (identity >> 64 & M32 | 1) & M32


def score(pair, weight):
    return weight / -ln((pair + 0.5) / 2.0**32)


def rendezvous(partitions, workers, seed=0):
    owners = []
    for partition in partitions:
        hashes = [pair_hash(partition, worker, seed) for worker, _ in workers]
        best = max(
            range(len(workers)), key=lambda i: (score(hashes[i], workers[i][1]), hashes[i], -i)
        )
        owners.append(best)
    return owners


def mix64(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & M64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & M64
    return z ^ z >> 31


def consistent_hash(partitions, workers, virtual_nodes=150, seed=0):
    points = []
    for index, (worker, weight) in enumerate(workers):
        counter = worker_identity(worker, seed) & M64
        for _ in range(max(1, math.floor(virtual_nodes * weight + 0.5))):
            counter = counter + 0x9E3779B97F4A7C15 & M64
            points.append((mix64(counter) >> 32, index))
    points.sort()
    owners = []
    for partition in partitions:
        position = key_hash(partition, seed) >> 32
        after = [point for point in points if point[0] >= position]
        owners.append((after or points)[0][1])
    return owners


def filtered_rendezvous(partitions, workers, seed=0):
    """Rendezvous among those who stand in the partition's one of 4096 buckets, 32 of which each worker is in."""
    buckets = {}
    for entry in workers:
        start = worker_identity(entry[0], seed) >> 64
        for seat in range(1, 33):
            place = mix64(start + seat * 0x9E3779B97F4A7C15 & M64) >> 52
            if entry not in buckets.setdefault(place, []):
                buckets[place].append(entry)
    owners = []
    for partition in partitions:
        candidates = buckets.get(mix64(key_hash(partition, seed)) >> 52) or workers
        owners.append(workers.index(candidates[rendezvous([partition], candidates, seed)[0]]))
    return owners


def round_robin(partitions, workers):
    return [index % len(workers) for index in range(len(partitions))]


def digest(owners):
    return "%016x" % xxhash.xxh64_intdigest(b"".join(struct.pack("<I", o) for o in owners), 0)


def main():
    keys = ["", "a", "hello", "user-1", "entity-42", "naïve-🦀", "customer-4711", "x" * 300]
    pairs = []
    for partition in ["default:0", "default:17", "tool001:chamber1", "größe:日本"]:
        for worker in ["worker-0", "worker-1", "host1:9000", "default:0"]:
            for seed, weight in [(0, 1.0), (0, 2.5), (7, 1.0), (M64, 0.125)]:
                pair = pair_hash(partition, worker, seed)
                bits = struct.unpack("<Q", struct.pack("<d", score(pair, weight)))[0]
                pairs.append(
                    {
                        "partition": partition,
                        "worker": worker,
                        "seed": str(seed),
                        "weight": weight,
                        "hash": "%08x" % pair,
                        "score_bits": "%016x" % bits,
                    }
                )

    def shards(count):
        return sorted(("default:%d" % i for i in range(count)), key=str.encode)

    def numbered(count):
        return sorted([("worker-%d" % i, 1.0) for i in range(count)], key=lambda w: w[0].encode())

    mixed = [("big", 3.0), ("half", 0.5), ("one", 1.0), ("two", 2.25)]
    cases = []

    def case(strategy, workers, count, owners, **options):
        entry = {"strategy": strategy, "workers": [[w, weight] for w, weight in workers]}
        entry.update(options)
        entry["shards"] = count
        if len(workers) <= len(DIGITS):
            entry["owners"] = "".join(DIGITS[o] for o in owners)
        entry["digest"] = digest(owners)
        cases.append(entry)

    for workers, count in [(numbered(3), 512), (mixed, 512), (numbered(11), 256), (numbered(200), 512)]:
        partitions = shards(count)
        for seed in [0, 7]:
            case("rendezvous", workers, count, rendezvous(partitions, workers, seed), seed=seed)
            case(
                "rendezvous-filtered",
                workers,
                count,
                filtered_rendezvous(partitions, workers, seed),
                seed=seed,
            )
            case(
                "consistent-hash",
                workers,
                count,
                consistent_hash(partitions, workers, 150, seed),
                seed=seed,
                virtual_nodes=150,
            )
        case("round-robin", workers, count, round_robin(partitions, workers))
    case(
        "consistent-hash",
        mixed,
        512,
        consistent_hash(shards(512), mixed, 1, 0),
        seed=0,
        virtual_nodes=1,
    )
    print(
        json.dumps(
            {
                "about": "Made by reference.py beside this file. owners: one base-36 digit per "
                "partition in the order of their text, the index of the worker; digest: XXH64 of "
                "the owners as little-endian u32.",
                "keys": [
                    {"key": k, "hash": "%016x" % key_hash(k), "of_100": key_hash(k) % 100} for k in keys
                ],
                "pairs": pairs,
                "assignments": cases,
            },
            indent=1,
            ensure_ascii=True,
        )
    )


if __name__ == "__main__":
    main()
