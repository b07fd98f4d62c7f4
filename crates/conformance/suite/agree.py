#!/usr/bin/env python3
"""Compares a runtime with onnxruntime, value by value.

    agree.py --work DIR [options] -- PROGRAM [ARG...]

For each model and each set of inputs onnxruntime, its optimizer off, gives the
reference. PROGRAM gives the model's outputs, and then, from a copy of the
model that has up to ten intermediate values as further outputs, those too.
A value agrees when its type and shape are equal, integers and booleans are
equal, and no element is further from the reference than --tolerance times the
value's scale: its largest magnitude (magnitudes from 1e6 on, as masks use,
are each their own scale). NaN and infinity must stand where they do in the
reference. onnxruntime rounds too: where the two are further apart than that,
the graph evaluated in float64 (by the onnx package) decides, and the row says
how many values it decided.

Two ways to drive PROGRAM, --drive:

    run      PROGRAM ARG... run MODEL --input NAME=FILE.npy ... --output FILE.npz
             once for each set of inputs; the .npz names values as the graph does.
    session  PROGRAM ARG... PLAN, the protocol of run_suite.py: all sets of inputs
             of a model are data sets of one case, so one session answers them.

The models are two that `stand_ins.py` builds and those in --models DIR
(DIR/NAME/model.onnx): inputs are drawn for one-add, silero-vad, resnet50 and
minilm, any other model gets those of DIR/NAME/case/inputs.txt.

Exit status: 0, or 1 if a value disagrees, or 2 if the check itself went wrong.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime as ort
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

import stand_ins
from run_suite import read_value

#: Magnitudes from here on are mask fill: each is its own scale.
FILL = 1e6
#: How many intermediate values are looked at, spread over the graph.
N_INTERMEDIATES = 10

Values = dict[str, np.ndarray]


class Feed(NamedTuple):
    """One set of inputs and what to call it."""

    label: str
    values: Values


class Disagreement(Exception):
    """A value, an output set or a run that is not as the reference has it."""


def image(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Smooth noise in about [-1, 1]: a few random waves over the last two dimensions."""
    y, x = np.mgrid[0:shape[-2], 0:shape[-1]]
    planes = [sum(np.sin(rng.uniform(0, 0.2) * x + rng.uniform(0, 0.2) * y + rng.uniform(0, 6)) / 6 for _ in range(6))
              for _ in range(int(np.prod(shape[:-2])))]
    return np.stack(planes).reshape(shape).astype(np.float32)


