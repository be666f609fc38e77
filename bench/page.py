"""docs/performance.md: tables from the figures of a run, each target beside its figure. Verdicts are computed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable

BEGIN, END = "<!-- notes -->", "<!-- /notes -->"
NOTES = "Written by hand; the script keeps what stands here.\n"

# What is wanted.
FLOOR = {"unet": 1.3, "mlp": 1.4, "dit": 1.4}  # median of a decision over its floor, one thread
TAIL = 1.5  # 99th percentile over median
REST = 0.06  # of a decision of the U-Net: what is no product
DECISION_FASTER = 8.0  # than PyTorch, the faster of eager and compiled; U-Net, f32 weights; TorchScript stands beside
GEMM_SHARE = {1: 0.75, 2: 0.60}  # of the speed of matrix products, by threads, at STEP_BATCH
STEP_FASTER, OLDER_FASTER = 1.5, 3.0  # than the newest PyTorch, than 1.13
STEP_BATCH, SMALL, LARGE = 256, 64, 1024
SAMPLE_GROWTH = 1.25  # time a sample, LARGE over SMALL
MEMORY_SHARE = 0.60  # of PyTorch's peak

MODES = ["eager", "compile", "compile-loop", "script", "older"]  # older: PyTorch 1.13, eager
NOT_JUDGED = ("script", "older")
MIB = 1 << 20


@dataclass
class Verdicts:
    lines: list[tuple[str, str, str, str]] = field(default_factory=list)

    def judge(self, what: str, value: float | None, limit: float, form: str, least: bool = False) -> str:
        """The target and "met" or "missed", which also go into the summary; `least`: at least the limit is wanted."""
        target = (("≥ " if least else "≤ ") if limit else "") + format(limit, form)
        if value is None:
            verdict = "not measured"
        else:
            verdict = "met" if (value >= limit if least else value <= limit) else "**missed**"
        self.lines.append((what, "–" if value is None else format(value, form), target, verdict))
        return f"{target}: {verdict}"

    def count(self, verdict: str) -> int:
        return sum(verdict in line[3] for line in self.lines)


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def plural(n: int, word: str) -> str:
    return f"{n} {word}" + ("" if n == 1 else "s")


def ms(x: float) -> str:
    return f"{x:.3f}" if x < 10 else f"{x:.1f}"


def faster_by(row: dict, modes: list[str]) -> float | None:
    """Time of the fastest of these modes of PyTorch over hone's."""
    times = [row["torch"][m]["ms_p50"] for m in modes if m in row["torch"]]
    return min(times) / row["hone"]["ms_p50"] if times else None


def name_of(row: dict) -> str:
    threads = plural(row["threads"], "thread")
    if row["what"] == "decision":
        return f"{row['net']} {row['weights']}, {threads}"
    return f"step of {row['batch']}, {threads}"


def long_name(row: dict) -> str:
    return ("decision " if row["what"] == "decision" else "") + name_of(row)


# ---------------------------------------------------------------------- decisions


def rest_of(row: dict, v: Verdicts) -> list[str]:
    """Norms, activations, normalisers, the sampler: their share of the median."""
    share = row["hone"].get("rest_share")
    judged = row["net"] == "unet" and row["threads"] == 1 and row["weights"] == "f32"
    target = v.judge(f"{long_name(row)}: share beside products", share, REST, ".1%") if judged else "–"
    return ["–" if share is None else f"{share:.1%}", target]


def decision_floor(rows: list[dict], v: Verdicts) -> str:
    out = []
    for r in rows:
        h, name = r["hone"], long_name(r)
        floor = "–"
        if r["threads"] == 1:
            floor = v.judge(f"{name}: p50 / floor", h["ratio"], FLOOR[r["net"]], ".2f")
        tail = h["ms_p99"] / h["ms_p50"]
        out.append([name_of(r), str(h["steps"]), ms(h["ms_p50"]), ms(h["ms_p99"]), ms(h["ms_min"]), ms(h["floor_ms"]),
                    f"{h['ratio']:.2f}", floor, f"{tail:.2f}",
                    v.judge(f"{name}: p99 / p50", tail, TAIL, ".2f"), *rest_of(r, v)])
    head = ["network, weights", "steps", "p50 ms", "p99 ms", "least ms", "floor ms", "p50 / floor", "target",
            "p99 / p50", "target", "beside products", "target"]
    return table(head, out)


