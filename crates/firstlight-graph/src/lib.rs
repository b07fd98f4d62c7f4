//! Graph, op table, references and inference of Firstlight.
