//! Models for the examples of this page.

use firstlight_tensor::wire::Writer;

/// An ONNX model of one node, `y = x + x`, over four floats.
pub fn one_add() -> Vec<u8> {
    let value = |w: &mut Writer, name: &str| {
        w.text(1, name).message(2, |w| {
            w.message(1, |w| {
                w.i64(1, 1).message(2, |w| {
                    w.message(1, |w| {
                        w.i64(1, 4);
                    });
                });
            });
        });
    };
    let mut model = Writer::new();
    model.i64(1, 10).message(8, |w| {
        w.text(1, "").i64(2, 17);
    });
    model.message(7, |graph| {
        graph.message(1, |node| {
            node.text(1, "x").text(1, "x").text(2, "y").text(3, "add").text(4, "Add");
        });
        graph.text(2, "one-add").message(11, |w| value(w, "x")).message(12, |w| value(w, "y"));
    });
    model.finish()
}
