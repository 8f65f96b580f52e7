"""reproduce_table2_test.py PROGRAM: `reformer reproduce table2`: its cells, and
resumption."""
import json
import pathlib
import tempfile
import unittest

from train_support import main, reformer


class Table2Test(unittest.TestCase):
    def table2(self, out, steps):
        return reformer("reproduce", "table2", "--quick", "--steps", steps,
                        "--seeds", 2, "--out", out, "--device", "cpu")

    def test_every_cell_is_there_and_nothing_is_done_twice(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "table2"
            run = self.table2(out, 1)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertRegex(run.stdout, r"lsh-4 +\d+\.\d \(  0\.8\)")
            lines = (out / "table2.jsonl").read_text()
            cells = [json.loads(line) for line in lines.splitlines()]
            self.assertEqual(
                [(cell["trained"], cell["evaluated"]) for cell in cells],
                [(trained, evaluated)
                 for trained in ("full", "lsh-4", "lsh-2", "lsh-1")
                 for evaluated in ("full", "lsh-8", "lsh-4", "lsh-2", "lsh-1")])
            for cell in cells:
                self.assertEqual(len(cell["seeds"]), 2)
                self.assertAlmostEqual(cell["accuracy"], sum(cell["seeds"]) / 2)
            self.assertTrue(any(cell["seeds"][0] != cell["seeds"][1]
                                for cell in cells))
            least = min(cells[0]["seeds"])
            self.assertRegex(run.stdout, rf"\n +{least:.1f} to \d+\.\d ")
            model = out / "trained-lsh-1/seed-1/step-00000001/model.safetensors"
            written = model.stat().st_mtime_ns
            self.assertEqual(self.table2(out, 1).returncode, 0)
            self.assertEqual((out / "table2.jsonl").read_text(), lines)
            self.assertEqual(model.stat().st_mtime_ns, written)
            again = self.table2(out, 2)
            self.assertEqual(again.returncode, 1)
            self.assertIn("other settings", again.stderr)


if __name__ == "__main__":
    main()
