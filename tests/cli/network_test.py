"""network_test.py PROGRAM: two machines, which are two network namespaces
joined by a cable: a slow one that loses packets, and one that is cut. Skipped
with a reason where namespaces are not allowed."""
import fcntl
import heapq
import os
import pathlib
import random
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PROGRAM = None  # set below
TIMEOUT = 12  # seconds until a fault ends all ranks, at the most
PORT = 29533
ADDRESSES = "10.213.7.1", "10.213.7.2"
SLOW_ADDRESSES = "10.213.8.1", "10.213.8.2"
DELAY = 0.002  # seconds, in each direction
LOSS = 0.01  # of the packets
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


class SlowCable:
    """What `tc netem` does, where the kernel has none: a second cable, between
    two tunnels of the machines, whose packets a thread carries over."""
    TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454ca, 1, 0x1000

    def __init__(self):
        self.ends = []
        for side in 0, 1:
            name = f"rt{os.getpid() % 100000}{'ab'[side]}"
            end = os.open("/dev/net/tun", os.O_RDWR)
            self.ends.append(end)
            fcntl.ioctl(end, self.TUNSETIFF, struct.pack(
                "16sH22x", name.encode(), self.IFF_TUN | self.IFF_NO_PI))
            ip("link", "set", name, "netns", NAMES[side])
            on(side, "ip", "addr", "add", f"{SLOW_ADDRESSES[side]}/30", "dev",
               name)
            on(side, "ip", "link", "set", name, "up")
        self.lost = self.carried = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.carry)
        self.thread.start()

    def carry(self):
        chance = random.Random(1)
        under_way = []  # (when it arrives, number, to which end, packet)
        while not self.ended.is_set():
            wait = 0.05
            if under_way:
                wait = max(0, under_way[0][0] - time.monotonic())
            for end in select.select(self.ends, [], [], min(wait, 0.05))[0]:
                packet = os.read(end, 1 << 16)
                if chance.random() < LOSS:
                    self.lost += 1
                    continue
                self.carried += 1
                other = self.ends[1 - self.ends.index(end)]
                heapq.heappush(under_way, (time.monotonic() + DELAY,
                                           self.carried, other, packet))
            while under_way and under_way[0][0] <= time.monotonic():
                _, _, end, packet = heapq.heappop(under_way)
                os.write(end, packet)

    def close(self):
        self.ended.set()
        self.thread.join()
        for end in self.ends:
            os.close(end)


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

    def start(self, out, steps, address=ADDRESSES[0]):
        """A rank on each machine, told as torchrun tells."""
        processes = []
        for rank, name in enumerate(NAMES):
            environment = dict(os.environ, RANK=str(rank), WORLD_SIZE="2",
                               LOCAL_RANK="0", LOCAL_WORLD_SIZE="1",
                               MASTER_ADDR=address, MASTER_PORT=str(PORT))
            processes.append(subprocess.Popen(
                ["ip", "netns", "exec", name, PROGRAM, "train", "duplication",
                 "--out", str(out), *TINY, "--set", f"train.steps={steps}"],
                env=environment, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True))
        return processes

    def bytes_trained(self, name, address=ADDRESSES[0]):
        out = pathlib.Path(self.folder.name) / name
        for process in self.start(out, 8, address):
            _, told = process.communicate(timeout=240)
            self.assertEqual(process.returncode, 0, told)
        return (out / "step-00000008/model.safetensors").read_bytes()

    def test_a_slow_cable_that_loses_packets_gives_the_same_bytes(self):
        expected = self.bytes_trained("fast")
        try:
            for side in 0, 1:
                on(side, "tc", "qdisc", "add", "dev", CABLE[side], "root",
                   "netem", "delay", f"{1000 * DELAY}ms", "loss",
                   f"{100 * LOSS}%")
        except subprocess.CalledProcessError as error:
            no_netem = error.stderr.strip()
        else:
            try:
                found = self.bytes_trained("slow")
            finally:
                for side in 0, 1:
                    on(side, "tc", "qdisc", "del", "dev", CABLE[side], "root")
            self.assertTrue(found == expected, "bytes")
            return
        try:
            cable = SlowCable()
        except OSError as error:
            self.skipTest(f"no tc netem here: {no_netem}; no tunnels: {error}")
        try:
            found = self.bytes_trained("slow", SLOW_ADDRESSES[0])
        finally:
            cable.close()
        self.assertTrue(found == expected, "bytes")
        self.assertGreater(cable.carried, 500)
        self.assertGreater(cable.lost, 0)

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
