"""network_test.py PROGRAM: two machines, which are two network namespaces
joined by a cable: a slow one that loses packets, and one that is cut. Skipped
with a reason where namespaces are not allowed."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = None  # set below
TIMEOUT = 12  # seconds until a fault ends all ranks, at the most
PORT = 29533
ADDRESSES = "10.213.7.1", "10.213.7.2"
NAMES = [f"reformer-{os.getpid()}-{side}" for side in "ab"]
CABLE = [f"rf{os.getpid() % 100000}{side}" for side in "ab"]
TINY = ["--threads", "1", "--device", "cpu"] + [
    word for setting in (
        "train.batch=2", "train.length=32", "train.log_every=1",
        "train.checkpoint_every=5", "train.evaluate_batches=1",
        "model.layers=2", "model.d_model=16", "model.d_ff=16", "model.heads=2",
        "model.d_head=8", "lsh.chunk_length=8", "lsh.n_buckets=4",
        f"distributed.timeout={TIMEOUT}") for word in ("--set", setting)]


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True, capture_output=True,
                   text=True)


def on(side, *words):
    ip("netns", "exec", NAMES[side], *words)


def lay_cable():
    for name in NAMES:
        ip("netns", "add", name)
    ip("link", "add", CABLE[0], "type", "veth", "peer", "name", CABLE[1])
    for side in 0, 1:
        ip("link", "set", CABLE[side], "netns", NAMES[side])
        on(side, "ip", "addr", "add", ADDRESSES[side] + "/24", "dev",
           CABLE[side])
        on(side, "ip", "link", "set", CABLE[side], "up")
        on(side, "ip", "link", "set", "lo", "up")


def take_away():
    for name in NAMES:
        subprocess.run(["ip", "netns", "delete", name], capture_output=True)


class NetworkTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if shutil.which("ip") is None:
            raise unittest.SkipTest("no ip here (Debian: iproute2)")
        try:
            lay_cable()
        except subprocess.CalledProcessError as error:
            take_away()
            raise unittest.SkipTest(
                f"no network namespaces here: {error.stderr.strip()}")
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        take_away()
        cls.folder.cleanup()

    def start(self, out, steps):
        """A rank on each machine, told as torchrun tells."""
        processes = []
        for rank, name in enumerate(NAMES):
            environment = dict(os.environ, RANK=str(rank), WORLD_SIZE="2",
                               LOCAL_RANK="0", LOCAL_WORLD_SIZE="1",
                               MASTER_ADDR=ADDRESSES[0], MASTER_PORT=str(PORT))
            processes.append(subprocess.Popen(
                ["ip", "netns", "exec", name, PROGRAM, "train", "duplication",
                 "--out", str(out), *TINY, "--set", f"train.steps={steps}"],
                env=environment, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True))
        return processes

    def test_a_slow_cable_that_loses_packets_gives_the_same_bytes(self):
        files = []
        for slow in False, True:
            if slow:
                try:
                    for side in 0, 1:
                        on(side, "tc", "qdisc", "add", "dev", CABLE[side],
                           "root", "netem", "delay", "2ms", "loss", "1%")
                except subprocess.CalledProcessError as error:
                    self.skipTest(f"no tc netem here: {error.stderr.strip()}")
            out = pathlib.Path(self.folder.name) / f"slow-{slow}"
            for process in self.start(out, steps=8):
                _, told = process.communicate(timeout=240)
                self.assertEqual(process.returncode, 0, told)
            files.append((out / "step-00000008/model.safetensors")
                         .read_bytes())
        self.assertTrue(files[0] == files[1], "bytes")

    def test_a_cable_that_is_cut_ends_both(self):
        out = pathlib.Path(self.folder.name) / "cut"
        first, second = self.start(out, steps=100000)
        for line in first.stderr:
            if line.startswith("step 6/"):
                break
        on(0, "ip", "link", "set", CABLE[0], "down")
        began = time.monotonic()
        try:
            _, told = first.communicate(timeout=120)
            _, others_told = second.communicate(timeout=120)
        finally:
            for process in first, second:
                process.kill()
            on(0, "ip", "link", "set", CABLE[0], "up")
        self.assertLess(time.monotonic() - began, TIMEOUT + 30)
        self.assertEqual((first.returncode, second.returncode), (1, 1))
        self.assertRegex(told, "reformer: rank 0: rank 1 (was lost|hangs)")
        self.assertRegex(others_told, "reformer: rank 1: ")
        self.assertTrue((out / "step-00000005/model.safetensors").exists())


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
