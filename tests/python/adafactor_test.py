"""adafactor_python_test.py MODEL_TESTS: our Adafactor takes the steps of the
one in `transformers`. Exits with 77, saying so, where Python has it not."""
import os
import subprocess
import sys
import tempfile
import unittest

try:
    import torch
    from safetensors.torch import load_file, save_file
    from transformers.optimization import Adafactor
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

PROGRAM = None  # set below
SHAPES = [(7,), (5, 9), (1, 6), (3, 4, 6), (2, 3, 4, 5)]
STEPS = 5


def python_steps(weights, gradients):
    parameters = [torch.nn.Parameter(weight.clone()) for weight in weights]
    optimizer = Adafactor(parameters, lr=0.01, relative_step=False,
                          scale_parameter=True, warmup_init=False)
    for step in gradients:
        for parameter, gradient in zip(parameters, step):
            parameter.grad = gradient.clone()
        optimizer.step()
    return [parameter.detach() for parameter in parameters]


def our_steps(weights, gradients):
    with tempfile.TemporaryDirectory() as folder:
        tensors = {f"w.{i}": w for i, w in enumerate(weights)}
        for s, step in enumerate(gradients, 1):
            tensors.update({f"g.{s}.{i}": g for i, g in enumerate(step)})
        save_file(tensors, f"{folder}/in.safetensors")
        run = subprocess.run(
            [PROGRAM, "--gtest_filter=AdafactorPython.*"], capture_output=True,
            text=True, env={**os.environ, "REFORMER_ADAFACTOR_FOLDER": folder})
        assert run.returncode == 0 and "1 test." in run.stdout, run.stdout
        stepped = load_file(f"{folder}/out.safetensors")
    return [stepped[f"w.{i}"] for i in range(len(weights))]


class AdafactorTest(unittest.TestCase):
    def test_takes_the_same_steps(self):
        torch.manual_seed(0)
        for scale in 1, 1e-3, 30:  # of the gradients: clipped and not
            weights = [torch.randn(shape) for shape in SHAPES]
            gradients = [[torch.randn(shape) * scale for shape in SHAPES]
                         for _ in range(STEPS)]
            for ours, theirs, before in zip(our_steps(weights, gradients),
                                            python_steps(weights, gradients),
                                            weights):
                error = (ours - theirs).abs().max()
                self.assertGreater((theirs - before).abs().max(), 1e-4)
                self.assertLess(error, 2e-6 * theirs.abs().max())


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
