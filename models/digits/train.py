"""Trains the digit classifier of `firstlight demo` and writes it as ONNX, with the digits that it never saw.

    python train.py                 trains, writes both files, prints the accuracy
    python train.py --check         counts what the committed model gets right, writes nothing

Data: the 1,797 digits of 8 by 8 pixels, from 0 to 16, that scikit-learn ships. Network: two residual blocks of 3 by 3
convolutions and two dense matrices, trained here in plain numpy. Everything random comes from SEED, so that the same
machine type and library versions give the same files.
"""

import os

# One thread adds in one order. Must be set before numpy is loaded.
for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

SEED = 2024
N_HELD_OUT = 360
N_EPOCHS = 60
BATCH = 64
RATE = 2e-3
DECAY = 1e-2
DROPOUT = 0.3
SMOOTHING = 0.02
# Greatest value of a pixel.
WHITE = 16.0
WIDTHS = {"stem": (1, 16), "wide": (16, 32), "hidden": (128, 64), "scores": (64, 10)}
BLOCKS = {"block1": 16, "block2": 32}

DATA = Path(__file__).resolve().parents[2] / "crates/firstlight-cli/data"
MODEL = DATA / "digits.onnx"
HELD_OUT = DATA / "held-out.npz"


def split(rng):
    """Images and labels to learn from, then those held out: a fifth of each digit's images, drawn by the seed."""
    images, labels = load_digits(return_X_y=True)
    images = images.astype(np.uint8).reshape(-1, 8, 8)
    labels = labels.astype(np.uint8)
    order = rng.permutation(len(labels))
    # Held out in proportion: of each digit, the first of the order.
    held = np.zeros(len(labels), dtype=bool)
    for digit in range(10):
        mine = order[labels[order] == digit]
        held[mine[: N_HELD_OUT // 10]] = True
    is_held = held[order]
    return images[order[~is_held]], labels[order[~is_held]], images[order[is_held]], labels[order[is_held]]


def columns(x):
    """The 3 by 3 windows of a padded [N,C,H,W], as a matrix of N*H*W rows."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.ascontiguousarray(windows.transpose(0, 2, 3, 1, 4, 5)).reshape(-1, x.shape[1] * 9)


def multiply(cols, weights, like):
    n, _, height, width = like.shape
    out = cols @ weights.reshape(len(weights), -1).T
    return out.reshape(n, height, width, -1).transpose(0, 3, 1, 2)


class Net:
    """The network: its weights, the forward pass and the gradients."""

    def __init__(self, rng):
        self.rng = rng
        self.weights = {}
        for name in ("stem", "wide"):
            self.conv_weights(name, *WIDTHS[name])
        for name, width in BLOCKS.items():
            self.conv_weights(f"{name}.a", width, width)
            self.conv_weights(f"{name}.b", width, width, gain=0.5)
        for name in ("hidden", "scores"):
            n_in, n_out = WIDTHS[name]
            self.weights[f"{name}.weight"] = self.normal((n_out, n_in), n_in)
            self.weights[f"{name}.bias"] = np.zeros(n_out, np.float32)

    def normal(self, shape, fan_in, gain=1.0):
        return (gain * np.sqrt(2 / fan_in) * self.rng.standard_normal(shape)).astype(np.float32)

    def conv_weights(self, name, n_in, n_out, gain=1.0):
        self.weights[f"{name}.weight"] = self.normal((n_out, n_in, 3, 3), n_in * 9, gain)
        self.weights[f"{name}.bias"] = np.zeros(n_out, np.float32)

    def conv(self, name, x):
        cols = columns(x)
        y = multiply(cols, self.weights[f"{name}.weight"], x) + self.weights[f"{name}.bias"][:, None, None]

        def back(dy):
            flat = dy.transpose(0, 2, 3, 1).reshape(-1, dy.shape[1])
            self.add(f"{name}.weight", flat.T @ cols)
            self.add(f"{name}.bias", flat.sum(0))
            turned = self.weights[f"{name}.weight"][:, :, ::-1, ::-1].transpose(1, 0, 2, 3)
            return multiply(columns(dy), np.ascontiguousarray(turned), dy)

        return self.record(back, y)

    def relu(self, x):
        return self.record(lambda dy: dy * (x > 0), np.maximum(x, 0))

    def pool(self, x):
        n, c, height, width = x.shape
        tiles = x.reshape(n, c, height // 2, 2, width // 2, 2)
        y = tiles.max(axis=(3, 5))

        def back(dy):
            is_most = tiles == y[:, :, :, None, :, None]
            share = dy / is_most.sum(axis=(3, 5))
            return (is_most * share[:, :, :, None, :, None]).reshape(x.shape)

        return self.record(back, y)

    def flatten(self, x):
        return self.record(lambda dy: dy.reshape(x.shape), x.reshape(len(x), -1))

    def dense(self, name, x):
        def back(dy):
            self.add(f"{name}.weight", dy.T @ x)
            self.add(f"{name}.bias", dy.sum(0))
            return dy @ self.weights[f"{name}.weight"]

        return self.record(back, x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"])

    def dropout(self, x, is_training):
        if not is_training:
            return x
        keep = (self.rng.random(x.shape) >= DROPOUT).astype(np.float32) / np.float32(1 - DROPOUT)
        return self.record(lambda dy: dy * keep, x * keep)

    def block(self, name, x):
        inside = self.conv(f"{name}.a", x)
        inside = self.conv(f"{name}.b", self.relu(inside))
        # The gradient of the sum goes through the block and past it.
        backs = [self.backs.pop() for _ in range(3)]

        def back(dy):
            through = dy
            for step in backs:
                through = step(through)
            return dy + through

        return self.relu(self.record(back, inside + x))

    def record(self, back, y):
        self.backs.append(back)
        return y

    def add(self, name, gradient):
        self.gradients[name] = gradient.reshape(self.weights[name].shape).astype(np.float32)

    def scores(self, images, is_training=False):
        """Scores of images of pixels 0 to 16."""
        self.backs = []
        x = images[:, None].astype(np.float32) * np.float32(1 / WHITE)
        x = self.block("block1", self.relu(self.conv("stem", x)))
        x = self.block("block2", self.relu(self.conv("wide", self.pool(x))))
        x = self.dropout(self.flatten(self.pool(x)), is_training)
        return self.dense("scores", self.relu(self.dense("hidden", x)))

    def learn(self, images, labels):
        """Gradients of the mean loss of a batch, in `self.gradients`; returns the loss."""
        scores = self.scores(images, is_training=True)
        shares = softmax(scores)
        wanted = np.full(shares.shape, SMOOTHING / 10, np.float32)
        wanted[np.arange(len(labels)), labels] += 1 - SMOOTHING
        self.gradients = {}
        gradient = (shares - wanted) / np.float32(len(labels))
        for back in reversed(self.backs):
            gradient = back(gradient)
        return float(-(wanted * np.log(shares + 1e-9)).sum(1).mean())


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def shifted(images, rng):
    """Each image moved by up to one pixel, up or down and left or right."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    places = rng.integers(0, 3, size=(len(images), 2))
    return np.stack([padded[i, y : y + 8, x : x + 8] for i, (y, x) in enumerate(places)])


def train(rng, images, labels):
    """Adam with decoupled decay; the rate falls to nothing along a cosine."""
    net = Net(rng)
    first = {name: np.zeros_like(w) for name, w in net.weights.items()}
    second = {name: np.zeros_like(w) for name, w in net.weights.items()}
    n_batches = len(labels) // BATCH
    step = 0
    for epoch in range(N_EPOCHS):
        order = rng.permutation(len(labels))
        loss = 0.0
        for b in range(n_batches):
            mine = order[b * BATCH : (b + 1) * BATCH]
            loss += net.learn(shifted(images[mine], rng), labels[mine])
            step += 1
            rate = RATE * 0.5 * (1 + np.cos(np.pi * step / (N_EPOCHS * n_batches)))
            for name, w in net.weights.items():
                g = net.gradients[name]
                first[name] = 0.9 * first[name] + 0.1 * g
                second[name] = 0.999 * second[name] + 0.001 * g * g
                move = (first[name] / (1 - 0.9**step)) / (np.sqrt(second[name] / (1 - 0.999**step)) + 1e-8)
                decay = DECAY * w if name.endswith("weight") else 0
                net.weights[name] = (w - rate * (move + decay)).astype(np.float32)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: loss {loss / n_batches:.4f}", flush=True)
    return net


def as_onnx(net, n_right, n_held_out):
    """The network as a model: `image` f32[N,1,8,8] with pixels 0 to 16, `probabilities` f32[N,10]."""
    nodes = []

    def node(op, name, inputs, **attributes):
        nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def conv(name, x):
        return node("Conv", name, [x, f"{name}.weight", f"{name}.bias"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])

    def pool(name, x):
        return node("MaxPool", name, [x], kernel_shape=[2, 2], strides=[2, 2])

    def block(name, x):
        inside = node("Relu", f"{name}.a.relu", [conv(f"{name}.a", x)])
        return node("Relu", f"{name}.relu", [node("Add", f"{name}.sum", [conv(f"{name}.b", inside), x])])

    def dense(name, x):
        return node("Gemm", name, [x, f"{name}.weight", f"{name}.bias"], transB=1)

    x = node("Mul", "scaled", ["image", "scale"])
    x = block("block1", node("Relu", "stem.relu", [conv("stem", x)]))
    x = pool("pool1", x)
    x = block("block2", node("Relu", "wide.relu", [conv("wide", x)]))
    x = node("Flatten", "flat", [pool("pool2", x)], axis=1)
    x = dense("scores", node("Relu", "hidden.relu", [dense("hidden", x)]))
    node("Softmax", "probabilities", [x], axis=1)

    weights = {"scale": np.array(1 / WHITE, np.float32), **net.weights}
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["N", 10])],
        [numpy_helper.from_array(w, name) for name, w in weights.items()],
    )
    model = helper.make_model(
        graph, producer_name="models/digits/train.py", opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    helper.set_model_props(
        model,
        {
            "data": "scikit-learn load_digits (UCI Optical Recognition of Handwritten Digits, test part)",
            "held_out": str(n_held_out),
            "held_out_right": str(n_right),
            "seed": str(SEED),
        },
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def count_right(net, images, labels):
    return int((net.scores(images).argmax(1) == labels).sum())


def check():
    """Counts what the committed model gets right, with numpy only; fails where its metadata says otherwise."""
    model = onnx.load(MODEL)
    net = Net(np.random.default_rng(0))
    stored = {w.name: numpy_helper.to_array(w) for w in model.graph.initializer}
    net.weights = {name: stored[name] for name in net.weights}
    held = np.load(HELD_OUT)
    says = {p.key: p.value for p in model.metadata_props}
    n_right = count_right(net, held["images"], held["labels"])
    print(f"{n_right} of {len(held['labels'])} held-out digits right; the model says {says['held_out_right']}")
    raise SystemExit(0 if str(n_right) == says["held_out_right"] else 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="measure the committed files, write nothing")
    if parser.parse_args().check:
        check()
    rng = np.random.default_rng(SEED)
    images, labels, held_images, held_labels = split(rng)
    net = train(rng, images, labels)
    n_right = count_right(net, held_images, held_labels)
    model = as_onnx(net, n_right, len(held_labels))
    DATA.mkdir(parents=True, exist_ok=True)
    MODEL.write_bytes(model.SerializeToString(deterministic=True))
    np.savez(HELD_OUT, images=held_images, labels=held_labels)
    print(f"{count_right(net, images, labels)} of {len(labels)} digits of the training part right")
    print(f"{n_right} of {len(held_labels)} held-out digits right: {100 * n_right / len(held_labels):.1f} %")
    print(f"{MODEL.name}: {MODEL.stat().st_size:,} bytes; {HELD_OUT.name}: {HELD_OUT.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
