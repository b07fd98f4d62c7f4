use super::super::matmul::tests::{check, noise};
use super::*;
use firstlight_graph::ops::Conv;
use firstlight_graph::ops::nn::window::AutoPad;

fn conv(op: Conv, x: &[usize], w: &[usize], bias: bool) {
    let out = op.geometry(x, w).unwrap().out_shape();
    let bias = bias.then(|| noise(&[w[0]], 3));
    check(&BINDINGS[0], op, &[Some(noise(x, 1)), Some(noise(w, 2)), bias], &out);
}

fn padded(pad: i64, rank: usize) -> Conv {
    Conv { pads: vec![pad; 2 * rank], ..Conv::default() }
}

#[test]
fn products_have_the_bits_of_the_reference() {
    conv(padded(1, 2), &[1, 3, 9, 11], &[5, 3, 3, 3], true);
    conv(padded(1, 2), &[2, 20, 14, 14], &[30, 20, 3, 3], false);
    conv(padded(0, 2), &[2, 40, 13, 10], &[100, 40, 1, 1], true);
    conv(Conv { strides: vec![2, 2], ..padded(0, 2) }, &[1, 20, 15, 16], &[24, 20, 1, 1], true);
    conv(Conv { strides: vec![2, 2], ..padded(3, 2) }, &[1, 3, 30, 31], &[64, 3, 7, 7], true);
    conv(Conv { pads: vec![0, 1, 2, 0], dilations: vec![2, 1], ..Conv::default() }, &[1, 7, 9, 8], &[6, 7, 3, 2], true);
    conv(
        Conv { auto_pad: AutoPad::SameUpper, strides: vec![2, 3], ..Conv::default() },
        &[1, 4, 9, 8],
        &[6, 4, 4, 4],
        true,
    );
    conv(padded(3, 2), &[1, 17, 1, 1], &[9, 17, 1, 1], true);
    conv(padded(0, 1), &[1, 1, 576], &[258, 1, 256], false);
    conv(Conv { strides: vec![128], ..padded(0, 1) }, &[1, 1, 576], &[258, 1, 256], false);
    conv(Conv { strides: vec![2], ..padded(1, 1) }, &[3, 65, 4], &[64, 65, 3], true);
    conv(padded(1, 2), &[1, 64, 30, 40], &[200, 64, 3, 3], true);
}

#[test]
fn groups_have_the_bits_of_the_reference() {
    conv(Conv { group: 3, ..padded(1, 2) }, &[2, 12, 9, 7], &[15, 4, 3, 3], true);
    conv(Conv { group: 2, ..padded(0, 2) }, &[1, 40, 6, 8], &[32, 20, 1, 1], true);
    conv(Conv { group: 5, ..padded(1, 2) }, &[1, 5, 20, 37], &[5, 1, 3, 3], true);
    conv(Conv { group: 5, strides: vec![2, 2], ..padded(2, 2) }, &[2, 5, 14, 15], &[10, 1, 5, 5], false);
    conv(Conv { group: 5, ..padded(1, 1) }, &[2, 5, 50], &[5, 1, 3], true);
    conv(Conv { group: 3, ..padded(0, 2) }, &[1, 3, 6, 6], &[30, 1, 3, 3], true);
}

#[test]
fn nothing_in_nothing_out() {
    conv(padded(1, 2), &[0, 3, 5, 5], &[4, 3, 3, 3], true);
    conv(padded(1, 2), &[1, 0, 5, 5], &[4, 0, 3, 3], true);
    conv(padded(1, 2), &[1, 3, 5, 5], &[0, 3, 3, 3], false);
    conv(Conv { group: 2, ..padded(1, 2) }, &[0, 2, 5, 5], &[2, 1, 3, 3], true);
}
