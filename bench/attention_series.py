#!/usr/bin/env python3
"""attention_series.py RESULTS.jsonl > SERIES

Turns the lines of `reformer bench attention --json` into what
attention.gnuplot draws: a comment that says what was measured, one block for
exact attention, then one for each number of rounds, each headed by its name,
with the length and the seconds of a forward and backward pass.
"""
import json
import sys


def seconds(result, prefix=""):
    parts = [result[prefix + "forward_s"], result[prefix + "backward_s"]]
    return None if None in parts else sum(parts)


def series_of(results):
    """{name: {length: seconds}}, exact attention first."""
    series = {"exact attention": {}}
    for result in sorted(results, key=lambda r: (r["rounds"], r["length"])):
        rounds, length = result["rounds"], result["length"]
        name = f"LSH attention, {rounds} round{'s' if rounds > 1 else ''}"
        series.setdefault(name, {})[length] = seconds(result)
        exact = seconds(result, "exact_")
        if exact is not None:
            series["exact attention"][length] = exact
    return {name: points for name, points in series.items() if points}


def subject_of(results):
    text = ("{heads} heads of {d_head}, batch {batch}, {dtype}, causal; "
            "chunk {chunk_length}, {window} window, {data} data")
    return text.format(**results[0])


def main():
    with open(sys.argv[1]) as file:
        results = [json.loads(line) for line in file]
    print("#", subject_of(results))
    blocks = []
    for name, points in series_of(results).items():
        rows = [f"{length} {time}" for length, time in sorted(points.items())]
        blocks.append("\n".join([f'"{name}"', *rows]))
    print("\n\n\n".join(blocks))  # two empty lines between blocks


if __name__ == "__main__":
    main()
