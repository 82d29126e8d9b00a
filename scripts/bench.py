"""Time and peak memory of `stepcrit analyze` beside a plain `json.load` of the same file, in one run.

The machine is noisy, so runs alternate (A B A B …) and the figures to quote are the ratios. Each run is a
process of its own: its peak memory is its own too.

    python scripts/bench.py [TRACE ...]
"""

from __future__ import annotations

import gzip
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 3
PEAK = "import resource, sys; sys.stderr.write(f'PEAK {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss} {time.perf_counter() - t}')"
PLAIN = f"import gzip, json, sys, time; t = time.perf_counter(); p = sys.argv[1]; json.load((gzip.open if p.endswith('gz') else open)(p, 'rb')); {PEAK}"
OURS = f"import sys, time; t = time.perf_counter(); from stepcrit.cli.main import run; run(['analyze', sys.argv[1], '-o', '{os.devnull}', '--json']); {PEAK}"
DEFAULT = (
    "param-dlrm-8rank/worker0_step_12.1694128201545.pt.trace.json.gz",
    "hta-v100-ns/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
    "hta-v100-ddp2-r1/df_index_resolver.json.gz",
    "tl-h100-hf/google_owlv2-large-patch14-ensemble__1016001.json.gz",
)


def measure(code: str, path: Path) -> tuple[float, float]:
    """Seconds and peak MB of one process."""
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True, cwd=ROOT
    )
    _, peak, seconds = done.stderr[done.stderr.index("PEAK") :].split()
    return float(seconds), int(peak) / 1024


def json_megabytes(path: Path) -> float:
    """Size of the JSON text."""
    data = path.read_bytes()
    return len(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data) / 1e6


def main(paths: list[Path]) -> None:
    """Print one row per trace."""
    print(f"{'trace':44} {'JSON MB':>8} {'analyze s':>10} {'x json.load':>11} {'peak MB':>8} {'x JSON':>7}")
    for path in paths:
        ours, plain = [], []
        for _ in range(ROUNDS):
            ours.append(measure(OURS, path))
            plain.append(measure(PLAIN, path))
        seconds, peak = (statistics.median(column) for column in zip(*ours, strict=True))
        size, reference = json_megabytes(path), statistics.median(s for s, _ in plain)
        print(
            f"{path.name[:44]:44} {size:8.1f} {seconds:10.2f} {seconds / reference:11.2f} {peak:8.0f} {peak / size:7.2f}"
        )


if __name__ == "__main__":
    given = [Path(p) for p in sys.argv[1:]]
    corpus = Path(os.environ.get("STEPCRIT_CORPUS") or ROOT / "absent")
    fixtures = sorted((ROOT / "fixtures" / "simulated").glob("*.json.gz"))[:3]
    main(given or [corpus / name for name in DEFAULT if (corpus / name).exists()] or fixtures)
