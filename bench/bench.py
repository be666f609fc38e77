#!/usr/bin/env python3
"""Times hone beside PyTorch and writes docs/performance.md from what it saw.

hone and its peers take turns, round by round, so that a change of the machine's mood meets all of them; the page shows
medians of the rounds. Uses the standard library only, and installs nothing. Without torch hone is timed alone.

    make bench                              all of it, about fifteen minutes; wants an idle machine
    python3 bench/bench.py --quick --out page.md --only decision
    python3 bench/bench.py --from build/bench.json     writes the page again from the figures of an earlier run

A run that is not whole (--only, --threads, --quick) wants --out, and keeps its figures beside that page.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import os
import platform
import select
import shlex
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator

import page

ROOT = Path(__file__).resolve().parent.parent
PEER = ROOT / "bench" / "peers" / "torch_peer.py"
PAGE = ROOT / "docs" / "performance.md"
PIP = "pip install torch numpy"

DECISIONS = [("unet", ["f32", "bf16"]), ("mlp", ["f32"]), ("dit", ["f32"])]
THREADS = [1, 2]
STEP_BATCHES = [64, 256, 1024]
STEP_BATCH = 256  # the one that is set beside PyTorch
# All of a decision in one compiled graph: minutes of compiling, and a gain only where a network is tiny.
DECISION_MODES = {"unet": ["eager", "script", "compile"], "dit": ["eager", "script", "compile"]}
DECISION_MODES["mlp"] = ["eager", "script", "compile", "compile-loop"]
STEP_MODES = ["eager", "compile"]
BUSY_SHARE, BUSY_TRIES, BUSY_WAIT = 0.1, 60, 5.0  # nothing is timed while others use the machine
RUN_SECONDS = 600  # for one answer of a program; compiling takes minutes


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Failed(Exception):
    pass


def environment(threads: int) -> dict[str, str]:
    """As many threads as are asked for, and none of the caller's own settings of OpenMP and MKL.

    How threads wait is left to each program: PyTorch's wait as its OpenMP does by default; hone sets
    OMP_WAIT_POLICY=passive for itself, as it always does.
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_", "KMP_", "MKL_"))}
    return {**env, "OMP_NUM_THREADS": str(threads)}


def busy() -> float:
    """Share of the machine in use over 0.2 s; 0 where it cannot be told."""

    def ticks() -> tuple[int, int]:
        with open("/proc/stat", encoding="ascii") as f:
            n = [int(x) for x in f.readline().split()[1:9]]
        return sum(n), n[3] + n[4]

    try:
        whole, idle = ticks()
        time.sleep(0.2)
        whole, idle = (b - a for a, b in zip((whole, idle), ticks()))
    except (OSError, ValueError, IndexError):
        return 0
    return 1 - idle / whole if whole > 0 else 0


def wait_until_idle(a: argparse.Namespace) -> None:
    """hone looks at this itself; PyTorch does not, and threads that spin suffer much from company."""
    for _ in range(0 if a.force else BUSY_TRIES):
        if busy() <= BUSY_SHARE:
            return
        time.sleep(BUSY_WAIT)
    if not a.force:
        raise Failed("others use this machine, so times would mean little; wait for them, or --force")


