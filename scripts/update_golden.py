"""Write the golden screens and README's demo anew. Review the result as a diff: a change here is a change users see."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCREENS = ROOT / "tests" / "golden" / "screens"
SIMULATED, RECORDED = "fixtures/simulated", "fixtures/recorded"
COMMANDS: dict[str, tuple[str, ...]] = {
    "demo": ("demo",),
    "analyze-host-bound": ("analyze", f"{SIMULATED}/host_bound.json.gz"),
    "analyze-dataloader-kernels": ("analyze", f"{SIMULATED}/dataloader_bound.json.gz", "--by", "kernel"),
    "analyze-accumulation": ("analyze", f"{SIMULATED}/grad_accumulation.json.gz"),
    "analyze-cpu-modules": ("analyze", f"{RECORDED}/accumulation_stacks.json.gz", "--by", "module"),
    "analyze-markdown": ("analyze", f"{SIMULATED}/graph_step.json.gz", "--format", "md"),
    "critical-item-sync": ("critical", f"{SIMULATED}/item_sync.json.gz"),
    "critical-around": ("critical", f"{SIMULATED}/two_streams.json.gz", "--around", "aten::mm"),
    "critical-csv": ("critical", f"{SIMULATED}/pdl_overlap.json.gz", "--full", "--format", "csv"),
    "whatif-loader": ("whatif", f"{RECORDED}/loader_hidden_before.json.gz", "--shrink", "class:input=0.5"),
    "whatif-rank": ("whatif", f"{SIMULATED}/host_bound.json.gz", "--rank"),
    "whatif-target": ("whatif", f"{SIMULATED}/device_bound.json.gz", "--target", "1ms", "--by", "kernel"),
    "whatif-inject": ("whatif", f"{SIMULATED}/two_streams.json.gz", "--inject", "class:launch"),
    "whatif-links": (
        "whatif",
        f"{SIMULATED}/ddp_tail.rank1.json.gz",
        "--model",
        "comm:k=2",
        "--model",
        "free",
    ),
    "check-budgets": (
        *("check", f"{SIMULATED}/item_sync.json.gz", f"{SIMULATED}/two_streams.json.gz"),
        *("--config", "tests/golden/budgets.toml", "--base", ""),
    ),
    "check-markdown": (
        *("check", f"{SIMULATED}/graph_step.json.gz", "--show-passed", "--format", "md"),
        *("--config", "tests/golden/budgets.toml", "--base", "."),
    ),
    "diff-wait-removed": (
        "diff",
        f"{RECORDED}/wait_removed_before.json.gz",
        f"{RECORDED}/wait_removed_after.json.gz",
    ),
    "diff-other-work-markdown": (
        "diff",
        f"{RECORDED}/small_ops_halved_before.json.gz",
        f"{RECORDED}/small_ops_halved_after.json.gz",
        "--format",
        "md",
    ),
    "diff-ranks": ("diff", f"{SIMULATED}/ddp_tail.rank0.json.gz", f"{SIMULATED}/ddp_tail.rank1.json.gz"),
    "doctor-two-streams": ("doctor", f"{SIMULATED}/two_streams.json.gz"),
    "slim-check": (
        "slim",
        "--check",
        f"{SIMULATED}/item_sync.json.gz",
        f"{RECORDED}/accumulation_stacks.json.gz",
    ),
    "explain": ("explain",),
    "init-host-bound": ("init", f"{SIMULATED}/host_bound.json.gz", "-o", "-"),
}
ANSWERED_CHECK = (0, 1, 4)
"""`check` answers by its exit code, too."""
START, END = "<!-- demo: written by `make golden`, checked by a test -->", "<!-- /demo -->"


def screen(arguments: tuple[str, ...]) -> str:
    """What a command prints on stdout, not on a terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "stepcrit", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        encoding="utf-8",
    )
    if done.returncode not in (ANSWERED_CHECK if arguments[0] == "check" else (0,)):
        raise RuntimeError(done.stderr)
    return done.stdout


def readme_with(demo: str) -> str:
    """README with the demo's screen between its marks."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    before, rest = text.split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n```text\n{demo.rstrip()}\n```\n{END}{after}"


def main() -> None:
    """Write everything."""
    SCREENS.mkdir(parents=True, exist_ok=True)
    for name, arguments in COMMANDS.items():
        (SCREENS / f"{name}.txt").write_text(screen(arguments), encoding="utf-8")
    demo = (SCREENS / "demo.txt").read_text(encoding="utf-8")
    (ROOT / "README.md").write_text(readme_with(demo), encoding="utf-8")


if __name__ == "__main__":
    main()
