"""The benchmarks' table comes whatever happened to their programs."""
import subprocess
import sys

from conftest import ROOT

BARS = ROOT / "python" / "benchmarks" / "bars.py"


def test_bars_of_logs_that_were_cut_off(tmp_path):
    """Behind a progress bar; the last of two; no row; a fault; half a line."""
    begin = '{"bench": "attention", "what": "Python over C++", '
    ours = '{"bench": "huggingface train", "what": "reformer'
    (tmp_path / "log").write_text(
        begin + '"ratio": 2.0}\n'
        "Writing: 100%|##|" + begin + '"ratio": 1.003, "forward_ratio": 1.2}\n'
        + ours + '", "precision": "bfloat16", "fault": "out of memory"}\n'
        + ours + ', stored", "times_fas')
    done = subprocess.run([sys.executable, BARS, tmp_path / "log"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = {line[:44].strip(): line[44:].split() for line in
            done.stdout.splitlines()[1:] if line[44:].strip()}
    assert rows["op, Python / C++"] == ["1.003", "1.05", "1.01"]
    assert rows["forward"] == ["1.200"] and rows["backward"] == ["fault"]
    assert rows["reformer: times faster"][0] == "fault"
    assert rows["reformer, stored: times faster"][0] == "-"
