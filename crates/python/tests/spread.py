"""One sweep by every way there is: tables compared byte by byte, wall time, processor time, overhead for each run. Called by
scripts/spread, by the Python that has the package; an argument that is no number names one row or one cost.
"""

import contextlib
import ctypes
import filecmp
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "target/debug/anabranch"
CORES = 2
TIMES = 3

SPEC = """
anabranch = 1
name = "sweep"
node = [{{ name = "a" }}, {{ name = "b" }}]
measure = [{{ metric = "goodput", flow = "upload" }}]

[parameters]
loss = 0.0

[world]
duration = "5 s"

[[link]]
name = "wire"
between = ["a", "b"]
rate = "2 Mbit/s"
delay = "20 ms"
loss = {{ forward = {{ model = "bernoulli", probability = "$loss" }} }}

[[flow]]
name = "upload"
from = "a"
to = "b"
workload = {{ kind = "bulk" }}
transport = {{ protocol = "sctp" }}

[[experiment]]
id = "losses"
replications = {replications}
sweep = [{{ parameter = "loss", values = [0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1] }}]
"""


def timed(work, *arguments, **named):
    begun = time.perf_counter()
    work(*arguments, **named)
    return time.perf_counter() - begun


# The rows: each is called in a process of its own, and says how long the work took once what does it stood ready.


def command(spec, out):
    """`anabranch run`"""
    told = [PROGRAM, "run", spec, "--out", out, "--jobs", str(CORES)]
    return timed(subprocess.run, told, check=True, stdout=subprocess.DEVNULL)


def python(spec, out):
    """`anabranch.run`"""
    import anabranch

    return timed(anabranch.run, spec, out=out, jobs=CORES)


def processes(spec, out):
    """`cluster.run`, two processes, their start counted"""
    import concurrent.futures
    import multiprocessing

    from anabranch import cluster

    spawn = multiprocessing.get_context("spawn")

    def work():
        with concurrent.futures.ProcessPoolExecutor(CORES, spawn) as executor:
            cluster.run(spec, executor, out=out)

    return timed(work)


def dask(spec, out):
    """`cluster.run`, Dask, two processes"""
    from anabranch import cluster

    with local() as client:
        return timed(cluster.run, spec, client, out=out)


def ray(spec, out):
    """`cluster.run`, Ray, two processors"""
    import ray

    from anabranch import cluster

    ray.init(num_cpus=CORES, include_dashboard=False, log_to_driver=False, logging_level="error")
    took = timed(cluster.run, spec, cluster.Ray(ray), out=out)
    ray.shutdown()
    return took


def slurm(spec, out, tasks=CORES):
    """`anabranch slurm`, an array of 2 and its merge"""
    script = f"""
        set -euo pipefail
        PATH={PROGRAM.parent}:$PATH
        source {ROOT}/scripts/slurm-node
        begun=$(date +%s.%N)
        anabranch slurm {spec} --array {tasks} --out {out} >/dev/null
        until [[ -e {out}/report.html ]]; do sleep 0.05; done
        python3 -c "print($(date +%s.%N) - $begun)"
    """
    made = subprocess.run(["bash", "-c", script], check=True, stdout=subprocess.PIPE, text=True)
    return float(made.stdout)


def slurm8(spec, out):
    """`anabranch slurm`, an array of 8 and its merge"""
    return slurm(spec, out, 8)


ROWS = [command, python, processes, dask, ray, slurm, slurm8]


