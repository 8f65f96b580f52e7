"""data_test.py PROGRAM: `reformer train`, `eval` and `generate` on archives of
text and on images, as a user meets them."""
import gzip
import io
import lzma
import os
import pathlib
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

PROGRAM = None  # set below
TINY = ["--threads", "1"] + [word for setting in (
    "train.steps=3", "train.batch=2", "train.warmup=1", "model.layers=1",
    "model.d_model=16", "model.d_ff=16", "model.heads=2", "model.d_head=8",
    "lsh.chunk_length=8") for word in ("--set", setting)]
SMALL_TEXT = TINY + ["--set", "train.length=64"]
SMALL_IMAGES = TINY + [word for setting in (
    "task.image_size=4", "train.length=48", "model.axial_shape=4,4,3",
    "model.axial_dims=6,6,4") for word in ("--set", setting)]


def npy(rows):
    header = ("{'descr': '|u1', 'fortran_order': False, "
              f"'shape': ({len(rows)}, {len(rows[0])}), }}").encode()
    header = header.ljust(117) + b"\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header +
            b"".join(rows))


def imagenet_zip(images):
    """A .zip with an .npz in it, as ImageNet64 is offered."""
    inner, outer = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(inner, "w") as npz:
        # As NumPy does: it does not know the size before.
        with npz.open("data.npy", "w", force_zip64=True) as member:
            member.write(npy(images))
        npz.writestr("labels.npy", b"")
    with zipfile.ZipFile(outer, "w") as archive:
        archive.writestr("train_data_batch_1.npz", inner.getvalue())
    return outer.getvalue()


class DataTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)

    def reformer(self, *arguments, **settings):
        environment = {**os.environ,
                       "XDG_CACHE_HOME": str(self.folder / "caches")}
        run = subprocess.run([os.path.abspath(PROGRAM),
                              *map(str, arguments)], timeout=120,
                             capture_output=True, env=environment, text=True,
                             **settings)
        if "built without lib" in run.stderr:
            self.skipTest(run.stderr)
        return run

    def put(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return path

    def train(self, config, data, out, *settings):
        return self.reformer("train", config, "--data", data, "--out",
                             self.folder / out, *settings)

    def assert_fails(self, run, *parts):
        self.assertEqual((run.returncode, run.stdout), (1, ""), run.stderr)
        self.assertRegex(run.stderr, r"reformer: [^\n]*\n$")
        for part in parts:
            self.assertIn(part, run.stderr)


class TextTest(DataTest):
    def test_an_archive_trains_as_its_text_does_and_is_decoded_once(self):
        text = bytes(range(256)) * 40
        plain = self.put("plain", text)
        packed = self.put("packed.xz", lzma.compress(text))
        runs = [self.train("text", data, out, *SMALL_TEXT)
                for data, out in ((plain, "1"), (packed, "2"), (packed, "3"))]
        said = [[line for line in run.stdout.splitlines()
                 if line.startswith("step ")] for run in runs]
        self.assertEqual([run.returncode for run in runs], [0, 0, 0])
        self.assertEqual(said[0], said[1])
        self.assertEqual(said[0], said[2])
        self.assertEqual(["decoding" in run.stderr for run in runs],
                         [False, True, False])
        self.assertEqual(len(list(self.folder.glob("caches/*/*.cache"))), 1)

    def test_mistaken_data_is_one_sentence(self):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
            member = tarfile.TarInfo("text")
            member.size = 100000
            tar.addfile(member, io.BytesIO(os.urandom(100000)))
        for name, content, fault in (
                ("x.tar.gz", buffer.getvalue()[:50000], "truncated gzip input"),
                ("x.zip", b"no zip", "x.zip"),
                ("x.gz", b"not compressed", "rename it")):
            run = self.train("text", self.put(name, content), "out",
                             *SMALL_TEXT)
            self.assert_fails(run, str(self.folder / name), fault)

    def test_what_would_fill_the_memory_is_one_sentence_at_once(self):
        self.assert_fails(self.train("text", "/dev/zero", "out", *SMALL_TEXT),
                          "/dev/zero", "device")
        text = self.put("text", bytes(10000))
        for settings, fault in (
                (["model.layers=2147483647"], "from 1 to 1048576"),
                (["model.layers=1048576"], "of memory on this machine"),
                (["train.batch=2147483647"], "of memory on this machine"),
                (["train.batch=2147483647", "train.accumulate=2147483647",
                  "train.length=2147483647"], "train.batch")):
            run = self.train("text", text, "out", "--threads", "1", *(
                word for setting in settings for word in ("--set", setting)))
            self.assertEqual(run.returncode, 1, run.stderr)
            self.assertRegex(run.stderr, r"\Areformer: [^\n]*\n\Z")
            self.assertIn(fault, run.stderr)

    def test_a_damaged_gzip_is_one_sentence(self):
        packed = bytearray(gzip.compress(os.urandom(1000)))
        packed[500] ^= 1
        run = self.train("text", self.put("x.gz", packed), "out", *SMALL_TEXT)
        self.assert_fails(run, "x.gz", "incorrect data check")

    def test_caches_are_private(self):
        packed = self.put("packed.xz", lzma.compress(bytes(10000)))
        run = self.train("text", packed, "out", *SMALL_TEXT)
        self.assertEqual(run.returncode, 0, run.stderr)
        caches = self.folder / "caches/reformer"
        modes = {path.stat().st_mode & 0o777 for path in caches.iterdir()}
        self.assertEqual((caches.stat().st_mode & 0o777, modes),
                         (0o700, {0o600}))

    def test_the_folder_of_caches_can_be_chosen(self):
        packed = self.put("packed.xz", lzma.compress(bytes(10000)))
        run = self.train("text", packed, "out", *SMALL_TEXT, "--set",
                         f"task.cache={self.folder / 'mine'}")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len(list(self.folder.glob("mine/*.cache"))), 1)
        self.assertFalse((self.folder / "caches").exists())


