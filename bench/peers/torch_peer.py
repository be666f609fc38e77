#!/usr/bin/env python3
"""Decisions and training steps of hone's reference networks in PyTorch, timed.

    torch_peer.py decision --net unet --batch 1 --threads 1 --steps 10 --mode eager|compile|compile-loop|script
    torch_peer.py step --net unet --batch 256 --threads 2 --mode eager|compile
    torch_peer.py --version-check

Each prints one JSON object; one with the key "error" if the mode does not work here. "compile" compiles the network,
"compile-loop" all of a decision; "script" is TorchScript, frozen. With --serve the program gets ready, prints
{"ready": true}, and measures once for every line that it reads, so that it can take turns with others. Needs torch (2.x
for "compile" and the transformer) and numpy.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
import tempfile
import time
from typing import Callable

TIMESTEPS = 100  # of the noise schedule
SETS = 16  # of inputs, which runs take turns with


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", nargs="?", choices=["decision", "step"])
    p.add_argument("--net", default="unet", choices=["unet", "mlp", "dit"])
    p.add_argument("--batch", type=int, help="1 of a decision, 256 of a step")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--steps", type=int, help="of the sampler; that of the reference network")
    p.add_argument("--mode", default="eager", choices=["eager", "compile", "compile-loop", "script"])
    p.add_argument("--seconds", type=float, default=3, help="time at least so long")
    p.add_argument("--repeats", type=int, help="and at least so often; 30 of a decision, 5 of a step")
    p.add_argument("--serve", action="store_true", help="measure once a line of the standard input")
    p.add_argument("--no-memory", action="store_true", help="step: leave peak_bytes out")
    p.add_argument("--json", action="store_true", help="the default, and the only form there is")
    p.add_argument("--version-check", action="store_true", help="print the version and end")
    a = p.parse_args()
    if not a.what and not a.version_check:
        p.error("one of decision, step")
    if a.what == "step" and a.mode not in ("eager", "compile"):
        p.error("a step is eager or compile")
    a.batch = a.batch or (256 if a.what == "step" else 1)
    a.repeats = a.repeats or (5 if a.what == "step" else 30)
    return a


ARGS = arguments()
os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(ARGS.threads)  # read when torch is loaded

try:
    import torch
except ImportError as e:
    print(json.dumps({"peer": "torch", "error": str(e)}))
    sys.exit(1)

import torch_nets  # noqa: E402  after torch, whose absence is told first


# ---------------------------------------------------------------------- diffusion


def alpha_bar() -> list[float]:
    """Of the cosine schedule (Nichol, Dhariwal 2021)."""

    def level(t: int) -> float:
        return math.cos((t / TIMESTEPS + 0.008) / 1.008 * math.pi / 2) ** 2

    bar, product = [], 1.0
    for t in range(TIMESTEPS):
        product *= 1 - min(1 - level(t + 1) / level(t), 0.999)
        bar.append(product)
    return bar


def ddim(steps: int) -> list[tuple[int, float, float, float, float]]:
    """Each step's (t, p_x, p_e, c_x, c_0): x0 = clamp(p_x x + p_e eps), then x = c_x x + c_0 x0."""
    bar = alpha_bar()
    times = [round(TIMESTEPS * (steps - i) / steps) - 1 for i in range(steps)]
    rows = []
    for t, previous in zip(times, times[1:] + [-1]):
        now, then = bar[t], bar[previous] if previous >= 0 else 1.0
        alpha, sigma = math.sqrt(now), math.sqrt(1 - now)
        c_x = math.sqrt(1 - then) / sigma
        rows.append((t, 1 / alpha, -sigma / alpha, c_x, math.sqrt(then) - c_x * alpha))
    return rows


# ---------------------------------------------------------------------- a decision