def beside_torch(rows: list[dict], v: Verdicts, limit: float, judged: Callable[[dict], bool]) -> str:
    """Eager and compiled are what the target speaks of; TorchScript stands beside them."""
    modes = sorted({m for r in rows for m in r["torch"]}, key=MODES.index)
    out = []
    for r in rows:
        ratio, over_all = faster_by(r, [m for m in modes if m not in NOT_JUDGED]), faster_by(r, modes)
        verdict = "–"
        if judged(r):
            verdict = v.judge(f"{long_name(r)}: faster than PyTorch", ratio, limit, ".1f", least=True)
        if r["what"] == "step":  # a decision is not timed there
            v.judge(f"{long_name(r)}: faster than PyTorch 1.13", faster_by(r, ["older"]), OLDER_FASTER, ".1f", least=True)
        times = [ms(r["torch"][m]["ms_p50"]) if m in r["torch"] else "–" for m in modes]
        line = [name_of(r), ms(r["hone"]["ms_p50"]), *times, f"{ratio:.1f}" if ratio else "–", verdict]
        out.append(line + ([f"{over_all:.1f}" if over_all else "–"] if "script" in modes else []))
    head = ["", "hone ms", *(f"{m} ms" for m in modes), "faster by", "target"]
    return table(head + (["than script too"] if "script" in modes else []), out)


def is_like(row: dict) -> bool:
    """A decision that the target speaks of: the U-Net, and numbers of the same width on both sides."""
    return row["net"] == "unet" and row["weights"] == "f32"


def failures(rows: list[dict]) -> str:
    texts = {(r["net"], m, " ".join(e.split())[:200]) for r in rows for m, e in r["errors"].items()}
    told = "".join(f"- PyTorch, {net}, {mode}: {text}\n" for net, mode, text in sorted(texts))
    return "\n" + told if told else ""


def allocations(rows: list[dict], v: Verdicts) -> str:
    decisions = [r["hone"]["process_allocations"] for r in rows if r["what"] == "decision"]
    v.judge("allocations by hone, in any row", max(r["hone"]["allocations"] for r in rows), 0, ".0f")
    if decisions:
        most = None if None in decisions else max(decisions)
        v.judge("allocations by the process in decisions, in any row", most, 0, ".0f")
    out = []
    for r in rows:
        own, process = r["hone"]["allocations"], r["hone"]["process_allocations"]
        runs = r["hone"]["repeats"]
        out.append([long_name(r), f"{runs:.0f}", f"{own:.0f}", "–" if process is None else f"{process:.0f}"])
    return table(["", "runs", "by hone", "by the process"], out)


# ---------------------------------------------------------------------- training steps


def step_speed(rows: list[dict], v: Verdicts) -> str:
    out = []
    for r in rows:
        h, target = r["hone"], "–"
        share = h["gflops"] / h["peak_gflops"] if h["peak_gflops"] else None
        if r["batch"] == STEP_BATCH and r["threads"] in GEMM_SHARE:
            limit = GEMM_SHARE[r["threads"]]
            target = v.judge(f"{name_of(r)}: share of the speed of products", share, limit, ".0%", least=True)
        out.append([name_of(r), ms(h["ms_p50"]), ms(h["ms_p99"]), f"{1e3 * h['ms_p50'] / r['batch']:.0f}",
                    f"{h['gflops']:.0f}", f"{h['peak_gflops']:.0f}", f"{share:.0%}" if share else "–", target])
    return table(["", "p50 ms", "p99 ms", "µs a sample", "GFLOP/s", "products GFLOP/s", "share", "target"], out)


def step_growth(rows: list[dict], v: Verdicts) -> str:
    out = []
    for threads in sorted({r["threads"] for r in rows}):
        sample = {r["batch"]: r["hone"]["ms_p50"] / r["batch"] for r in rows if r["threads"] == threads}
        growth = sample[LARGE] / sample[SMALL] if LARGE in sample and SMALL in sample else None
        what = f"step, {plural(threads, 'thread')}: time a sample at {LARGE} over that at {SMALL}"
        target = v.judge(what, growth, SAMPLE_GROWTH, ".2f")
        out.append([str(threads), f"{growth:.2f}" if growth else "–", target])
    return table(["threads", f"{LARGE} over {SMALL}", "target"], out)


def step_memory(rows: list[dict], v: Verdicts) -> str:
    out = []
    for r in rows:
        h = r["hone"]
        peaks = {m: t["peak_bytes"] for m, t in r["torch"].items() if t.get("peak_bytes") and m != "older"}
        least = min(peaks.values(), default=None)
        share = h["planned_bytes"] / least if least else None
        target = v.judge(f"{name_of(r)}: memory over PyTorch's", share, MEMORY_SHARE, ".0%")
        told = ", ".join(f"{m} {b / MIB:.1f}" for m, b in peaks.items()) or "–"
        out.append([name_of(r), f"{h['planned_bytes'] / MIB:.1f}", f"{h['live_peak_bytes'] / MIB:.1f}",
                    told, f"{share:.0%}" if share else "–", target])
    return table(["", "hone, planned MiB", "alive at once MiB", "PyTorch MiB", "planned / least", "target"], out)