def tokens(rng: np.random.Generator, batch: int, length: int, low: int, high: int) -> Feed:
    """Token ids, and a mask that hides a tail of every row but the first."""
    mask = np.ones((batch, length), np.int64)
    for row in range(1, batch):
        mask[row, max(1, length - length * row // (batch + 1)):] = 0
    ids = rng.integers(low, high, (batch, length)).astype(np.int64)
    return Feed(f"batch {batch} length {length}", {"input_ids": ids, "attention_mask": mask})


def drawn_feeds(name: str) -> list[Feed] | None:
    """The inputs drawn for a model that is known by name."""
    rng = np.random.default_rng([7, *name.encode()])
    if name == "one-add":
        return [Feed("4 floats", {"x": rng.normal(size=4).astype(np.float32)})]
    if name == "conv-block":
        return [Feed(f"batch {batch}", {"image": image(rng, batch, 3, 61, 53)}) for batch in (1, 3, 2)]
    if name == "resnet50":
        return [Feed(f"image {k}", {"input": image(rng, 1, 3, 224, 224)}) for k in (1, 2)]
    if name == "transformer":
        return [tokens(rng, b, n, 0, 500) for b, n in ((1, 1), (2, 7), (3, 33), (4, 64), (1, 130), (2, 7))]
    if name == "minilm":
        return [tokens(rng, b, n, 1000, 30000) for b, n in ((1, 7), (2, 16), (3, 65), (4, 128), (1, 300), (4, 300), (1, 7))]
    if name == "silero-vad":
        return [Feed(f"batch {batch}", {"input": (rng.normal(size=(batch, 576)) * 0.1).astype(np.float32),
                                        "state": rng.normal(size=(2, batch, 128)).astype(np.float32),
                                        "sr": np.array(16000, np.int64)}) for batch in (1, 3)]
    return None


def case_feed(folder: Path) -> Feed:
    """The inputs of a benchmark case: `name|dtype|dims|file` a line, raw little-endian files."""
    dtypes = {"f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32, "u8": np.uint8, "bool": np.bool_}
    values = {}
    for line in (folder / "inputs.txt").read_text().splitlines():
        name, dtype, dims, file = line.split("|")
        shape = [int(d) for d in dims.split(",") if d]
        values[name] = np.fromfile(folder / file, dtypes[dtype]).reshape(shape)
    return Feed("its case", values)


def models(folder: Path | None, only: str) -> Iterator[tuple[str, ModelProto, list[Feed]]]:
    """Every model to compare, its name and its inputs."""
    built = {"conv-block": stand_ins.conv_block, "transformer": stand_ins.transformer}
    for name, build in built.items():
        if re.search(only, name):
            yield name, build(), drawn_feeds(name) or []
    for path in sorted(folder.glob("*/model.onnx")) if folder else ():
        name = path.parent.name
        if re.search(only, name):
            yield name, onnx.load(path), drawn_feeds(name) or [case_feed(path.parent / "case")]


def reference_session(model: ModelProto) -> ort.InferenceSession:
    """onnxruntime on the CPU with its optimizer off."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def reference(session: ort.InferenceSession, feed: Values) -> Values:
    """The reference values of one set of inputs, by output name."""
    return dict(zip([out.name for out in session.get_outputs()], session.run(None, feed)))


def with_intermediates(model: ModelProto, feed: Values) -> ModelProto:
    """A copy that also gives up to ten intermediate values, floats first, spread evenly over the graph."""
    given = {out.name for out in model.graph.output}
    names = [name for node in model.graph.node if node.op_type != "Constant" for name in node.output
             if name and name not in given]
    every = ModelProto()
    every.CopyFrom(model)
    every.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    values = reference(reference_session(every), feed)
    names = [name for name in names if isinstance(values[name], np.ndarray) and values[name].size]
    floats = [name for name in names if values[name].dtype.kind == "f" and values[name].size > 1]
    pool = floats if len(floats) >= N_INTERMEDIATES else names
    picks = sorted({round(at) for at in np.linspace(0, len(pool) - 1, min(N_INTERMEDIATES, len(pool)))})
    wider = ModelProto()
    wider.CopyFrom(model)
    for name in (pool[at] for at in picks):
        dtype = onnx.helper.np_dtype_to_tensor_dtype(values[name].dtype)
        wider.graph.output.append(onnx.helper.make_tensor_value_info(name, dtype, [None] * values[name].ndim))
    return wider


def in_double(model: ModelProto, names: list[str], feed: Values) -> Values:
    """Values of a graph with float64 in place of float32, by the onnx package's evaluator; raises where it has no answer."""
    needed, kept = set(names), []
    for node in reversed(model.graph.node):
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(node.input)
    if any(attribute.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
           for node in kept for attribute in node.attribute):
        raise Disagreement("no float64 value: the graph has subgraphs")
    double = ModelProto()
    double.CopyFrom(model)
    for part in ("node", "output", "value_info", "initializer"):
        double.graph.ClearField(part)
    double.graph.node.extend(reversed(kept))
    for node in double.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == onnx.TensorProto.FLOAT:
                attribute.i = onnx.TensorProto.DOUBLE
            elif attribute.type == onnx.AttributeProto.TENSOR:
                attribute.t.CopyFrom(wide_tensor(attribute.t))
    double.graph.initializer.extend(wide_tensor(tensor) for tensor in model.graph.initializer if tensor.name in needed)
    for info in double.graph.input:
        if info.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            info.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    double.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    wide = {name: value.astype(np.float64) if value.dtype == np.float32 else value for name, value in feed.items()}
    return dict(zip(names, ReferenceEvaluator(double).run(None, wide)))


def wide_tensor(tensor: TensorProto) -> TensorProto:
    """The same tensor, float64 where it was float32."""
    if tensor.data_type != onnx.TensorProto.FLOAT:
        return tensor
    return numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name)


def error_in_double(got: np.ndarray, name: str, model: ModelProto, feed: Values) -> float:
    """How far a float32 value is from the graph's in float64, as a part of its scale; infinity where that has none."""
    try:
        return error_of_scale(got, in_double(model, [name], feed)[name].astype(np.float32))
    except Exception as why:  # the evaluator refuses in as many ways as it has ops
        print(f"{name}: no value in float64: {why}", file=sys.stderr)
        return np.inf


def error_of_scale(got: Any, want: np.ndarray) -> float:
    """How far `got` is from `want`, as a part of its scale; raises Disagreement where no number says it."""
    if not isinstance(got, np.ndarray) or got.dtype != want.dtype:
        raise Disagreement(f"type {getattr(got, 'dtype', type(got).__name__)}, expected {want.dtype}")
    if got.shape != want.shape:
        raise Disagreement(f"shape {got.shape}, expected {want.shape}")
    if want.size == 0:
        return 0.0
    if want.dtype.kind != "f":
        n_bad = int((got != want).sum())
        if n_bad:
            raise Disagreement(f"{n_bad} of {want.size} elements differ")
        return 0.0
    got, want = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(want)
    if not np.array_equal(got[~finite], want[~finite], equal_nan=True) or not np.isfinite(got[finite]).all():
        raise Disagreement("NaN or infinity in other places")
    got, want = got[finite], want[finite]
    magnitude = np.abs(want)
    plain = magnitude < FILL
    scale = np.where(plain, magnitude[plain].max(initial=0.0), magnitude)
    difference = np.abs(got - want)
    return float(np.max(np.divide(difference, scale, out=np.where(difference > 0, np.inf, 0.0), where=scale > 0),
                        initial=0.0))


def check(got: Values, want: Values, tolerance: float, model: ModelProto, feed: Values) -> tuple[float, str, int]:
    """The largest error of all values, whose it is, and how many values float64 decided; raises Disagreement if one is
    too large."""
    worst, where, n_decided = 0.0, "-", 0
    for name, value in want.items():
        if name not in got:
            raise Disagreement(f"{name}: missing; the program gave {sorted(got)[:20]}")
        try:
            error = error_of_scale(got[name], value)
        except Disagreement as why:
            raise Disagreement(f"{name}: {why}") from None
        if not error <= tolerance and value.dtype == np.float32:
            error, n_decided = error_in_double(got[name], name, model, feed), n_decided + 1
        if not error <= tolerance:
            raise Disagreement(f"{name}: {error:.2g} of scale, more than {tolerance:g}")
        if error >= worst:
            worst, where = error, name
    return worst, where, n_decided


def start(call: list[str], timeout: float) -> tuple[int, list[str]]:
    """Runs a program; its exit status and the lines it printed, errors among them."""
    try:
        done = subprocess.run(call, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise Disagreement(f"not done after {timeout:g} s") from None
    return done.returncode, done.stdout.decode(errors="replace").strip().splitlines()


def run_once(command: list[str], model: Path, feed: Feed, work: Path, timeout: float) -> Values:
    """Starts the program on one set of inputs."""
    call = [*command, "run", str(model)]
    for i, (name, value) in enumerate(feed.values.items()):
        file = work / f"input_{i}.npy"
        np.save(file, value)
        call += ["--input", f"{name}={file}"]
    out = work / "out.npz"
    out.unlink(missing_ok=True)
    status, printed = start([*call, "--output", str(out)], timeout)
    if status or not out.exists():
        raise Disagreement(f"exit status {status}, {'no ' * (not out.exists())}output file: {' | '.join(printed)[-600:]}")
    try:
        with np.load(out) as archive:
            return {name: archive[name] for name in archive.files}
    except ValueError as why:
        raise Disagreement(f"the output file is unreadable: {why}") from None


def drive_run(command: list[str], model: Path, feeds: list[Feed], work: Path,
              timeout: float) -> Iterator[Values | Disagreement]:
    """What the program gives for each set of inputs, started once for each."""
    for feed in feeds:
        try:
            yield run_once(command, model, feed, work, timeout)
        except Disagreement as why:
            yield why


def drive_session(command: list[str], model: Path, feeds: list[Feed], work: Path,
                  timeout: float) -> Iterator[Values | Disagreement]:
    """What the program gives for each set of inputs, started once: each is a data set of one case."""
    graph = onnx.load(model).graph
    initialized = {tensor.name for tensor in graph.initializer}
    names = [info.name for info in graph.input if info.name not in initialized]
    case, out, plan = work / "case", work / "out", work / "plan.tsv"
    for folder in (case, out):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    shutil.copy(model, case / "model.onnx")
    for n, feed in enumerate(feeds):
        data_set = case / f"test_data_set_{n}"
        data_set.mkdir()
        for i, name in enumerate(names):
            proto = numpy_helper.from_array(feed.values[name], name)
            (data_set / f"input_{i}.pb").write_bytes(proto.SerializeToString())
    plan.write_text(f"agree/case\t{case}\t{out}\n")
    try:
        status, printed = start([*command, str(plan)], timeout)
        if "ok\tagree/case" not in printed:
            raise Disagreement(f"exit status {status}, no `ok` line: {' | '.join(printed[-5:])[-600:]}")
    except Disagreement as why:
        yield from [why] * len(feeds)
        return
    for n in range(len(feeds)):
        files = {info.name: out / f"test_data_set_{n}" / f"output_{i}.pb" for i, info in enumerate(graph.output)}
        yield {info.name: read_value(files[info.name], info.type) for info in graph.output
               if files[info.name].exists()}


def compare_model(name: str, model: ModelProto, feeds: list[Feed], args: argparse.Namespace) -> list[dict[str, Any]]:
    """Compares one model on all its inputs; prints and returns one row for each set of inputs."""
    drive = {"run": drive_run, "session": drive_session}[args.drive]
    wider = with_intermediates(model, feeds[0].values)
    rows: list[dict[str, Any]] = [{"model": name, "inputs": feed.label, "worst": 0.0, "value": "-", "decided": 0, "problem": ""}
                                  for feed in feeds]
    n_values = len(wider.graph.output)
    for form, part in (("as it is", model), ("with intermediates", wider)):
        session, path = reference_session(part), args.work / f"{name}.onnx"
        onnx.save(part, path)
        for row, feed, given in zip(rows, feeds, drive(args.program, path, feeds, args.work, args.timeout)):
            try:
                if isinstance(given, Disagreement):
                    raise given
                want = reference(session, feed.values)
                worst, value, n_decided = check(given, want, args.tolerance, part, feed.values)
                row["decided"] += n_decided
                if worst >= row["worst"]:
                    row["worst"], row["value"] = worst, value
            except Disagreement as why:
                row["problem"] = row["problem"] or f"{form}: {why}"
        path.unlink()
    for row in rows:
        says = f"FAIL {row['problem']}" if row["problem"] else f"worst {row['worst']:.1e} of scale, at {row['value']}"
        says += f", {row['decided']} decided by float64" if row["decided"] else ""
        print(f"{name:12} {row['inputs']:20} {n_values} values: {says}", flush=True)
    return rows


def main() -> int:
    """Parses the command line, compares every model, says what came of it."""
    parser = argparse.ArgumentParser(description="Compares a runtime with onnxruntime, value by value.")
    parser.add_argument("--models", type=Path, help="folder of further models, NAME/model.onnx")
    parser.add_argument("--only", default="", metavar="REGEX", help="compare only models whose name matches")
    parser.add_argument("--drive", choices=("run", "session"), default="run")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="part of a value's scale (default 1e-4)")
    parser.add_argument("--timeout", type=float, default=300, help="seconds that one start may take (default 300)")
    parser.add_argument("--work", type=Path, required=True, help="scratch folder")
    parser.add_argument("--json", type=Path, help="write every row here")
    parser.add_argument("program", nargs="+", help="the program and its arguments, after --")
    args = parser.parse_args()
    args.work = args.work.resolve()
    args.work.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    try:
        for name, model, feeds in models(args.models, args.only):
            try:
                rows += compare_model(name, model, feeds, args)
            except OSError:
                raise
            except Exception as error:  # what onnxruntime cannot run is this model's row, not the end
                rows.append({"model": name, "inputs": "-", "worst": 0.0, "value": "-", "decided": 0, "problem": f"not compared: {error}"})
                print(f"{name:12} FAIL {rows[-1]['problem']}", flush=True)
    except OSError as error:
        print(f"agree: {error}", file=sys.stderr)
        return 2
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    if not rows:
        print(f"agree: no model matches {args.only!r}", file=sys.stderr)
        return 2
    n_bad = sum(bool(row["problem"]) for row in rows)
    print(f"{len(rows) - n_bad} of {len(rows)} sets of inputs agree")
    return 1 if n_bad else 0


if __name__ == "__main__":
    sys.exit(main())
