"""Small models with the shapes of large ones, built by onnx.helper from seeded weights.

`conv_block` is a residual convolution network of two blocks; `transformer` is
two encoder layers over token ids, batch and sequence symbolic, with the
Shape, Gather, Concat and Reshape chains that exporters write.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper


class Net:
    """A graph under construction: every method adds to it and returns the name of a value."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[TensorProto] = []

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """One node with one output."""
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=f"node_{name}", **attributes))
        return name

    def const(self, values: Any, dtype: Any = np.int64) -> str:
        """A Constant node."""
        return self.op("Constant", value=numpy_helper.from_array(np.asarray(values, dtype)))

    def weight(self, *shape: int, fan_in: int = 1, around: float = 0.0) -> str:
        """An initializer of normal draws around `around`, scaled by 1 / sqrt(fan_in)."""
        values = around + self.rng.normal(0, fan_in**-0.5, shape)
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), f"weight_{len(self.weights)}"))
        return self.weights[-1].name

    def model(self, name: str, inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]) -> ModelProto:
        """The finished model, opset 17."""
        graph = helper.make_graph(self.nodes, name, inputs, outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        return model


def conv_block() -> ModelProto:
    """A stem, a block with a projected shortcut, a block with a plain one, and a classifier."""
    net = Net(seed=17)

    def conv(x: str, c_in: int, c_out: int, size: int, stride: int = 1) -> str:
        weight = net.weight(c_out, c_in, size, size, fan_in=c_in * size * size)
        return net.op("Conv", x, weight, net.weight(c_out, fan_in=100), kernel_shape=[size, size],
                      pads=[size // 2] * 4, strides=[stride, stride])

    def block(x: str, c_in: int, c_mid: int, c_out: int, stride: int) -> str:
        y = net.op("Relu", conv(x, c_in, c_mid, 1))
        y = net.op("Relu", conv(y, c_mid, c_mid, 3, stride))
        y = conv(y, c_mid, c_out, 1)
        shortcut = x if (c_in, stride) == (c_out, 1) else conv(x, c_in, c_out, 1, stride)
        return net.op("Relu", net.op("Add", y, shortcut))

    x = net.op("Relu", conv("image", 3, 24, 7, 2))
    x = net.op("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    x = block(x, 24, 20, 72, 2)
    x = block(x, 72, 20, 72, 1)
    x = net.op("Flatten", net.op("GlobalAveragePool", x), axis=1)
    net.nodes.append(helper.make_node("Gemm", [x, net.weight(10, 72, fan_in=72), net.weight(10)], ["scores"],
                                      name="classifier", transB=1))
    return net.model("conv_block", [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, 61, 53])],
                     [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 10])])


def transformer(hidden: int = 96, heads: int = 4, inner: int = 200, vocabulary: int = 500) -> ModelProto:
    """Embedding, then two layers: one with LayerNormalization, one with it written out in smaller ops."""
    net = Net(seed=18)
    head = hidden // heads
    n_positions = 512

    def dim(x: str, axis: int) -> str:
        size = net.op("Gather", net.op("Shape", x), net.const(axis), axis=0)
        return net.op("Unsqueeze", size, net.const([0]))

    def linear(x: str, n_in: int, n_out: int) -> str:
        product = net.op("MatMul", x, net.weight(n_in, n_out, fan_in=n_in))
        return net.op("Add", net.weight(n_out, fan_in=50), product)

    def norm(x: str, written_out: bool) -> str:
        scale, bias = net.weight(hidden, fan_in=100, around=1), net.weight(hidden, fan_in=100)
        if not written_out:
            return net.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-12)
        centred = net.op("Sub", x, net.op("ReduceMean", x, axes=[-1]))
        square = net.op("Pow", centred, net.const(2, np.float32))
        variance = net.op("Add", net.op("ReduceMean", square, axes=[-1]), net.const(1e-12, np.float32))
        scaled = net.op("Mul", net.op("Div", centred, net.op("Sqrt", variance)), scale)
        return net.op("Add", scaled, bias)

    def gelu(x: str) -> str:
        erf = net.op("Erf", net.op("Div", x, net.const(2**0.5, np.float32)))
        return net.op("Mul", net.op("Mul", x, net.op("Add", erf, net.const(1, np.float32))), net.const(0.5, np.float32))

    def split_heads(x: str, order: list[int]) -> str:
        shape = net.op("Concat", dim(x, 0), dim(x, 1), net.const([heads]), net.const([head]), axis=0)
        return net.op("Transpose", net.op("Reshape", x, shape), perm=order)

    def attention(x: str, mask: str) -> str:
        query = split_heads(linear(x, hidden, hidden), [0, 2, 1, 3])
        key = split_heads(linear(x, hidden, hidden), [0, 2, 3, 1])
        value = split_heads(linear(x, hidden, hidden), [0, 2, 1, 3])
        logits = net.op("Div", net.op("MatMul", query, key), net.const(head**0.5, np.float32))
        weights = net.op("Softmax", net.op("Add", logits, mask), axis=-1)
        mixed = net.op("Transpose", net.op("MatMul", weights, value), perm=[0, 2, 1, 3])
        joined = net.op("Reshape", mixed, net.op("Concat", dim(x, 0), dim(x, 1), net.const([hidden]), axis=0))
        return linear(joined, hidden, hidden)

    count = net.op("Squeeze", dim("input_ids", 1), net.const([0]))
    positions = net.op("Range", net.const(0), count, net.const(1))
    words = net.op("Gather", net.weight(vocabulary, hidden), "input_ids", axis=0)
    places = net.op("Gather", net.weight(n_positions, hidden, fan_in=4), positions, axis=0)
    x = norm(net.op("Add", words, places), written_out=False)
    wide = net.op("Unsqueeze", "attention_mask", net.const([1, 2]))
    hidden_by_mask = net.op("Equal", wide, net.const(0))
    mask = net.op("Where", hidden_by_mask, net.const(-1e9, np.float32), net.const(0, np.float32))
    for written_out in (False, True):
        x = norm(net.op("Add", attention(x, mask), x), written_out)
        inside = gelu(linear(x, hidden, inner))
        x = norm(net.op("Add", linear(inside, inner, hidden), x), written_out)
    net.nodes.append(helper.make_node("Identity", [x], ["last_hidden_state"], name="result"))
    ids = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
           for name in ("input_ids", "attention_mask")]
    out = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "sequence", hidden])
    return net.model("transformer", ids, [out])