# ---------------------------------------------------------------------- the page

HEAD = """# Performance

`make bench` wrote this page, but for the notes at its end, from one run on one machine; hone and PyTorch took turns.
"met" and "missed" are computed. Networks: `unet`, the 1-D U-Net of Diffusion Policy with 5 334 147 parameters; `mlp`, a
residual MLP of width 512; `dit`, a transformer of width 256 with 6 layers. PyTorch has the same networks, written
plainly with its own layers.
"""

DECISION = """
## A decision

From an observation to actions at batch 1: noise is drawn, DDIM takes its steps, actions are scaled back. The floor is
the time that the operations take at the speed of matrix products measured beside them, or reading their weights at the
measured rate if that takes longer.

hone packs weights, and makes what depends on the time step alone, once for a set of parameters, before the timing;
PyTorch does the latter in each decision. Calls run back to back, so caches are warm.
"""

TORCH = """
Beside PyTorch on as many threads, its weights f32. `compile` is torch.compile of the network, `compile-loop` of the
whole decision, `script` is TorchScript, frozen. "faster by" is over the fastest of eager and compiled; the last column
is over TorchScript too. The target is judged like with like, f32 beside f32: the weights of bf16 rows are rounded,
PyTorch's are not, so these rows show their ratio alone.
"""

STEP = """
## A training step

Loss, gradients, AdamW and the moving average, of the U-Net. GFLOP/s count three forward passes' products; beside them
the speed of matrix products alone, on as many threads. The products are nominal ones, taps that read padding included,
as targets of this kind are stated. hone leaves these taps out: 76 % of the products of convolutions remain, 78 % of all
in a forward pass.
"""

STEP_TORCH = """
Beside PyTorch on as many threads. `older` is PyTorch 1.13, eager, with a target of its own (see the summary); "faster
by" is over the faster of eager and compiled of the newest.
"""

MEMORY = """
Memory beside parameters, gradients, moments and average. hone: all that the program of a step plans, inputs and scratch
included. PyTorch: the peak of its profiler's record of a step. The least of its modes counts.
"""

ALLOCATIONS = """
"by hone" counts calls of hone's allocator, "by the process" those of malloc and its kin by all that runs in it. hone
itself allocates nothing in a run. In training the process does: oneDNN makes small allocations in its products.
"""


def notes_of(old: str) -> str:
    begin, end = old.find(BEGIN), old.rfind(END)
    return old[begin + len(BEGIN) : end].strip("\n") + "\n" if 0 <= begin < end else NOTES


def write(data: dict, old: str) -> tuple[str, int, int]:
    """The page, and how many targets are met and missed. The notes of the old page stay as they are."""
    v = Verdicts()
    decisions = [r for r in data["rows"] if r["what"] == "decision"]
    steps = [r for r in data["rows"] if r["what"] == "step"]
    beside = [r for r in steps if r["batch"] == STEP_BATCH]
    machine = data["machine"]
    body = []
    if decisions:
        body += [DECISION, "\n", decision_floor(decisions, v), TORCH, "\n"]
        body += [beside_torch(decisions, v, DECISION_FASTER, is_like), failures(decisions)]
    if steps:
        body += [STEP, "\n", step_speed(steps, v), "\n", step_growth(steps, v)]
        body += [STEP_TORCH, "\n", beside_torch(beside, v, STEP_FASTER, lambda r: True)]
        body += [failures(beside), MEMORY, "\n", step_memory(beside, v)]
    body += ["\n## Allocations\n\nIn all timed runs.\n\n", allocations(data["rows"], v), ALLOCATIONS]
    met, missed = v.count("met"), v.count("missed")
    rest = len(v.lines) - met - missed
    summary = f"\n## Targets\n\n{met} met, {missed} missed" + (f", {rest} not measured" if rest else "") + ".\n\n"
    summary += table(["what", "figure", "target", ""], [list(line) for line in v.lines])
    told = "\n" + table(["machine", ""], [[k, t] for k, t in machine.items()])
    if not any(r["torch"] for r in data["rows"]):
        told += "\nPyTorch was not there; the columns that need it are empty.\n"
    notes = f"\n## Notes\n\n{BEGIN}\n{notes_of(old)}{END}\n"
    return "".join([HEAD, told, summary, *body, notes]), met, missed
