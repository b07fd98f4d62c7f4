#!/usr/bin/env python3
"""A stand-in for the `firstlight` program, on onnxruntime: it shows that agree.py can pass, and can fail.

    peer_run.py [--spoil HOW | --spoil-intermediate] run MODEL --input NAME=FILE.npy ... --output FILE.npz

HOW damages the first output: value, shape, dtype, nan, missing; or exit: status
3 and no file. --spoil-intermediate damages the last output of a model that has
more than one.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import onnxruntime as ort


def spoil(outputs: dict[str, np.ndarray], name: str, how: str) -> dict[str, np.ndarray]:
    """Damages one output in the way asked for."""
    value = outputs[name].copy()
    if how == "missing":
        return {key: outputs[key] for key in outputs if key != name}
    if how == "value":
        value.flat[-1] += 3e-4 * np.abs(value).max()
    elif how == "nan":
        value.flat[0] = np.nan
    elif how == "shape":
        value = value[None]
    elif how == "dtype":
        value = value.astype(np.float64)
    return {**outputs, name: value}


def main() -> int:
    """Runs the model once."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--spoil", choices=("value", "shape", "dtype", "nan", "missing", "exit"))
    parser.add_argument("--spoil-intermediate", action="store_true")
    parser.add_argument("verb", choices=("run",))
    parser.add_argument("model")
    parser.add_argument("--input", action="append", default=[])
    parser.add_argument("--output", required=True)
    args = parser.parse_args()
    if args.spoil == "exit":
        print("asked to fail", file=sys.stderr)
        return 3
    feeds = {name: np.load(file) for name, file in (text.rsplit("=", 1) for text in args.input)}
    session = ort.InferenceSession(args.model, providers=["CPUExecutionProvider"])
    outputs = dict(zip([out.name for out in session.get_outputs()], session.run(None, feeds)))
    names = list(outputs)
    if args.spoil:
        outputs = spoil(outputs, names[0], args.spoil)
    elif args.spoil_intermediate and len(names) > 1:
        outputs = spoil(outputs, names[-1], "value")
    np.savez(args.output, **outputs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
