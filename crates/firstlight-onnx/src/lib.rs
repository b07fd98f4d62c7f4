//! ONNX import of Firstlight.
