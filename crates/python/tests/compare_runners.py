"""One sweep by every way there is: tables compared byte by byte, wall time, processor time, overhead for each run. Called by
scripts/compare-runners, by the Python that has the package; an argument that is no number names one row or one cost.
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


# The rows: each runs in a separate process, and reports the duration of the work after the setup.


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


# Figures for the page on scaling out.


def used():
    """Processor time of this process and of the processes that it waited for, s."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def cost(what, work, count):
    """Prints wall time and processor time of some work, per item, ms."""
    before, wall = used(), timed(work)
    print(f"| {what} | {1e3 * wall / count:.3g} | {1e3 * (used() - before) / count:.3g} |", flush=True)


def quiet(*told):
    subprocess.run([PROGRAM, *told], check=True, stdout=subprocess.DEVNULL)


def sizes(what, folder, count):
    files = [file.stat().st_size for file in folder if file.is_file()]
    print(f"| {what} | {sum(files) / count:.0f} bytes | |", flush=True)


def costs(spec, out):
    import anabranch

    planned = anabranch.Job(anabranch.Spec.read(spec))
    runs = len(planned)
    print(f"\n| a plan of {runs} runs | wall, ms | processor, ms |\n|---|---|---|")
    batches(planned, out)
    plans(out)
    whole = out / "whole"
    cost("making and keeping, a run", lambda: planned.run_subset(set(range(runs)), whole, 1), runs)
    sizes("the journal, a run", whole.rglob("*.journal"), runs)
    cost("reading the journal, a run", lambda: planned.open_store(whole).missing(), runs)
    into = planned.open_store(out / "into")
    cost("taking out of another journal, a run", lambda: into.take(set(range(runs)), whole), runs)
    cost("putting together, a run", lambda: planned.combine(whole), runs)
    sizes("all results, a run", whole.rglob("*"), runs)
    # The same runs with only 1 ms of simulated time: nearly all of their cost is that of storing them.
    short = anabranch.Spec.read(spec)
    short["world.duration"] = "1 ms"
    short = anabranch.Job(short)
    cost("keeping alone, a run", lambda: short.run_subset(set(range(runs)), out / "short", 1), runs)
    recorded = anabranch.Spec.read(spec)
    recorded["experiment.losses.record"] = [{"flow": "upload", "probes": ["cwnd"]}]
    results = anabranch.run(recorded, out=out / "recorded", replications=2, record_all=True)
    sizes("samples of one probe, a run", (out / "recorded/runs").glob("*.parquet"), results.runs)
    for shards in (8, 64):
        folder = out / f"shards-{shards}"
        share = lambda task: quiet("run", spec, "--jobs", "1", "--out", folder / str(task), "--shard", f"{task}/{shards}")
        cost(f"a task of {shards}, a run of its own", lambda: [share(task) for task in range(1, shards + 1)], runs)
        cost(f"merge of {shards} shards, a run", lambda: quiet("merge", "--out", out / f"merged-{shards}", *folder.iterdir()), runs)
    one = out / "one"
    cost("a task of one run, whole", lambda: quiet("run", spec, "--jobs", "1", "--out", one, "--shard", "1/10000"), 1)
    with local() as client:
        saved = planned.to_bytes()
        client.gather([client.submit(len, saved + bytes([at])) for at in range(4)])
        carried = lambda: client.gather([client.submit(len, saved + at.to_bytes(4, "big")) for at in range(4000)])
        cost("Dask: a batch of nothing, in the process of the client and the scheduler", carried, 4000)
    # The second Slurm declares as many processors as there are tasks, so that all tasks can start at once.
    for processors in (CORES, 256):
        empty(processors)


def batches(planned, out):
    """Cost of the transfer of each batch."""
    from anabranch import cluster

    saved = planned.to_bytes()
    print(f"| the job as it travels with each batch | {len(saved)} bytes | |")
    cost("planning it, whole", lambda: type(planned).from_bytes(saved), 1)
    for size in (1, 25, 250):
        places = [list(range(250))[at : at + size] for at in range(0, 250, size)]
        packed = []
        cost(f"a worker's batch of {size}", lambda: packed.extend(cluster.work(saved, it, ()) for it in places), len(places))
        print(f"| what comes back of {size}, a run | {sum(map(len, packed)) / 250:.0f} bytes | |")
        into = planned.open_store(out / f"into-{size}")
        cost(f"taking a batch of {size}", lambda: [cluster._take(into, *it) for it in zip(places, packed)], len(places))


def plans(out):
    """Cost of a batch of one run by the size of the plan."""
    import anabranch

    for runs in (10_000, 100_000, 1_000_000):
        planned = anabranch.Job(anabranch.Spec.parse(SPEC.format(replications=runs // 10)))
        source, into = out / f"of-{runs}", planned.open_store(out / f"all-{runs}")
        cost(f"one run of {runs}: made", lambda: planned.run_subset({0}, source), 1)
        cost(f"one run of {runs}: taken", lambda: [into.take({0}, source) for _ in range(10)], 10)


def empty(processors):
    """A Slurm with empty tasks."""
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
    told = {**os.environ, "PROCESSORS": str(processors)}
    made = subprocess.run(["bash", "-c", script], check=True, stdout=subprocess.PIPE, text=True, env=told)
    submission, *took = map(float, made.stdout.split())
    print(f"| Slurm of {processors}: a submission | {1e3 * submission:.3g} | |")
    for tasks, seconds in zip((8, 64, 256), took):
        print(f"| Slurm of {processors}: {tasks} tasks that do nothing, a task | {1e3 * seconds / tasks:.3g} | |", flush=True)


def spent():
    """Processor time of all child processes that ended, s."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(row, spec, out):
    """Wall time and processor time of a row, s; None if a requirement is not installed."""
    before = spent()
    call = [sys.executable, __file__, row.__name__, spec, out]
    made = subprocess.run(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if "ModuleNotFoundError: No module named 'ray'" in made.stderr:
        return None
    if made.returncode:
        sys.exit(f"compare-runners: {row.__name__} failed\n{made.stderr}")
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
                sys.exit(f"compare-runners: {out}/measures.csv is another than that of the command")
    base = [min(column) for column in zip(*rows[command])]
    for row, found in rows.items():
        if not found:
            print(f"| {row.__doc__} | not installed | | | |")
            continue
        # Other load on the machine makes a row longer, never shorter.
        wall, processor = (min(column) for column in zip(*found))
        beyond = [f"{1e3 * (it - its) / runs:+.2f} ms" if row is not command else "" for it, its in zip((wall, processor), base)]
        told = f"{processor:.2f}"
        if row is ray:
            # No process waits for Ray's workers, so their processor time is unknown.
            told, beyond[1] = "not counted", ""
        print(f"| {row.__doc__} | {wall:.2f} | {told} | {' | '.join(beyond)} |", flush=True)


def main():
    arguments = sys.argv[1:]
    names = {work.__name__: work for work in [*ROWS, costs]}
    if arguments and arguments[0] in names:
        spec, out = map(pathlib.Path, arguments[1:])
        print(names[arguments[0]](spec, out))
        return
    # Daemons' children come to this process in the end, so that their time is counted (PR_SET_CHILD_SUBREAPER).
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
