"""What the tests of several ranks share: the smallest of settings, the variables
of each launcher, and processes that play ranks."""
import json
import os
import pathlib
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = None  # set below
TIMEOUT = 20  # seconds until a fault ends all ranks, at the most
KILLS = int(os.environ.get("REFORMER_KILLS", 2))
STEPS = 40 * KILLS
MACHINE = ["--threads", "1", "--device", "cpu"]
TINY = MACHINE + [
    word for setting in (
        f"train.steps={STEPS}", "train.batch=5", "train.length=32",
        "train.log_every=1", "train.checkpoint_every=10",
        "train.evaluate_every=40", "train.evaluate_batches=3",
        "train.warmup=5", "train.learning_rate=0.02", "train.clip=1",
        "model.layers=2", "model.d_model=16",
        "model.d_ff=16", "model.heads=2", "model.d_head=8",
        # No hashes: another rounding may send a vector to another bucket.
        "model.dropout=0.1", "model.attention=local", "lsh.chunk_length=8",
        f"distributed.timeout={TIMEOUT}") for word in ("--set", setting)]
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith(("RANK", "WORLD", "LOCAL_", "MASTER_", "OMPI_",
                                 "SLURM_", "TORCHELASTIC_"))}


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def as_torchrun(rank, size, port):
    return {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank,
            "LOCAL_WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port}


def as_mpirun(rank, size, port):
    return {"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": size,
            "OMPI_COMM_WORLD_LOCAL_RANK": rank,
            "OMPI_COMM_WORLD_LOCAL_SIZE": size, "MASTER_PORT": port}


def as_srun(rank, size, port):
    return {"SLURM_PROCID": rank, "SLURM_STEP_NUM_TASKS": size,
            "SLURM_LOCALID": rank, "SLURM_STEP_TASKS_PER_NODE": size,
            "SLURM_STEP_NODELIST": "localhost,other[1-3]",
            "SLURM_JOB_ID": 1, "MASTER_PORT": port}


class Run:
    """Processes that play ranks; `of` gives the arguments of each. The last one
    may have a limit to its address space, in bytes; `programs` gives each a
    program of its own."""

    def __init__(self, size, of, launcher=as_torchrun, last_ones_memory=None,
                 programs=None):
        def prepare(rank):
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            if last_ones_memory is not None and rank == size - 1:
                resource.setrlimit(resource.RLIMIT_AS, 2 * [last_ones_memory])

        port = free_port()
        self.ranks = []
        for rank in range(size):
            environment = dict(CLEAN, **{
                name: str(value)
                for name, value in launcher(rank, size, port).items()})
            self.ranks.append(subprocess.Popen(
                [programs[rank] if programs else PROGRAM,
                 *map(str, of(rank))], env=environment, text=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                preexec_fn=lambda rank=rank: prepare(rank)))

    def wait_for(self, step):
        for line in self.ranks[0].stderr:
            if line.startswith(f"step {step}/"):
                return
        raise AssertionError(f"step {step} did not come")

    def finish(self, timeout=180):
        """(status, stdout, stderr) of each rank."""
        end = time.monotonic() + timeout
        result = []
        for process in self.ranks:
            try:
                said, told = process.communicate(
                    timeout=max(1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                for other in self.ranks:
                    other.kill()
                raise
            result.append((process.returncode, said, told))
        return result


def program():
    return PROGRAM


def train(size, out, *arguments, **settings):
    return Run(size, lambda _: ["train", "duplication", "--out", out, *TINY,
                                *arguments], **settings)


def resume(size, out, *arguments):
    return Run(size, lambda _: ["train", "--resume", "--out", out, "--threads",
                                "1", "--device", "cpu", *arguments])


def tensors_of(run, kind, step=STEPS):
    """Bytes of a checkpoint's tensors by their names: of "model" or
    "optimizer", whose rows may follow one another in several files."""
    tensors = {}
    for path in sorted((run / f"step-{step:08}").glob(f"{kind}*.safetensors")):
        data = path.read_bytes()
        begin = 8 + int.from_bytes(data[:8], "little")
        for name, tensor in json.loads(data[8:begin]).items():
            if name != "__metadata__":
                first, last = tensor["data_offsets"]
                tensors[name] = (tensors.get(name, b"") +
                                 data[begin + first:begin + last])
    return tensors


class RanksTestCase(unittest.TestCase):
    """With a folder of its own, in which one process has trained models."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return pathlib.Path(cls.folder.name) / name

    @classmethod
    def make(cls, config, *arguments):
        made = subprocess.run(
            [program(), "train", config, "--out", cls.path(config), *MACHINE,
             *arguments], env=CLEAN, capture_output=True, text=True)
        assert made.returncode == 0, made.stderr


def main():
    """What a test's file does when it is run: PROGRAM is its argument."""
    global PROGRAM
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
