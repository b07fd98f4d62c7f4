#!/usr/bin/env python3
"""Scores an ONNX runtime against the official ONNX backend test suite.

    run_suite.py [options] -- PROGRAM [ARG...]

The suite is the one in the installed `onnx` package. It is first written out
as one directory per case (see `write_suite`), once per `onnx` version.

Protocol. The runner starts `PROGRAM ARG... PLAN`. PLAN is a UTF-8 text file
with one case a line:

    CASE_ID <tab> CASE_DIR <tab> OUT_DIR

CASE_DIR holds `model.onnx` and `test_data_set_<n>/input_<i>.pb`, where
input_<i> is for the i-th graph input that is not also an initializer. For
each data set the program writes `OUT_DIR/test_data_set_<n>/output_<i>.pb`,
one file for the i-th graph output (OUT_DIR exists, its data-set folders do
not). Each .pb is a serialized TensorProto, SequenceProto or OptionalProto, as
the type that the graph declares for that input or output says. The program
works through the cases in order, and for each one prints, flushing each line:

    begin <tab> CASE_ID
    ok <tab> CASE_ID                        or
    unsupported <tab> CASE_ID <tab> REASON  (an op, type or attribute it lacks)
    error <tab> CASE_ID <tab> REASON        (any other failure)

All other lines on standard output are ignored. A program that dies or falls
silent costs only the case it had begun: the runner notes a crash or a timeout
and starts it again with the cases that are left. Outputs are compared here,
by the suite's own rules (type, shape, rtol and atol of the case, NaN equals
NaN), but for sequences, whose lengths must match too.

Verdicts: pass, unsupported, error, crash, timeout, missing_output,
wrong_type, wrong_shape, wrong_value.

Exit status: 0, or 1 if a case that --baseline has as passed fails now, or 2
if the run itself went wrong.
"""

from __future__ import annotations

import argparse
import collections
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import ModelProto, OptionalProto, SequenceProto, TensorProto, TypeProto, numpy_helper
from onnx.backend.test.loader import DATA_DIR, load_model_tests
from onnx.backend.test.runner import Runner

#: Cases whose expected outputs are random draws that no other implementation
#: can repeat. They are run (a crash shows) but left out of every score.
RANDOM = re.compile(r"test_(bernoulli|training_dropout)(?!.*zero_ratio)")


class Case(NamedTuple):
    """One case of the suite, as laid out on disk; its id is category/name."""

    id: str
    directory: Path
    rtol: float
    atol: float


class Verdict(NamedTuple):
    """What became of one case, and why."""

    verdict: str
    reason: str = ""


class Mismatch(Exception):
    """An output that differs from the expected one: (verdict, reason)."""


def to_proto(value: Any, type_proto: TypeProto) -> TensorProto | SequenceProto | OptionalProto:
    """Turns a value of a generated case into the proto that its type asks for."""
    kind = type_proto.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.from_list(value)
    if kind == "optional_type":
        return numpy_helper.from_optional(value)
    if kind != "tensor_type":
        raise ValueError(f"no file format for a value of {kind}")
    return value if isinstance(value, TensorProto) else numpy_helper.from_array(np.asarray(value))


def write_data_set(folder: Path, model: ModelProto, inputs: Any, outputs: Any) -> None:
    """Writes one data set's input_<i>.pb and output_<i>.pb."""
    folder.mkdir(parents=True)
    initialized = {tensor.name for tensor in model.graph.initializer}
    graph_inputs = [value for value in model.graph.input if value.name not in initialized]
    for kind, values, infos in (("input", inputs, graph_inputs), ("output", outputs, model.graph.output)):
        for i, value in enumerate(values):
            (folder / f"{kind}_{i}.pb").write_bytes(to_proto(value, infos[i].type).SerializeToString())


def write_suite(root: Path) -> None:
    """Writes the installed onnx package's suite to root/<category>/<case>/.

    Node cases are generated in memory (newer wheels ship no files for them);
    the `light` models get the input that onnx's own runner would make up.
    """
    part = Path(tempfile.mkdtemp(dir=root.parent, prefix=root.name))
    index: dict[str, tuple[float, float]] = {}
    for category in ("node", "simple", "pytorch-operator", "pytorch-converted", "real"):
        for test in load_model_tests(kind=category):
            group = "light" if category == "real" else category
            if category == "node" and "_expanded" in test.name:
                group = "node-expanded"
            target = part / group / test.name
            index[f"{group}/{test.name}"] = (test.rtol, test.atol)
            if test.model is not None:
                target.mkdir(parents=True)
                (target / "model.onnx").write_bytes(test.model.SerializeToString())
                for n, (inputs, outputs) in enumerate(test.data_sets or ()):
                    write_data_set(target / f"test_data_set_{n}", test.model, inputs, outputs)
            elif test.model_dir is not None:
                shutil.copytree(test.model_dir, target)
            else:
                source = Path(DATA_DIR) / "light" / Path(test.url or "").name
                model = onnx.load(source)
                outputs = [onnx.load_tensor(source.with_name(f"{source.stem}_output_0.pb"))]
                initialized = {tensor.name for tensor in model.graph.initializer}
                inputs = [Runner.generate_dummy_data(value) for value in model.graph.input
                          if value.name not in initialized]
                write_data_set(target / "test_data_set_0", model, inputs, outputs)
                shutil.copy(source, target / "model.onnx")
    (part / "index.json").write_text(json.dumps(index))
    part.rename(root)