@contextlib.contextmanager
def local():
    """The client of a Dask cluster of two processes, which goes with it."""
    import distributed

    cluster = distributed.LocalCluster(
        n_workers=CORES, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


# What the page on a thousand cores computes with, in milliseconds and bytes.


def costs(spec, out):
    import anabranch
    from anabranch import cluster

    planned = anabranch.Job(anabranch.Spec.read(spec))
    saved, runs = planned.saved(), len(planned)

    def each(what, took, count, unit="ms"):
        print(f"| {what} | {took / count:.3g} {unit} |", flush=True)

    print(f"\n| cost, of a plan of {runs} runs | |\n|---|---|")
    each("plan, a run", 1e3 * timed(lambda: anabranch.Job.restored(saved)), runs)
    print(f"| the job as it travels with each batch | {len(saved)} bytes |")
    own = out / "own"
    planned.run_some({0}, own)
    packed = {}
    for size in (1, 25, 250):
        places = list(range(250))
        batches = [places[at : at + size] for at in range(0, 250, size)]
        took = timed(lambda: packed.update({size: [(it, cluster.work(saved, it, ())) for it in batches]}))
        each(f"work of a batch of {size}, whole, a batch", 1e3 * took, len(batches))
        into = planned.kept(out / f"into-{size}")
        take = lambda: [cluster._take(into, it, got) for it, got in packed[size]]
        each(f"taking a batch of {size}, a batch", 1e3 * timed(take), len(batches))
        each(f"bytes that come back, a run, batches of {size}", sum(len(got) for _, got in packed[size]), 250, "bytes")
    whole = out / "whole"
    planned.run_some(set(range(runs)), whole, CORES)
    kept = sum(file.stat().st_size for file in whole.rglob("*.journal"))
    each("journal, a run", kept, runs, "bytes")
    each("reading the journal, a run", 1e3 * timed(lambda: planned.kept(whole).missing()), runs)
    each("putting together, a run", 1e3 * timed(planned.together, whole), runs)
    files = sum(file.stat().st_size for file in whole.rglob("*") if file.is_file())
    each("all results, a run", files, runs, "bytes")
    recorded = anabranch.Spec.read(spec)
    recorded["experiment.losses.record"] = [{"flow": "upload", "probes": ["cwnd"]}]
    results = anabranch.run(recorded, out=out / "recorded", replications=2, record_all=True)
    samples = list((out / "recorded/runs").glob("*.parquet"))
    each("samples of one probe, a run of 5 s", sum(file.stat().st_size for file in samples), results.runs, "bytes")
    for shards in (8, 64):
        folder = out / f"shards-{shards}"
        told = [str(PROGRAM), "run", str(spec), "--jobs", "1", "--out"]
        first = timed(subprocess.run, [*told, folder / "1", "--shard", f"1/{shards}"], check=True, stdout=subprocess.DEVNULL)
        each(f"one task of {shards}, whole", 1e3 * first, 1)
        for task in range(2, shards + 1):
            subprocess.run([*told, folder / str(task), "--shard", f"{task}/{shards}"], check=True, stdout=subprocess.DEVNULL)
        merge = [str(PROGRAM), "merge", "--out", out / f"merged-{shards}", *sorted(folder.iterdir())]
        took = timed(subprocess.run, merge, check=True, stdout=subprocess.DEVNULL)
        each(f"merge of {shards} shards, a run", 1e3 * took, runs)
    with local() as client:
        client.gather([client.submit(len, saved + bytes([at])) for at in range(4)])
        for count in (500, 2000):
            many = lambda: client.gather([client.submit(max, len(saved), at, count) for at in range(count)])
            each(f"Dask: {count} batches that do nothing, a batch", 1e3 * timed(many), count)
        carried = lambda: client.gather([client.submit(len, saved + at.to_bytes(4, "big")) for at in range(2000)])
        each("Dask: 2000 batches that carry the job, a batch", 1e3 * timed(carried), 2000)
    script = f"""
        set -euo pipefail
        PATH={PROGRAM.parent}:$PATH
        source {ROOT}/scripts/slurm-node
        cd "$here"
        now() {{ date +%s.%N; }}
        drained() {{ until [[ -z $(squeue --noheader) ]]; do sleep 0.05; done; }}
        begun=$(now)
        for _ in 1 2 3 4 5 6 7 8 9 10; do sbatch --parsable --hold --output=/dev/null --wrap true >/dev/null; done
        python3 -c "print(($(now) - $begun) / 10)"
        scancel --user=root
        drained
        for tasks in 8 64 256; do
            begun=$(now)
            sbatch --parsable --array=1-$tasks --output=/dev/null --wrap true >/dev/null
            drained
            python3 -c "print($(now) - $begun)"
        done
    """
    # As many processors as tasks, by name, so that all may begin at once.
    for processors in (CORES, 256):
        told = {**os.environ, "PROCESSORS": str(processors)}
        made = subprocess.run(["bash", "-c", script], check=True, stdout=subprocess.PIPE, text=True, env=told)
        submission, *took = map(float, made.stdout.split())
        each(f"Slurm of {processors}: a submission", 1e3 * submission, 1)
        for tasks, seconds in zip((8, 64, 256), took):
            each(f"Slurm of {processors}: {tasks} tasks that do nothing, a task", 1e3 * seconds, tasks)


def spent():
    """Processor time of all processes that were begun here and ended, s."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(row, spec, out):
    """Wall time and processor time of a row, s; None where what it needs is not installed."""
    before = spent()
    call = [sys.executable, __file__, row.__name__, spec, out]
    made = subprocess.run(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if "ModuleNotFoundError: No module named 'ray'" in made.stderr:
        return None
    if made.returncode:
        sys.exit(f"spread: {row.__name__} failed\n{made.stderr}")
    return float(made.stdout.split()[-1]), spent() - before


def table(runs, folder):
    spec = folder / "sweep.toml"
    spec.write_text(SPEC.format(replications=runs // 10))
    print(f"\n| {runs} runs | wall time, s | processor time, s | beyond the command, a run: wall | processor |\n|---|---|---|---|---|")
    rows = {row: [] for row in ROWS}
    for turn in range(TIMES):
        for row in ROWS:
            out = folder / f"{row.__name__}-{runs}-{turn}"
            one = measured(row, spec, out)
            if one is None:
                continue
            rows[row].append(one)
            first = folder / f"{command.__name__}-{runs}-0"
            if not filecmp.cmp(first / "measures.csv", out / "measures.csv", shallow=False):
                sys.exit(f"spread: {out}/measures.csv is another than that of the command")
    base = [min(column) for column in zip(*rows[command])]
    for row, found in rows.items():
        if not found:
            print(f"| {row.__doc__} | not installed | | | |")
            continue
        # What else runs on the machine makes a row longer, never shorter.
        wall, processor = (min(column) for column in zip(*found))
        beyond = [f"{1e3 * (it - its) / runs:+.2f} ms" if row is not command else "" for it, its in zip((wall, processor), base)]
        told = f"{processor:.2f}"
        if row is ray:
            # Its workers are waited for by nobody, so that their time is not told.
            told, beyond[1] = "not counted", ""
        print(f"| {row.__doc__} | {wall:.2f} | {told} | {' | '.join(beyond)} |", flush=True)


def main():
    arguments = sys.argv[1:]
    names = {work.__name__: work for work in [*ROWS, costs]}
    if arguments and arguments[0] in names:
        spec, out = map(pathlib.Path, arguments[1:])
        print(names[arguments[0]](spec, out))
        return
    # Daemons' children come to this process in the end, so that their time counts (PR_SET_CHILD_SUBREAPER).
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, {PROGRAM.relative_to(ROOT)}")
    for runs in [int(it) for it in arguments] or [2000, 10000]:
        with tempfile.TemporaryDirectory() as folder:
            table(runs, pathlib.Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        spec = pathlib.Path(folder) / "sweep.toml"
        spec.write_text(SPEC.format(replications=1000))
        costs(spec, pathlib.Path(folder))
    print(f"\nload at the end {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
