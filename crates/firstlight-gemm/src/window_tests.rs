//! Windows on every instruction set against plain loops.

use crate::{Geometry, Isa, IsaKind, Src, WINDOW_SCRATCH_ELEMS, Window, WindowPlan};

fn noise(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect()
}

#[test]
fn windows_keep_the_written_order() {
    let mut scratch = vec![f32::NAN; WINDOW_SCRATCH_ELEMS];
    let g = |kernel, stride, dilation, pad, out| Geometry { kernel, stride, dilation, pad, out };
    let cases = [
        ([9, 11], g([3, 3], [1, 1], [1, 1], [1, 1], [9, 11])),
        ([7, 50], g([3, 3], [1, 1], [1, 1], [1, 1], [7, 50])),
        ([13, 41], g([3, 3], [2, 2], [1, 1], [1, 1], [7, 21])),
        ([12, 15], g([5, 5], [3, 3], [1, 1], [2, 2], [4, 5])),
        ([12, 15], g([3, 3], [1, 2], [2, 3], [2, 4], [12, 8])),
        ([1, 64], g([1, 16], [1, 4], [1, 1], [0, 3], [1, 13])),
        ([3, 3], g([2, 2], [1, 1], [1, 1], [4, 4], [9, 9])),
        ([130, 125], g([5, 5], [1, 1], [1, 1], [2, 2], [130, 125])),
        ([90, 301], g([3, 5], [2, 2], [1, 2], [1, 4], [45, 151])),
        ([4, 20_000], g([3, 2], [1, 1], [1, 1], [1, 1], [4, 20_001])),
    ];
    for ([h, w], geometry) in cases {
        let ([kh, kw], [out_h, out_w]) = (geometry.kernel, geometry.out);
        let mut x = noise(h * w, 1);
        x[0] = f32::NAN;
        x[h * w - 1] = -0.0;
        let x_bytes: Vec<u8> = std::iter::once(0).chain(x.iter().flat_map(|x| x.to_ne_bytes())).collect();
        let input = Src::from_bytes(&x_bytes[1..]);
        let plan = WindowPlan::new([h, w], geometry).unwrap();
        let (filter, residual) = (noise(kh * kw, 2), noise(out_h * out_w, 3));
        let at = |out: usize, tap: usize, axis: usize, n: usize| {
            let at =
                (out * geometry.stride[axis] + tap * geometry.dilation[axis]) as isize - geometry.pad[axis] as isize;
            (at >= 0 && at < n as isize).then_some(at as usize)
        };
        let fold = |i: usize, start: f32, f: &dyn Fn(f32, usize, Option<f32>) -> f32| {
            (0..kh * kw).fold(start, |acc, tap| {
                let place = (at(i / out_w, tap / kw, 0, h), at(i % out_w, tap % kw, 1, w));
                f(acc, tap, if let (Some(ih), Some(iw)) = place { Some(x[ih * w + iw]) } else { None })
            })
        };
        let max = |acc: f32, _: usize, x: Option<f32>| match x {
            Some(x) if x > acc => x,
            _ => acc,
        };
        let sum = |acc: f32, tap: usize, x: Option<f32>| filter[tap].mul_add(x.unwrap_or(0.0), acc);
        let plus = |acc: f32, _: usize, x: Option<f32>| x.map_or(acc, |x| acc + x);
        let magnitudes = |acc: f32, _: usize, x: Option<f32>| x.map_or(acc, |x| acc + x.abs());
        let squares = |acc: f32, _: usize, x: Option<f32>| x.map_or(acc, |x| acc + x * x);
        let one = |n: f32, _: usize, x: Option<f32>| n + f32::from(x.is_some());
        // Taps before the end of a padding of 1 below and 2 to the right.
        let n_taps = |out: usize, axis: usize, n: usize| {
            let reach = |tap: usize| out * geometry.stride[axis] + tap * geometry.dilation[axis];
            (0..geometry.kernel[axis]).filter(|&tap| reach(tap) < n + geometry.pad[axis] + 1 + axis).count() as f32
        };
        let relu = |x: f32| if x <= 0.0 { 0.0 } else { x };
        let n = out_h * out_w;
        let depthwise = |bias, residual, relu| Window::Depthwise { filter: (&filter).into(), bias, residual, relu };
        let average = |counted_pad_end| Window::Average { counted_pad_end };
        let cases: [(Window<'_>, Vec<f32>); 7] = [
            (average(None), (0..n).map(|i| fold(i, 0.0, &plus) / fold(i, 0.0, &one)).collect()),
            (
                average(Some([1, 2])),
                (0..n).map(|i| fold(i, 0.0, &plus) / (n_taps(i / out_w, 0, h) * n_taps(i % out_w, 1, w))).collect(),
            ),
            (Window::L1, (0..n).map(|i| fold(i, 0.0, &magnitudes)).collect()),
            (Window::L2, (0..n).map(|i| fold(i, 0.0, &squares).sqrt()).collect()),
            (Window::Max, (0..n).map(|i| fold(i, f32::NEG_INFINITY, &max)).collect()),
            (depthwise(None, None, false), (0..n).map(|i| fold(i, 0.0, &sum)).collect()),
            (
                depthwise(Some(0.3), Some((&residual).into()), true),
                (0..n).map(|i| relu((fold(i, 0.0, &sum) + 0.3) + residual[i])).collect(),
            ),
        ];
        for isa in IsaKind::ALL.into_iter().filter_map(Isa::of) {
            for (window, want) in &cases {
                for cut in [1, 3, out_h] {
                    for row in (0..out_h).step_by(cut) {
                        let rows = row..out_h.min(row + cut);
                        let mut got = vec![5.0; rows.len() * out_w];
                        assert!(isa.window_rows(&plan, window, input, rows, &mut got, &mut scratch));
                        for (i, (got, want)) in got.iter().zip(&want[row * out_w..]).enumerate() {
                            let same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
                            assert!(
                                same,
                                "{window:?} on {isa:?}, {geometry:?}, {}: {got} is not {want}",
                                row * out_w + i
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let x = noise(100, 1);
    let geometry = Geometry { kernel: [3; 2], stride: [1; 2], dilation: [1; 2], pad: [0; 2], out: [8, 8] };
    let (input, plan) = (Src::from(&x), WindowPlan::new([10, 10], geometry).unwrap());
    let isa = Isa::detect();
    let (mut out, mut scratch) = (vec![0.0; 64], vec![0.0; WINDOW_SCRATCH_ELEMS]);
    let mut takes = |window: &Window<'_>, input: Src<'_>, rows, n: usize, n_scratch: usize| {
        isa.window_rows(&plan, window, input, rows, &mut out[..n], &mut scratch[..n_scratch])
    };
    let all = WINDOW_SCRATCH_ELEMS;
    assert!(takes(&Window::Max, input, 0..8, 64, all));
    assert!(!takes(&Window::Max, input, 1..9, 64, all), "beyond the output");
    assert!(!takes(&Window::Max, input, 0..8, 63, all), "output too short");
    let depthwise = Window::Depthwise { filter: input.slice(0, 8), bias: None, residual: None, relu: false };
    assert!(!takes(&depthwise, input, 0..8, 64, all), "filter too short");
    assert!(!takes(&Window::Max, input.slice(0, 50), 0..8, 64, all), "half a plane");
    assert!(!takes(&Window::Max, input, 0..8, 64, all - 1), "scratch too short");
    let refused = |geometry| WindowPlan::new([10, 10], geometry).is_none();
    assert!(refused(Geometry { kernel: [1, 17], out: [10, 1], ..geometry }), "too many taps");
    assert!(refused(Geometry { dilation: [1 << 20, 1], ..geometry }), "taps too far apart");
    assert!(refused(Geometry { stride: [0, 1], ..geometry }), "no step");
}
