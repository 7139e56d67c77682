"""What a launch costs on the host: prepared, called with outputs, called without, beside the driver's own call.

    PYTHONPATH=. python bench/launch.py out/gemm_sm90

The least shape, in batches short enough for the launch queue, so that the host never waits for the GPU. Also checks
that a captured graph replays the kernel.
"""

from __future__ import annotations

import statistics
import time

import torch
from harness import arguments, environment, record

import cake_core as cake
from cake_core.runtime.driver import driver

BATCH, ROUNDS, M, N, K = 200, 50, 1, 8, 8


def host_us(call) -> dict[str, float]:
    samples = []
    for _ in range(ROUNDS + 5):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(BATCH):
            call()
        samples.append((time.perf_counter() - start) / BATCH * 1e6)
    torch.cuda.synchronize()
    tenths = statistics.quantiles(samples[5:], n=10, method="inclusive")
    return {"median_us": round(statistics.median(samples[5:]), 3), "p10_us": round(tenths[0], 3), "p90_us": round(tenths[-1], 3)}


def graph_replays(kernel, a, b) -> bool:
    """Capture calls of the kernel with its output given, on torch's stream of the capture; replay; compare."""
    direct, captured = kernel(A=a, B=b), torch.full((M, N), float("nan"), dtype=torch.bfloat16, device="cuda")
    prepared = kernel.prepare(A=a, B=b, D=captured)
    kernel(A=a, B=b, D=captured)
    captured.fill_(float("nan"))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(A=a, B=b, D=captured)
        prepared()
    torch.cuda.synchronize()
    empty = bool(captured.isnan().all())  # capturing runs nothing
    graph.replay()
    torch.cuda.synchronize()
    return empty and bool(torch.equal(captured, direct))


def main() -> None:
    args = arguments(__doc__, "gemm")
    torch.manual_seed(args.seed)
    kernel = cake.load(args.gemm)
    a, b = (torch.randn(rows, K, device="cuda").bfloat16() for rows in (M, N))
    d, y = torch.empty(M, N, dtype=torch.bfloat16, device="cuda"), torch.zeros(16, device="cuda")
    stream = torch.cuda.current_stream()
    prepared = kernel.prepare(A=a, B=b, D=d)
    prepared()
    # The floor: the driver's call with the very configuration, function and argument block of the prepared launch.
    launch = prepared._launch
    config, function, address, raw = launch._configurations[stream.cuda_stream], launch._function, launch._address, driver().api.cuLaunchKernelEx
    ways = {
        "driver": lambda: raw(config, function, address, 0),
        "prepared": prepared,
        "prepared, stream handle given": lambda: prepared(stream.cuda_stream),
        "call with output": lambda: kernel(A=a, B=b, D=d),
        "call with output and stream": lambda: kernel(A=a, B=b, D=d, stream=stream),
        "call, output allocated": lambda: kernel(A=a, B=b),
        "torch add_": lambda: y.add_(1),
    }
    result = {name: host_us(call) for name, call in ways.items()}
    for name, r in result.items():
        print(f"{name}: {r['median_us']:.2f} us", flush=True)
    over = round(result["prepared"]["median_us"] - result["driver"]["median_us"], 3)
    replays = graph_replays(kernel, a, b)
    print(f"prepared over driver: {over} us; captured graph replays: {replays}", flush=True)
    record(args.out, "launch", {"batch": BATCH, "rounds": ROUNDS, "environment": environment(kernel), "host": result, "prepared_over_driver_us": over, "graph_replays": replays})
    raise SystemExit(0 if replays else 1)


if __name__ == "__main__":
    main()