def load_suite(root: Path, only: str) -> list[Case]:
    """Lists the cases whose id matches `only`, writing the suite if need be."""
    if not (root / "index.json").exists():
        root.parent.mkdir(parents=True, exist_ok=True)
        write_suite(root)
    index = json.loads((root / "index.json").read_text())
    return [Case(name, root / name, *tolerance) for name, tolerance in sorted(index.items())
            if re.search(only, name)]


def read_value(path: Path, type_proto: TypeProto) -> Any:
    """Reads a .pb as an array, a list (a sequence) or None (an empty optional)."""
    data, kind = path.read_bytes(), type_proto.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.to_list(SequenceProto.FromString(data))
    if kind == "optional_type":
        return numpy_helper.to_optional(OptionalProto.FromString(data))
    return numpy_helper.to_array(TensorProto.FromString(data))


def compare(got: Any, want: Any, case: Case, where: str) -> None:
    """Raises Mismatch unless `got` equals `want` to the suite's tolerance."""
    if want is None or isinstance(want, list):
        if not isinstance(got, type(want)):
            raise Mismatch("wrong_type", f"{where}: {type(got).__name__} for {type(want).__name__}")
        got_items, want_items = list(got or ()), list(want or ())
        if len(got_items) != len(want_items):
            raise Mismatch("wrong_shape", f"{where}: {len(got_items)} elements for {len(want_items)}")
        for i, want_item in enumerate(want_items):
            compare(got_items[i], want_item, case, f"{where}[{i}]")
        return
    if not isinstance(got, np.ndarray) or got.dtype != want.dtype:
        raise Mismatch("wrong_type", f"{where}: {getattr(got, 'dtype', type(got))} for {want.dtype}")
    if got.shape != want.shape:
        raise Mismatch("wrong_shape", f"{where}: {got.shape} for {want.shape}")
    if want.dtype == object:
        bad = np.asarray(got != want)
        if bad.any():
            raise Mismatch("wrong_value", f"{where}: {bad.sum()} of {bad.size} strings differ")
        return
    # Two units in the last place for bfloat16, as in onnx's own runner.
    rtol = max(case.rtol, 2**-6) if want.dtype.name == "bfloat16" else case.rtol
    if want.dtype.isbuiltin == 2:  # ml_dtypes: bfloat16, float8, float4, int4, ...
        got, want = got.astype(np.float32), want.astype(np.float32)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        bad = np.asarray(~np.isclose(got, want, rtol, case.atol, equal_nan=True))
        if bad.any():
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            raise Mismatch("wrong_value", f"{where}: {bad.sum()} of {bad.size} differ, first at {at}:"
                           f" {got[at]!r} for {want[at]!r}")


def check_outputs(case: Case, out: Path) -> Verdict:
    """Compares every output file of a case that the program called ok."""
    graph = onnx.load(case.directory / "model.onnx", load_external_data=False).graph
    for data_set in sorted(case.directory.glob("test_data_set_*")):
        for i in range(len(list(data_set.glob("output_*.pb")))):
            got_path = out / data_set.name / f"output_{i}.pb"
            where = f"{data_set.name}/output_{i}"
            if not got_path.exists():
                return Verdict("missing_output", where)
            want = read_value(data_set / f"output_{i}.pb", graph.output[i].type)
            try:
                got = read_value(got_path, graph.output[i].type)
            except Exception as error:  # a file that no protobuf reader takes
                return Verdict("wrong_type", f"{where}: unreadable: {error}")
            try:
                compare(got, want, case, where)
            except Mismatch as mismatch:
                return Verdict(*mismatch.args)
    return Verdict("pass")


