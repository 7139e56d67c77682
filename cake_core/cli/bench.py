"""`cake bench`."""

from __future__ import annotations

import click

from cake_core.cli.output import chosen_format, format_options
from cake_core.cli.run import execute, run_options

EPILOG = """\b
Examples:
  cake bench gemm.cake --shape M=4096,N=4096,K=4096
  cake bench out/gemm --reference gemm.py --json
"""


@click.command("bench", epilog=EPILOG)
@click.argument("target", metavar="FILE|ARTIFACT")
@click.option("--on", type=click.Choice(["gpu"]), default="gpu", show_default=True, help="Where it runs.")
@run_options
@format_options
def command(target, on, shapes, if_available, seed, device, reference, arch, kernel, settings, allowed, ptxas, locked, format, as_json) -> int:
    """Time a kernel on the GPU: median, 10th and 90th percentile of many launches, and what they move and compute."""
    from cake_core.cli.reports import show_bench
    from cake_core.runtime.execute import bench_artifact

    format = chosen_format(format, as_json)
    return execute(
        bench_artifact, show_bench, target, shapes, if_available, seed, device, (reference, arch, kernel, settings, allowed, ptxas, locked), format
    )
