#!/usr/bin/env python3
"""The checkers, checked: they pass a right answer and fail each kind of wrong one.

Run from this folder: python -m unittest test_checks
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

import agree
import run_suite
import scope
import stand_ins

HERE = Path(__file__).parent


def agree_with(*peer: str, drive: str = "run", only: str = "conv-block") -> subprocess.CompletedProcess[str]:
    """agree.py on a stand-in program."""
    with tempfile.TemporaryDirectory() as work:
        call = [sys.executable, str(HERE / "agree.py"), "--work", work, "--only", only, "--drive", drive, "--"]
        return subprocess.run([*call, sys.executable, *peer], capture_output=True, text=True, check=False)


class Agree(unittest.TestCase):
    """agree.py against peers that are right and peers that are not."""

    def test_right_answers_agree(self) -> None:
        for drive, peer in (("run", [str(HERE / "peer_run.py")]),
                            ("session", [str(HERE / "peer_python.py"), "onnxruntime"])):
            done = agree_with(*peer, drive=drive)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("3 of 3 sets of inputs agree", done.stdout)

    def test_every_kind_of_damage_is_seen(self) -> None:
        for how, words in (
            (["--spoil", "value"], "of scale, more than"),
            (["--spoil", "shape"], "shape"),
            (["--spoil", "dtype"], "type float64"),
            (["--spoil", "nan"], "NaN or infinity"),
            (["--spoil", "missing"], "missing"),
            (["--spoil", "exit"], "exit status 3"),
            (["--spoil-intermediate"], "with intermediates"),
        ):
            done = agree_with(str(HERE / "peer_run.py"), *how)
            self.assertEqual(done.returncode, 1, f"{how}: {done.stdout}{done.stderr}")
            self.assertIn(words, done.stdout, str(how))
            self.assertIn("0 of 3 sets of inputs agree", done.stdout, str(how))

    def test_a_model_that_onnxruntime_refuses_is_one_row(self) -> None:
        with tempfile.TemporaryDirectory() as work:
            folder = Path(work) / "models/refused"
            folder.mkdir(parents=True)
            x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
            model = helper.make_model(helper.make_graph([helper.make_node("NoSuchOp", ["x"], ["y"])], "g", [x], [y]))
            onnx.save(model, folder / "model.onnx")
            (folder / "case").mkdir()
            (folder / "case/inputs.txt").write_text("x|f32|4|x.bin\n")
            np.zeros(4, np.float32).tofile(folder / "case/x.bin")
            call = [sys.executable, str(HERE / "agree.py"), "--work", work, "--models", str(folder.parent),
                    "--only", "^(refused|conv-block)$", "--", sys.executable, str(HERE / "peer_run.py")]
            done = subprocess.run(call, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("refused      FAIL not compared", done.stdout)
        self.assertIn("3 of 4 sets of inputs agree", done.stdout)

    def test_a_program_that_is_not_there_is_no_disagreement(self) -> None:
        with tempfile.TemporaryDirectory() as work:
            call = [sys.executable, str(HERE / "agree.py"), "--work", work, "--", str(Path(work) / "nothing")]
            done = subprocess.run(call, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("nothing", done.stderr)

    def test_the_scale_ignores_mask_fill(self) -> None:
        want = np.array([1.0, -2.0, -1e9], np.float32)
        self.assertEqual(agree.error_of_scale(want.copy(), want), 0)
        self.assertAlmostEqual(agree.error_of_scale(np.array([1.0, -2.02, -1e9], np.float32), want), 0.01, places=5)
        self.assertGreater(agree.error_of_scale(np.array([1.0, -2.0, -2e9], np.float32), want), 0.5)

    def test_zeros_must_be_zeros(self) -> None:
        zeros = np.zeros(3, np.float32)
        self.assertEqual(agree.error_of_scale(zeros, zeros), 0)
        self.assertEqual(agree.error_of_scale(zeros + np.float32(1e-20), zeros), np.inf)

    def test_float64_decides_where_rounding_is_magnified(self) -> None:
        nodes = [helper.make_node("ReduceMean", ["x"], ["mean"]), helper.make_node("Mul", ["x", "x"], ["squares"]),
                 helper.make_node("ReduceMean", ["squares"], ["mean of squares"]),
                 helper.make_node("Mul", ["mean", "mean"], ["square of mean"]),
                 helper.make_node("Sub", ["mean of squares", "square of mean"], ["variance"])]
        x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
                for name, dims in (("x", [1, 1000]), ("variance", [1, 1])))
        model = helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=[helper.make_opsetid("", 17)])
        feed = {"x": (30 + np.sin(np.arange(1000, dtype=np.float32)))[None]}
        want = feed["x"].astype(np.float64).var().astype(np.float32).reshape(1, 1)
        off = want * np.float32(1.01)
        self.assertGreater(agree.error_of_scale(want, off), 1e-3)
        worst, where, n_decided = agree.check({"variance": want}, {"variance": off}, 1e-4, model, feed)
        self.assertEqual((where, n_decided), ("variance", 1))
        self.assertLess(worst, 1e-6)
        with self.assertRaises(agree.Disagreement):
            agree.check({"variance": off}, {"variance": want}, 1e-4, model, feed)

    def test_intermediates_are_spread_over_the_graph(self) -> None:
        model = stand_ins.transformer()
        feed = agree.tokens(np.random.default_rng(0), 2, 5, 0, 500).values
        added = [out.name for out in agree.with_intermediates(model, feed).graph.output][1:]
        order = [name for node in model.graph.node for name in node.output]
        places = [order.index(name) / len(order) for name in added]
        self.assertEqual(len(added), agree.N_INTERMEDIATES)
        self.assertLess(min(places), 0.2)
        self.assertGreater(max(places), 0.9)


class Suite(unittest.TestCase):
    """run_suite.py on one case of its own making."""

    def score(self, program: str) -> run_suite.Verdict:
        """The verdict on a program, given as Python text, for one Add."""
        with tempfile.TemporaryDirectory() as scratch:
            suite = Path(scratch) / "suite"
            x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
            infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xyz"]
            graph = helper.make_graph([helper.make_node("Add", ["x", "y"], ["z"])], "add", infos[:2], infos[2:])
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
            run_suite.write_data_set(suite / "one/add/test_data_set_0", model, [x, y], [x + y])
            onnx.save(model, suite / "one/add/model.onnx")
            (Path(scratch) / "peer.py").write_text(program)
            case = run_suite.Case("one/add", suite / "one/add", 1e-3, 1e-7)
            return run_suite.run_all([sys.executable, str(Path(scratch) / "peer.py")], [case], timeout=5)["one/add"]

    def peer(self, body: str) -> str:
        """A program that reads the plan and, between `begin` and its end, does `body`."""
        return ("import sys, os, time, pathlib, numpy, onnx\nfrom onnx import numpy_helper\n"
                "name, case, out = open(sys.argv[1]).read().rstrip('\\n').split('\\t')\n"
                "def give(array):\n"
                "    folder = pathlib.Path(out) / 'test_data_set_0'; folder.mkdir()\n"
                "    (folder / 'output_0.pb').write_bytes(numpy_helper.from_array(array).SerializeToString())\n"
                "print('begin', name, sep='\\t', flush=True)\n" + body)

    def test_verdicts(self) -> None:
        ok = "\nprint('ok', name, sep='\\t', flush=True)\n"
        for body, verdict in (
            ("give(numpy.arange(1, 5, dtype='f4'))" + ok, "pass"),
            ("give(numpy.arange(1, 5, dtype='f4') * 1.01)" + ok, "wrong_value"),
            ("give(numpy.arange(1, 5, dtype='f8'))" + ok, "wrong_type"),
            ("give(numpy.arange(1, 6, dtype='f4'))" + ok, "wrong_shape"),
            (ok, "missing_output"),
            ("os.abort()", "crash"),
            ("time.sleep(60)", "timeout"),
            ("print('unsupported', name, 'no Add', sep='\\t', flush=True)", "unsupported"),
            ("print('error', name, 'oops', sep='\\t', flush=True)", "error"),
        ):
            self.assertEqual(self.score(self.peer(body)).verdict, verdict, body)

    def test_training_is_out_of_scope(self) -> None:
        def graph(op: str, n_inputs: int, **attributes: int) -> onnx.GraphProto:
            node = helper.make_node(op, [f"x{i}" for i in range(n_inputs)], ["y"], **attributes)
            return helper.make_graph([node], "g", [], [])

        for inner, expected in ((graph("BatchNormalization", 5, training_mode=1), True),
                                (graph("BatchNormalization", 5, training_mode=0), False),
                                (graph("Dropout", 3), True), (graph("Dropout", 2), False)):
            branch = helper.make_node("If", ["c"], ["z"], then_branch=inner, else_branch=graph("Abs", 1))
            for outer in (inner, helper.make_graph([branch], "g", [], [])):
                self.assertEqual(scope.has_training(outer), expected, str(outer))

    def test_a_lost_pass_is_a_regression(self) -> None:
        baseline = {"onnx": onnx.__version__, "cases": {"a/x": {"verdict": "pass"}, "a/y": {"verdict": "error"}}}
        now = {"a/x": run_suite.Verdict("wrong_value"), "a/y": run_suite.Verdict("crash")}
        self.assertEqual(run_suite.regressions(now, baseline), ["a/x"])


if __name__ == "__main__":
    unittest.main()
