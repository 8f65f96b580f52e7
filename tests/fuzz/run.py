"""run.py BUILD [--runs N] [--seconds N] [--target NAME]... [--jobs N]: runs the
fuzzers.

BUILD is the folder that `cmake --preset fuzz` builds in. Each fuzzer starts
from seeds that it writes itself and from what former runs found interesting
(BUILD/corpus/NAME), and tries N inputs, or what it can in so many seconds. An
input that is a finding lies in BUILD/findings/NAME afterwards; BUILD/logs/NAME
is what the fuzzer says. Prints a line for each fuzzer; the exit status is 1
after a finding.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
# Bytes of an input: longer ones are slower, and no wiser.
LONGEST = {"settings": 96, "command_line": 512, "gnuplot": 512, "jpeg": 1024,
           "png": 1024}
JSON = ["config", "costs", "experiment", "metrics", "settings", "state"]
# An allocation beyond malloc_limit_mb is a finding: no input of 4 KiB is
# worth it.
OPTIONS = ["-rss_limit_mb=2048", "-malloc_limit_mb=512",
           "-timeout=30", "-report_slow_units=30", "-print_final_stats=1",
           "-reload=0"]
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=1",
              "UBSAN_OPTIONS": "print_stacktrace=1",
              "OMP_NUM_THREADS": "1"}


def numbers_in(log):
    """(executions, cov, ft) of libFuzzer's last lines."""
    runs = re.findall(r"^#(\d+)\t", log, re.M)
    runs += re.findall(r"number_of_executed_units: (\d+)", log)
    covered = re.findall(r"cov: (\d+) ft: (\d+)", log)
    return (int(runs[-1]) if runs else 0, *(covered[-1] if covered else "--"))


class Fuzzer:
    def __init__(self, build, name):
        self.name = name
        self.program = build / "tests" / "fuzz" / f"fuzz_{name}"
        self.corpus = build / "corpus" / name
        self.findings = build / "findings" / name
        self.log = build / "logs" / name  # grows while it runs

    def command(self, runs, seconds):
        words = [self.program, f"-runs={runs}", f"-max_total_time={seconds}",
                 *OPTIONS,
                 f"-max_len={LONGEST.get(self.name, 4096)}",
                 f"-artifact_prefix={self.findings}/"]
        kind = "json" if self.name in JSON else self.name
        if (HERE / f"{kind}.dict").exists():
            words.append(f"-dict={HERE / kind}.dict")
        return [str(word) for word in (*words, self.corpus)]

    def run(self, runs, seconds):
        """True where nothing was found."""
        shutil.rmtree(self.findings, ignore_errors=True)
        for folder in self.corpus, self.findings, self.log.parent:
            folder.mkdir(parents=True, exist_ok=True)
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        start = time.monotonic()
        with tempfile.TemporaryDirectory(dir=memory, prefix="fuzz-") as scratch:
            environment = {**os.environ, **SANITIZERS, "TMPDIR": scratch}
            subprocess.run([self.program, f"--seeds={self.corpus}"],
                           check=True, env=environment)
            with open(self.log, "wb") as log:
                run = subprocess.run(self.command(runs, seconds),
                                     env=environment,
                                     stdout=subprocess.DEVNULL, stderr=log)
        self.report(run.returncode, time.monotonic() - start)
        return run.returncode == 0

    def report(self, status, seconds):
        log = self.log.read_text(errors="replace")
        executions, cov, ft = numbers_in(log)
        print(f"{self.name:14} {executions:12,} {seconds:9.0f} {cov:>7} "
              f"{ft:>7}  {'-' if status == 0 else 'FOUND'}", flush=True)
        if status == 0:
            self.findings.rmdir()
            return
        words = "runtime error:|ERROR:|what\\(\\):| in reformer::"
        said = [line for line in log.splitlines() if re.search(words, line)]
        print(f"{self.name}: see {self.findings} and {self.log}\n  " +
              "\n  ".join(said[:8]), file=sys.stderr)


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=int, default=0,
                        help="of each fuzzer; 0: no limit")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--target", action="append")
    return parser.parse_args()


def main():
    given = arguments()
    build = given.build.resolve()
    known = sorted(path.name.removeprefix("fuzz_")
                   for path in (build / "tests" / "fuzz").glob("fuzz_*")
                   if path.is_file() and os.access(path, os.X_OK))
    names = given.target or known
    for name in names:
        if name not in known:
            sys.exit(f"fuzz: no target {name}; there are {', '.join(known)}")
    print(f"{'target':14} {'executions':>12} {'seconds':>9} {'cov':>7} "
          f"{'ft':>7}  findings", flush=True)
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        good = list(pool.map(
            lambda name: Fuzzer(build, name).run(given.runs, given.seconds),
            names))
    print(f"fuzz: {len(good)} targets, {good.count(False)} with findings")
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