def decision(a: argparse.Namespace) -> tuple[Callable[[int], None], int]:
    """A function that decides once, and the steps it takes: observation in; noise, DDIM; actions out."""
    _, horizon, actions, cond, steps = torch_nets.NETS[a.net]
    steps = a.steps or steps
    net = torch_nets.make(a.net).eval().requires_grad_(False)
    observations = torch.rand(SETS, a.batch, cond) * 2 - 1
    mean, std = torch.zeros(cond), torch.ones(cond)
    low, high = -torch.ones(actions), torch.ones(actions)
    rows = [(torch.full((a.batch,), float(t)), *c) for t, *c in ddim(steps)]
    if a.mode == "script":
        net = torch.jit.freeze(torch.jit.script(net))
    elif a.mode == "compile":
        net = torch.compile(net, dynamic=False)

    def sample(observation: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        given = (observation - mean) / std
        for t, p_x, p_e, c_x, c_0 in rows:
            x0 = (p_x * x + p_e * net(x, t, given)).clamp(-1, 1)
            x = c_x * x + c_0 * x0
        return (x + 1) / 2 * (high - low) + low

    if a.mode == "compile-loop":
        sample = torch.compile(sample, dynamic=False)

    def decide(i: int) -> None:
        with torch.inference_mode():
            sample(observations[i % SETS], torch.randn(a.batch, horizon, actions)).numpy()

    return decide, steps


# ---------------------------------------------------------------------- a training step


def adamw(parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
    try:
        return torch.optim.AdamW(parameters, lr=1e-4, fused=True)
    except (RuntimeError, TypeError):  # before 2.4 there is none for the CPU
        return torch.optim.AdamW(parameters, lr=1e-4, foreach=True)


class Training:
    """Epsilon-prediction with AdamW, the gradient clipped, and a moving average of the parameters."""

    def __init__(self, a: argparse.Namespace) -> None:
        _, horizon, actions, cond, _ = torch_nets.NETS[a.net]
        net = torch_nets.make(a.net)
        self.parameters = list(net.parameters())
        self.average = [p.detach().clone() for p in self.parameters]
        self.optimiser = adamw(self.parameters)
        bar = torch.tensor(alpha_bar())
        self.alpha, self.sigma = bar.sqrt(), (1 - bar).sqrt()
        self.actions = torch.rand(SETS, a.batch, horizon, actions) * 2 - 1
        self.conditions = torch.rand(SETS, a.batch, cond) * 2 - 1
        self.net = torch.compile(net, dynamic=False) if a.mode == "compile" else net

    def step(self, i: int) -> None:
        x0, cond = self.actions[i % SETS], self.conditions[i % SETS]
        t = torch.randint(TIMESTEPS, (x0.shape[0],))
        noise = torch.randn_like(x0)
        x = self.alpha[t, None, None] * x0 + self.sigma[t, None, None] * noise
        loss = torch.nn.functional.mse_loss(self.net(x, t.float(), cond), noise)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        with torch.no_grad():
            if hasattr(torch, "_foreach_lerp_"):
                torch._foreach_lerp_(self.average, self.parameters, 1e-3)
            else:  # before 2.1
                torch._foreach_mul_(self.average, 1 - 1e-3)
                torch._foreach_add_(self.average, self.parameters, alpha=1e-3)

    def peak_bytes(self) -> int:
        """The most bytes that a step holds at once beside parameters, gradients, moments and average.

        From torch's profiler, which records each allocation and release with its address. A gradient keeps the
        buffer that the backward pass wrote, so buffers that turn out to be one are left out.
        """
        held: set[int] = set()
        clear = self.optimiser.zero_grad

        def keep(set_to_none: bool = True) -> None:  # gradients stay until the record has ended
            held.update(p.grad.untyped_storage().data_ptr() for p in self.parameters if p.grad is not None)

        self.optimiser.zero_grad = keep
        try:
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as prof:
                self.step(0)
        finally:
            self.optimiser.zero_grad = clear
        clear(set_to_none=True)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            prof.export_chrome_trace(path)
            with open(path, encoding="utf-8") as f:
                events = [e for e in json.load(f)["traceEvents"] if e.get("name") == "[memory]"]
        return peak(events, held)


def peak(events: list[dict], left_out: set[int]) -> int:
    """Of the sum of live buffers; a buffer still alive at the end whose address is in left_out does not count."""
    events.sort(key=lambda e: (e["ts"], e["args"].get("Ev Idx", 0)))
    last = {e["args"]["Addr"]: i for i, e in enumerate(events) if e["args"]["Bytes"] > 0}
    freed = {e["args"]["Addr"]: i for i, e in enumerate(events) if e["args"]["Bytes"] < 0}
    live: dict[int, int] = {}
    total = most = 0
    for i, e in enumerate(events):
        address, size = e["args"]["Addr"], e["args"]["Bytes"]
        if size > 0:
            if address in left_out and last[address] == i and freed.get(address, -1) < i:
                continue
            live[address] = size
            total += size
            most = max(most, total)
        else:
            total -= live.pop(address, 0)  # 0: it is older than the record
    return most


# ---------------------------------------------------------------------- timing


def warm(run: Callable[[int], None]) -> None:
    begin, i = time.perf_counter(), 0
    while i < 3 or (time.perf_counter() - begin < 0.3 and i < 100):
        run(i)
        i += 1


def measure(run: Callable[[int], None], seconds: float, repeats: int) -> dict:
    warm(run)
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < repeats or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        run(len(times))
        times.append(1e3 * (time.perf_counter() - start))
    times.sort()
    n = len(times)
    p99 = times[math.ceil(0.99 * n) - 1]
    return {"ms_p50": times[n // 2], "ms_p99": p99, "ms_min": times[0], "repeats": n}


def version() -> dict:
    """Versions of torch and of the oneDNN inside of it."""
    found = re.search(r"MKL-DNN v([0-9.]+)", torch.__config__.show())
    return {"peer": "torch", "version": torch.__version__, "onednn": found.group(1) if found else None}


def work(a: argparse.Namespace, out: dict) -> None:
    torch.set_num_threads(a.threads)
    torch.set_num_interop_threads(1)
    out.update(mode=a.mode, net=a.net, batch=a.batch, threads=a.threads)
    if a.what == "decision":
        run, out["steps"] = decision(a)
    else:
        training = Training(a)
        run, out["steps"] = training.step, 1
    warm(run)
    if a.what == "step" and not a.no_memory:
        out["peak_bytes"] = training.peak_bytes()
    if not a.serve:
        print(json.dumps({**out, **measure(run, a.seconds, a.repeats)}))
        return
    print(json.dumps({"ready": True}), flush=True)
    for _ in sys.stdin:
        print(json.dumps({**out, **measure(run, a.seconds, a.repeats)}), flush=True)


def main() -> int:
    out = version()
    if ARGS.version_check:
        print(json.dumps(out))
        return 0
    try:
        work(ARGS, out)
    except Exception as e:  # whatever a compiler in a given installation may throw
        print(json.dumps({**out, "error": f"{type(e).__name__}: {e}"[:2000]}))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