def run_once(command: list[str], cases: list[Case], scratch: Path, timeout: float) -> dict[str, Verdict]:
    """Starts the program on `cases`; returns a verdict for each that it began."""
    plan = scratch / "plan.tsv"
    for case in cases:
        (scratch / case.id).mkdir(parents=True, exist_ok=True)
    plan.write_text("".join(f"{c.id}\t{c.directory.resolve()}\t{scratch / c.id}\n" for c in cases))
    by_id, verdicts, begun, late = {c.id: c for c in cases}, {}, "", threading.Event()
    with open(scratch / "stderr", "w+b") as stderr:
        process = subprocess.Popen([*command, str(plan)], stdout=subprocess.PIPE, stderr=stderr, text=True,
                                   errors="replace", stdin=subprocess.DEVNULL)

        def stop() -> None:
            late.set()
            process.kill()

        assert process.stdout
        while True:
            timer = threading.Timer(timeout, stop)
            timer.start()
            line = process.stdout.readline()
            timer.cancel()
            if not line:
                break
            word, name, reason = (line.rstrip("\n").split("\t", 2) + ["", ""])[:3]
            if name not in by_id:
                continue
            if word == "begin":
                begun = name
            elif word in ("ok", "unsupported", "error"):
                begun = ""
                verdicts[name] = (check_outputs(by_id[name], scratch / name) if word == "ok"
                                  else Verdict(word, reason))
                shutil.rmtree(scratch / name, ignore_errors=True)
        status = process.wait()
        process.stdout.close()
        stderr.seek(0)
        tail = " | ".join(stderr.read().decode(errors="replace").strip().splitlines()[-3:])[-400:]
    if begun:
        verdicts[begun] = (Verdict("timeout", f"no line for {timeout:g} s") if late.is_set()
                           else Verdict("crash", f"exit status {status}: {tail}"))
    elif not verdicts:
        raise RuntimeError(f"{command[0]} ran no case (exit status {status}): {tail}")
    return verdicts


def run_all(command: list[str], cases: list[Case], timeout: float) -> dict[str, Verdict]:
    """Runs the program again and again until every case has a verdict."""
    verdicts: dict[str, Verdict] = {}
    with tempfile.TemporaryDirectory(prefix="onnx-conformance-") as scratch:
        while left := [case for case in cases if case.id not in verdicts]:
            verdicts.update(run_once(command, left, Path(scratch), timeout))
    return verdicts


def report(verdicts: dict[str, Verdict]) -> dict[str, dict[str, int]]:
    """Prints one line per category and a total; returns the counts."""
    totals: dict[str, dict[str, int]] = {}
    for category in (*sorted({name.split("/")[0] for name in verdicts}), "total"):
        counts = collections.Counter(v.verdict for name, v in verdicts.items() if not RANDOM.search(name)
                                     and category in ("total", name.split("/")[0]))
        if counts:
            totals[category] = dict(sorted(counts.items()))
            rest = ", ".join(f"{n} {verdict}" for verdict, n in sorted(counts.items()) if verdict != "pass")
            print(f"{category:18} {counts['pass']:5} / {counts.total():5} pass   {rest}")
    return totals


def regressions(verdicts: dict[str, Verdict], baseline: dict[str, Any]) -> list[str]:
    """Names the cases that passed in the baseline and fail now."""
    if baseline["onnx"] != onnx.__version__:
        raise RuntimeError(f"the baseline is of onnx {baseline['onnx']}, installed is {onnx.__version__}")
    passed = {name for name, case in baseline["cases"].items() if case["verdict"] == "pass"}
    return sorted(name for name, v in verdicts.items()
                  if name in passed and v.verdict != "pass" and not RANDOM.search(name))


def main() -> int:
    """Parses the command line, runs, reports, compares with the baseline."""
    parser = argparse.ArgumentParser(description="Scores an ONNX runtime against onnx's backend test suite.")
    parser.add_argument("--suite", type=Path, help="where the suite is written out (default: a temporary folder)",
                        default=Path(tempfile.gettempdir()) / f"onnx-backend-suite-{onnx.__version__}")
    parser.add_argument("--only", default="", metavar="REGEX", help="run only cases whose category/name matches")
    parser.add_argument("--json", type=Path, help="write every case's verdict here")
    parser.add_argument("--baseline", type=Path, help="an earlier --json file; fail if a passed case fails now")
    parser.add_argument("--timeout", type=float, default=60, help="seconds that a case may take (default 60)")
    parser.add_argument("program", nargs="+", help="the program and its arguments, after --")
    args = parser.parse_args()
    try:
        cases = load_suite(args.suite, args.only)
        verdicts = run_all(args.program, cases, args.timeout)
        totals = report(verdicts)
        worse = regressions(verdicts, json.loads(args.baseline.read_text())) if args.baseline else []
    except (OSError, RuntimeError, json.JSONDecodeError) as error:
        print(f"run_suite: {error}", file=sys.stderr)
        return 2
    if args.json:
        listing = {name: verdicts[name]._asdict() for name in sorted(verdicts)}
        result = {"onnx": onnx.__version__, "totals": totals, "cases": listing}
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    for name in worse:
        print(f"REGRESSION {name}: {verdicts[name].verdict}: {verdicts[name].reason}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
