"""Inputs that nobody would write, put through every door until something breaks.

    python scripts/fuzz.py                              five minutes from a fresh seed
    python scripts/fuzz.py --seed 7 --target reader --count 1000
    python scripts/fuzz.py --seed 7 --target reader --first 123 --count 1     exactly one input again
    python scripts/fuzz.py --replay tests/fuzz/kept/reader-0123456789ab

Input number k of a target depends on the seed, the target and k alone. What fails is made small and kept in
tests/fuzz/kept, which the tests replay ever after.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from fuzzing.judge import Target, bound_room, input_of, judged, peak_bytes
from fuzzing.keep import KEPT, digest_of, keep, kind_of, smallest
from fuzzing.targets import TARGETS

SECONDS = 300.0


def main(arguments: list[str] | None = None) -> int:
    """Run, tell, keep; 1 when something failed."""
    options = _parser().parse_args(arguments)
    bound_room()
    if options.replay:
        return _replay(options.replay)
    seed = secrets.randbelow(10**9) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    done, failed, seen = 0, 0, set[str]()
    began, peak = time.monotonic(), 0
    for target, number in _inputs(options):
        data = input_of(target, seed, number)
        if options.digest:
            print(f"{target.name} {number} {digest_of(data)}")
        complaint = judged(target, data)
        done, peak = done + 1, max(peak, peak_bytes())
        if complaint:
            failed += 1
            _tell(target, f"--seed {seed} --target {target.name} --first {number} --count 1", complaint)
            if (kind := kind_of(complaint)) not in seen and not options.no_keep:
                seen.add(kind)
                print(f"kept as {keep(target, smallest(target, data, complaint))}", flush=True)
    print(
        f"{done} inputs, {failed} failed, {time.monotonic() - began:.0f} s, {peak / 1e6:.0f} MB at the peak"
    )
    return int(failed > 0)


def _inputs(options: argparse.Namespace) -> Iterator[tuple[Target, int]]:
    """Which inputs, in order: so many of each target, or round and round until the time is up."""
    chosen = [target for target in TARGETS.values() if not options.target or target.name in options.target]
    until = time.monotonic() + options.seconds
    if options.count is not None:
        yield from ((target, options.first + k) for target in chosen for k in range(options.count))
        return
    for number in count(options.first):
        for target in chosen:
            if time.monotonic() > until:
                return
            yield target, number


def _replay(paths: list[str]) -> int:
    """Judge kept inputs again."""
    failed = 0
    for path in map(Path, paths):
        target = TARGETS[path.name.partition("-")[0]]
        complaint = judged(target, path.read_bytes())
        failed += bool(complaint)
        print(f"{path.name}: {complaint or 'sound'}", flush=True)
    return int(failed > 0)


def _tell(target: Target, again: str, complaint: str) -> None:
    print(f"--- {target.name}: python scripts/fuzz.py {again}\n{complaint.rstrip()}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, help="default: a fresh one, printed")
    parser.add_argument(
        "--target", action="append", choices=list(TARGETS), help="default: all; may be repeated"
    )
    parser.add_argument("--first", type=int, default=0, metavar="K", help="number of the first input")
    parser.add_argument(
        "--count", type=int, metavar="N", help="so many inputs of each target, however long it takes"
    )
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help=f"without --count: how long ({SECONDS:.0f})"
    )
    parser.add_argument("--no-keep", action="store_true", help="do not make failures small and keep them")
    parser.add_argument("--digest", action="store_true", help="tell the digest of every input")
    parser.add_argument("--replay", nargs="+", metavar="FILE", help=f"judge files of {KEPT.name} again")
    return parser


if __name__ == "__main__":
    sys.exit(main())
