#!/usr/bin/env python3
"""What the benchmarks said, in one table beside what they have to reach.

    python3 python/benchmarks/bars.py FILE...

FILEs have rows of attention.py and huggingface.py among other lines; of several
of one kind the last counts. What has none is not measured: "-".
"""
import json
import pathlib
import sys

# Bench, start of `what`, key: what it is, at least, target. The op's ratio is
# the better the smaller.
BARS = [
    ("attention", "Python over C++", "ratio", "op, Python / C++", 1.05, 1.01),
    ("attention", "Python over C++", "forward_ratio", "  forward", None, None),
    ("attention", "Python over C++", "backward_ratio", "  backward", None,
     None),
    *[("huggingface train", what, key, f"{what}: {words}", *bars)
      for what, of_time, of_memory in (
          ("reformer", (10, 20), (10, 15)),
          ("reformer, train.offload", (10, 20), (10, 15)),
          ("reformer, stored", (10, 20), (None, None)))
      for key, words, bars in (
          ("times_faster", "times faster", of_time),
          ("times_less_memory", "times less memory", of_memory))],
    *[("huggingface generate", f"reformer, attention {whose}", "times_faster",
       f"tokens/s, attention {whose}: times", 5, 20)
      for whose in ("theirs", "ours")],
]


def rows_of(paths):
    rows = []
    for path in paths:
        for line in pathlib.Path(path).read_text(errors="replace").splitlines():
            begin = line.find('{"bench"')  # a progress bar may stand before it
            try:
                rows += [json.loads(line[begin:])] if begin >= 0 else []
            except ValueError:  # whoever wrote it was stopped
                continue
    return rows


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    rows = rows_of(sys.argv[1:])
    print(f"{'':44}{'measured':>10}{'at least':>10}{'target':>8}")
    for bench, what, key, words, least, target in BARS:
        row = next((row for row in reversed(rows) if row["bench"] == bench
                    and row["what"] == what), None)
        said = ("-" if row is None else
                f"{row[key]:.3f}" if key in row else "fault")
        print(f"{words:44}{said:>10}{least or '':>10}{target or '':>8}")
    for row in rows:
        if "step_s" in row:
            print(f"{row['what']}, {row['precision']}: {row['step_s']:.3f} s, "
                  f"{row['peak_gib']:.2f} GiB")
        elif "forward_ms" in row:
            print(f"{row['what']}: {row['forward_ms']:.3f} / "
                  f"{row['backward_ms']:.3f} ms")


if __name__ == "__main__":
    main()