class ImagesTest(DataTest):
    def setUp(self):
        super().setUp()
        images = [bytes((i + k) % 256 for k in range(48)) for i in range(60)]
        self.data = self.put("imagenet.zip", imagenet_zip(images))

    def trained(self):
        run = self.train("images-small", self.data, "run", *SMALL_IMAGES)
        self.assertEqual(run.returncode, 0, run.stderr)
        return self.folder / "run"

    def png_size(self, path):
        content = path.read_bytes()
        self.assertEqual(content[:8], b"\x89PNG\r\n\x1a\n")
        return struct.unpack(">II", content[16:24])

    def test_from_an_archive_to_completed_images(self):
        run = self.trained()
        evaluation = self.reformer("eval", run, "--threads", 1)
        self.assertEqual(evaluation.returncode, 0, evaluation.stderr)
        self.assertIn("bits per dim", evaluation.stdout)

        grid = self.folder / "grid.png"
        made = self.reformer("generate", run, "--images", "0,2", "--samples",
                             2, "--png", grid, "--threads", 1)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn(str(grid), made.stdout)
        # Images of 4 pixels, each a square of 32; half, 2 samples, original.
        self.assertEqual(self.png_size(grid), (4 * 132 + 4, 2 * 132 + 4))

        again = self.folder / "again.png"
        self.reformer("generate", run, "--images", "0,2", "--samples", 2,
                      "--png", again, "--threads", 1)
        self.assertTrue(grid.read_bytes() == again.read_bytes())

        from_file = self.reformer("generate", run, "--image-file", grid,
                                  "--samples", 1, "--out", again)
        self.assertEqual(from_file.returncode, 0, from_file.stderr)
        self.assertIn("half, 1 completion, original: ", from_file.stdout)
        self.assertEqual(self.png_size(again), (3 * 132 + 4, 132 + 4))

        names = ["completion.png", "completion-2.png", "completion-3.png"]
        for seed, name in enumerate(names):
            made = self.reformer("generate", run, "--images", 0, "--seed",
                                 seed, cwd=self.folder)
            self.assertIn(f"original: {name}\n", made.stdout)
        grids = {(self.folder / name).read_bytes() for name in names}
        self.assertEqual(len(grids), 3)  # none was written twice

    def test_mistakes_are_one_sentence(self):
        run = self.trained()
        for arguments, fault in (
                (["--images", "3"], "images 0 to 2, got 3"),
                (["--png", "/nowhere/grid.png"], "/nowhere/grid.png"),
                (["--image-file", "/nowhere"], "/nowhere"),
                (["--image-file", self.data], "neither PNG nor JPEG"),
                (["--prompt", "x"], "give --images or --image-file"),
                (["--json"], "give --images or --image-file"),
                (["--data", "/nowhere"], "cannot read /nowhere"),
                (["--png", "/nowhere/x.png"], "/nowhere/x.png")):
            self.assert_fails(self.reformer("generate", run, *arguments), fault)
        self.assert_fails(
            self.train("images-small", self.data, "other", *SMALL_IMAGES,
                       "--set", "task.image_size=5"), "train.length: 3")
        text = self.put("text", b"text " * 1000)
        self.assertEqual(self.train("text", text, "text-run",
                                    *SMALL_TEXT).returncode, 0)
        self.assert_fails(
            self.reformer("generate", self.folder / "text-run", "--images", 0),
            "for models of images")

    def test_a_folder_without_images_is_an_error(self):
        (self.folder / "empty").mkdir()
        (self.folder / "empty" / "readme").write_text("nothing")
        self.assert_fails(
            self.train("images-small", self.folder / "empty", "run",
                       *SMALL_IMAGES), "no image in it")


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