def run_hone(a: argparse.Namespace, what: str, net: str, batch: int, threads: int, *more: str) -> dict:
    words = [a.hone, "bench", what, "--json", "--net", net, "--batch", str(batch), "--threads", str(threads), *more]
    if a.quick:
        words += ["--repeats", "3" if what == "step" else "30"]
    if a.force:
        words.append("--force")
    for i in range(BUSY_TRIES):
        try:
            r = subprocess.run(words, env=environment(threads), capture_output=True, text=True, timeout=RUN_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failed(f"{' '.join(words)}: no end within {RUN_SECONDS} s") from None
        except OSError as e:
            raise Failed(f"{a.hone}: {e.strerror}; make builds it") from None
        if r.returncode == 0:
            found = parsed(r.stdout)
            if "ms_p50" not in found:
                raise Failed(f"{' '.join(words)}: prints no figures")
            return found
        if "other processes use" not in r.stderr:
            break
        if i + 1 < BUSY_TRIES:
            time.sleep(BUSY_WAIT)
    raise Failed(" ".join(r.stderr.split()) or f"{' '.join(words)}: exit {r.returncode}")


def parsed(text: str | bytes) -> dict:
    """The JSON object that is all of the text; empty where it is none."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


class Peer:
    """PyTorch in one mode, made ready once, that measures whenever it is asked to."""

    def __init__(self, a: argparse.Namespace, python: str, what: str, net: str, batch: int, threads: int, mode: str):
        self.label, self.error, self.unread = "older" if python == a.older else mode, "", b""
        words = [python, str(PEER), what, "--serve", "--net", net, "--batch", str(batch), "--threads", str(threads)]
        words += ["--mode", mode] + (["--seconds", "0.3", "--repeats", "3"] if a.quick else [])
        words += ["--no-memory"] if self.label == "older" else []
        pipe = subprocess.PIPE
        try:  # without buffers of Python's, which select would not see
            self.process = subprocess.Popen(
                words, env=environment(threads), stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, bufsize=0
            )
        except OSError as e:
            raise Failed(f"{python}: {e.strerror}") from None

    def get_ready(self) -> None:
        log(f"  torch {self.label}: getting ready")
        self.error = self.answer().get("error", "")

    def answer(self) -> dict:
        """The next answer; what else a library prints is passed over. A process that gives none is ended."""
        end = time.monotonic() + RUN_SECONDS
        while True:
            line, newline, rest = self.unread.partition(b"\n")
            if newline:
                self.unread = rest
                found = parsed(line)
                if found.keys() & {"ready", "ms_p50", "error"}:
                    return found
                continue
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                self.kill()
                return {"error": f"no answer within {RUN_SECONDS} s"}
            part = os.read(self.process.stdout.fileno(), 1 << 16)
            if not part:
                return {"error": f"ended with {self.end(10)} and without an answer"}
            self.unread += part

    def measure(self) -> dict:
        try:
            self.process.stdin.write(b"go\n")
        except OSError as e:
            return {"error": str(e)}
        return self.answer()

    def kill(self) -> int:
        self.process.kill()
        return self.process.wait()

    def end(self, seconds: float) -> int:
        """Its exit status; after so many seconds it is killed."""
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return self.kill()

    def close(self) -> None:
        self.process.stdin.close()
        self.end(30)
        self.process.stdout.close()


def medians(rounds: list[dict]) -> dict:
    """Of every number, over rounds; the largest of counts of allocations; text is that of the first round."""
    out = dict(rounds[0])
    for key, value in rounds[0].items():
        values = [r.get(key) for r in rounds]
        if isinstance(value, bool) or any(isinstance(v, bool) or not isinstance(v, (int, float)) for v in values):
            continue
        whole = max if key.endswith("allocations") or key == "load" else min if key == "ms_min" else statistics.median
        out[key] = whole(values)
    return out


def group(
    a: argparse.Namespace,
    what: str,
    net: str,
    batch: int,
    threads: int,
    modes: list[str],
    flags_of: dict[str, list[str]],
) -> list[dict]:
    """hone with the flags of each of its variants, and the peers, in turn; a list of rows of the page."""
    log(f"{what} {net}, batch {batch}, threads {threads}")
    wanted = [(python, mode) for python in a.pythons for mode in modes]
    if what == "step" and modes and a.older:
        wanted.append((a.older, "eager"))
    peers: list[Peer] = []
    seen: dict[str, list[dict]] = {}
    hone: dict[str, list[dict]] = {name: [] for name in flags_of}
    try:
        for python, mode in wanted:
            peers.append(Peer(a, python, what, net, batch, threads, mode))
            peers[-1].get_ready()
        errors = {p.label: p.error for p in peers if p.error}
        for _ in range(a.rounds):
            for name, flags in flags_of.items():
                hone[name].append(run_hone(a, what, net, batch, threads, *flags))
            for p in peers:
                if p.label in errors:
                    continue
                wait_until_idle(a)
                r = p.measure()
                if "error" in r:
                    errors[p.label] = r["error"]
                else:
                    seen.setdefault(p.label, []).append(r)
    finally:
        for p in peers:
            p.close()
    for label, text in errors.items():
        log(f"  torch {label}: {text[:300]}")
    torch = {label: medians(r) for label, r in seen.items() if label not in errors}
    rows = []
    for name, results in hone.items():
        r = medians(results)
        told = ", ".join(f"{mode} {t['ms_p50']:.3f}" for mode, t in torch.items())
        log(f"  hone {name}: {r['ms_p50']:.3f} ms; torch: {told or 'none'}")
        rows.append({"what": what, "net": net, "batch": batch, "threads": threads, "weights": name, "hone": r,
                     "torch": torch, "errors": errors})
    return rows


def decisions(a: argparse.Namespace) -> Iterator[list[dict]]:
    for net, weights in DECISIONS if a.only != "step" else []:
        for threads in a.threads:
            flags_of = {w: ["--weights", w] for w in weights}
            yield group(a, "decision", net, 1, threads, DECISION_MODES[net], flags_of)


def steps(a: argparse.Namespace) -> Iterator[list[dict]]:
    for threads in a.threads if a.only != "decision" else []:
        for batch in STEP_BATCHES:
            yield group(a, "step", "unet", batch, threads, STEP_MODES if batch == STEP_BATCH else [], {"f32": []})


# ---------------------------------------------------------------------- the machine


def doctor(hone: str) -> dict[str, str]:
    try:
        r = subprocess.run([hone, "doctor"], capture_output=True, text=True, timeout=RUN_SECONDS)
    except subprocess.TimeoutExpired:
        raise Failed(f"{hone} doctor: no end within {RUN_SECONDS} s") from None
    except OSError as e:
        raise Failed(f"{hone}: {e.strerror}; make builds it") from None
    return {p[0]: p[1].strip() for line in r.stdout.splitlines() if len(p := line.strip().split(None, 1)) == 2}


def torch_version(python: str) -> dict | None:
    try:
        r = subprocess.run([python, str(PEER), "--version-check"], capture_output=True, text=True, timeout=120)
        found = json.loads(r.stdout.strip().splitlines()[-1])
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired) as e:
        log(f"{python}: {e}")
        return None
    return None if "error" in found else found


def cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    return next((s.split(":", 1)[1].strip() for s in lines if s.startswith("model name")), platform.machine())


def command() -> str:
    """The command line; of paths the last part alone, as the rest says nothing to others."""
    return shlex.join(["bench.py"] + [w.rstrip("/").rsplit("/", 1)[-1] for w in sys.argv[1:]])


def machine(a: argparse.Namespace, newest: dict | None, older: dict | None) -> dict:
    d = doctor(a.hone)
    versions = [v for v in (newest, older) if v]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "date": datetime.date.today().isoformat(),
        "CPU": cpu_model(),
        "vectors": d.get("vectors", "?"),
        "cores": str(cores),
        "memory": d.get("memory", "?").split(",")[0],
        "compiler": f"{d.get('compiler', '?')}, {d.get('flags', '')}",
        "hone": f"oneDNN {d.get('oneDNN', '?')}",
        "PyTorch": "; ".join(f"{v['version']}, oneDNN {v['onednn']}" for v in versions) or "not installed",
        "command": f"`{command()}`",
        "older PyTorch": older["version"] if older else "none: the target over 1.13 is not measured",
        "rounds": str(a.rounds) + (", short ones: not to be quoted" if a.quick else ""),
    }


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    build = Path(os.environ.get("BUILD", ROOT / "build"))
    p.add_argument("--hone", default=str(build / "hone"), help="the program; $BUILD/hone")
    p.add_argument("--out", type=Path, help="the page; docs/performance.md")
    p.add_argument("--raw", type=Path, help="all figures of the run; $BUILD/bench.json")
    p.add_argument("--from", dest="source", type=Path, help="measure nothing; take the figures of such a file")
    p.add_argument("--only", choices=["decision", "step"])
    p.add_argument("--threads", type=int, nargs="+", default=THREADS)
    p.add_argument("--rounds", type=int, help="3; with --quick 1")
    p.add_argument("--quick", action="store_true", help="short runs, to see that everything works")
    p.add_argument("--force", action="store_true", help="also while others use the machine")
    p.add_argument("--torch-python", default=sys.executable, help="the interpreter that has torch")
    p.add_argument("--older", default="", help="another interpreter, with PyTorch 1.13, for the training step")
    a = p.parse_args()
    a.rounds = a.rounds or (1 if a.quick else 3)
    partial = not a.source and (a.only or a.quick or sorted(set(a.threads)) != THREADS)
    if partial and not a.out:
        p.error("--only, --threads and --quick make a page that is not whole: say --out FILE")
    a.raw = a.raw or (a.out.with_suffix(".json") if partial else build / "bench.json")
    a.public = a.out is None  # the page that everybody reads
    a.out = a.out or PAGE
    return a


def run(a: argparse.Namespace) -> dict:
    """All that is measured; also into a.raw, group by group."""
    version = torch_version(a.torch_python)
    if not version:
        log(f"PyTorch is not here, so hone is timed alone; to set it beside: {PIP}")
    a.pythons = [a.torch_python] if version else []
    older = torch_version(a.older) if a.older else None
    a.older = a.older if older else ""
    data = {"machine": machine(a, version, older), "rows": []}
    a.raw.parent.mkdir(parents=True, exist_ok=True)
    for rows in itertools.chain(decisions(a), steps(a)):
        data["rows"] += rows
        a.raw.write_text(json.dumps(data, indent=1), encoding="utf-8")
    return data


def is_whole(data: dict) -> bool:
    seen = {(r["what"], r["net"], r["batch"], r["threads"], r["weights"]) for r in data["rows"]}
    wanted = {("decision", net, 1, n, w) for net, weights in DECISIONS for w in weights for n in THREADS}
    wanted |= {("step", "unet", batch, n, "f32") for batch in STEP_BATCHES for n in THREADS}
    return wanted <= seen and "short" not in data["machine"]["rounds"]


def main() -> int:
    a = arguments()
    try:
        data = json.loads(a.source.read_text(encoding="utf-8")) if a.source else run(a)
    except Failed as e:
        log(f"bench: {e}\nThe page stays as it was; what was measured before is in {a.raw}.")
        return 1
    if a.public and not is_whole(data):
        log(f"bench: {a.source or a.raw} is not of a whole run: say --out FILE")
        return 1
    old = a.out.read_text(encoding="utf-8") if a.out.exists() else ""
    text, met, missed = page.write(data, old)
    a.out.write_text(text, encoding="utf-8")
    print(f"{a.out}: {met} targets met, {missed} missed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
