"""What the benchmarks share: lines of JSON, words on stderr, the C++ program."""
import json
import pathlib
import subprocess
import sys

import torch


def add_program(parser):
    parser.add_argument("--program", type=pathlib.Path,
                        default=pathlib.Path("build/reformer"),
                        help="the program `reformer`")


def report(bench, what, **values):
    """Prints a row; floats with four digits, which is more than they hold."""
    row = {"bench": bench, "what": what, **values}
    print(json.dumps({key: float(f"{value:.4g}") if isinstance(value, float)
                      else value for key, value in row.items()}), flush=True)


def say(sentence):
    print(sentence, file=sys.stderr, flush=True)


def run(program, *arguments):
    """What the program prints; RuntimeError with its last sentence."""
    done = subprocess.run([str(program), *map(str, arguments)],
                          capture_output=True, text=True)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no word"]
        raise RuntimeError(f"{program} {arguments[0]}: {lines[-1]}")
    return done.stdout


def run_json(program, *arguments):
    """The last line that it prints with --json."""
    return json.loads(run(program, *arguments, "--json").splitlines()[-1])


def machine(device):
    """What a row says of where it was measured."""
    if device != "cpu":
        return {"device": torch.cuda.get_device_name()}
    return {"device": "cpu", "threads": torch.get_num_threads()}
