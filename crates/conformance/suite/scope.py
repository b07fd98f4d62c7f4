#!/usr/bin/env python3
"""Says which cases of the suite lie within what is built, and how many of those pass.

    scope.py --suite DIR --verdicts FILE [--json FILE] -- PROGRAM

A case is within when `PROGRAM --ops` names every op it uses, in subgraphs too,
every type of its inputs, outputs and constants is listed here, and no node is
one of training. Prints those that do not pass.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import onnx
from onnx import GraphProto, NodeProto, TensorProto

from run_suite import RANDOM

#: Types of tensors that are built for those ops; float16 is asked of the ops that compute on it.
TYPES = {getattr(TensorProto, name) for name in
         "FLOAT DOUBLE FLOAT16 INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 BOOL".split()}


def trains(node: NodeProto) -> bool:
    """Whether a node asks for what only training does, which no op is built for."""
    if node.op_type == "BatchNormalization":
        return any(attribute.name == "training_mode" and attribute.i for attribute in node.attribute)
    # Inference has no use for the third input, unless to say false; no case does.
    return node.op_type == "Dropout" and len(node.input) > 2 and bool(node.input[2])


def parts(graph: GraphProto) -> Iterator[tuple[set[str], set[int], bool]]:
    """Ops, tensor types, and whether all values are tensors, of a graph and of the graphs inside it."""
    types = {tensor.data_type for tensor in graph.initializer}
    ops, is_plain = set(), True
    for info in (*graph.input, *graph.output, *graph.value_info):
        kind = info.type.WhichOneof("value")
        is_plain &= kind in (None, "tensor_type")
        if kind == "tensor_type":
            types.add(info.type.tensor_type.elem_type)
    for node in graph.node:
        ops.add(f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type)
        for attribute in node.attribute:
            types |= {attribute.t.data_type} if attribute.HasField("t") else set()
            if node.op_type == "Cast" and attribute.name == "to":
                types.add(attribute.i)
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from parts(inner)
    yield ops, types - {TensorProto.UNDEFINED}, is_plain


def built_ops(program: str) -> set[str]:
    """The ops that the program imports: `Name`, or `domain.Name` outside the default domain."""
    return set(subprocess.run([program, "--ops"], check=True, capture_output=True, text=True).stdout.split())


def has_training(graph: GraphProto) -> bool:
    """Whether a node of a graph, or of a graph inside it, trains."""
    inner = (attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g"))
    return any(map(trains, graph.node)) or any(map(has_training, inner))


def is_built(model: onnx.ModelProto, built: set[str]) -> bool:
    """Whether a model uses only what is built."""
    return all(ops <= built and types <= TYPES and is_plain for ops, types, is_plain in parts(model.graph))


def main() -> int:
    """Counts the cases within, and those of them that pass."""
    parser = argparse.ArgumentParser(description="Which cases of the suite lie within what is built?")
    parser.add_argument("--suite", type=Path, required=True)
    parser.add_argument("--verdicts", type=Path, required=True, help="what run_suite.py --json wrote")
    parser.add_argument("--json", type=Path, help="write the counts and the cases that do not pass here")
    parser.add_argument("program", help="the program that gave the verdicts")
    args = parser.parse_args()
    built = built_ops(args.program)
    cases = json.loads(args.verdicts.read_text())["cases"]
    within, training = [], []
    for name in (name for name in cases if not RANDOM.search(name)):
        model = onnx.load(args.suite / name / "model.onnx", load_external_data=False)
        if is_built(model, built):
            (training if has_training(model.graph) else within).append(name)
    failed = {name: cases[name] for name in within if cases[name]["verdict"] != "pass"}
    for name, case in failed.items():
        print(f"  {case['verdict']:14} {name}: {case['reason']}")
    print(f"{len(within) - len(failed)} of {len(within)} cases within what is built pass; "
          f"{len(training)} more are of training: {' '.join(training)}")
    if args.json:
        counts = {"built": len(within), "passed": len(within) - len(failed), "training": len(training),
                  "failed": failed}
        args.json.write_text(json.dumps(counts, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
