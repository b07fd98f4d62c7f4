//! Pooling and normalisation at each opset.

use super::opsets::one;
use super::*;

const FIVE: [&str; 5] = ["x", "v", "v", "v", "v"];

#[test]
fn average_pools() {
    let kernel = |n: &mut Writer| attr_ints(n, "kernel_shape", &[2]);
    assert!(one(1, "AveragePool", &["x"], kernel).contains("ceil_mode=false, count_include_pad=false, dilations=[]"));
    assert!(one(7, "AveragePool", &["x"], |_| ()).contains("`kernel_shape` is missing"));
    for (name, since) in [("count_include_pad", 7), ("ceil_mode", 10)] {
        let with = |opset| match name {
            "ceil_mode" => one(opset, "AveragePool", &["x"], |n| {
                attr_ints(n, "kernel_shape", &[2]);
                attr_int(n, "ceil_mode", 1);
            }),
            _ => one(opset, "AveragePool", &["x"], |n| {
                attr_ints(n, "kernel_shape", &[2]);
                attr_int(n, "count_include_pad", 1);
            }),
        };
        assert!(with(since).contains(&format!("{name}=true")), "{}", with(since));
        assert!(with(since - 1).contains("not one that the op has"), "{}", with(since - 1));
    }
    let dilated = |n: &mut Writer| {
        attr_ints(n, "kernel_shape", &[2]);
        attr_ints(n, "dilations", &[3]);
    };
    assert!(one(19, "AveragePool", &["x"], dilated).contains("dilations=[3]"));
    assert!(one(18, "AveragePool", &["x"], dilated).contains("not one that the op has"));
}

#[test]
fn batch_normalization_is_for_inference() {
    let plain = one(15, "BatchNormalization", &FIVE, |_| ());
    assert_eq!(plain, "%2 = BatchNormalization(%0, %1, %1, %1, %1) {epsilon=1e-5, spatial=true}");
    assert_eq!(one(9, "BatchNormalization", &FIVE, |_| ()), plain);
    let test = |n: &mut Writer| {
        attr_int(n, "is_test", 1);
        attr_int(n, "spatial", 0);
    };
    assert!(one(6, "BatchNormalization", &FIVE, test).contains("spatial=false"));
    assert!(one(7, "BatchNormalization", &FIVE, test).contains("`is_test` (INT) is not one that the op has"));
    assert!(one(7, "BatchNormalization", &FIVE, |n| attr_int(n, "spatial", 0)).contains("spatial=false"));
    assert!(one(9, "BatchNormalization", &FIVE, |n| attr_int(n, "spatial", 0)).contains("not one that the op has"));
    assert!(one(6, "BatchNormalization", &FIVE, |_| ()).contains("is_test 0 trains"));
    assert!(
        one(14, "BatchNormalization", &FIVE, |n| attr_int(n, "training_mode", 1)).contains("training_mode 1 trains")
    );
    let old = one(1, "BatchNormalization", &FIVE, |n| {
        attr_ints(n, "consumed_inputs", &[0, 0, 0, 1, 1]);
        attr_int(n, "is_test", 1);
        n.message(5, |a| _ = a.text(1, "momentum").i64(20, 1).f32(2, 0.5));
        n.message(5, |a| _ = a.text(1, "epsilon").i64(20, 1).f32(2, 0.25));
    });
    assert!(old.contains("epsilon=0.25"), "{old}");
    let g = G::default().input("x", 1, &[2, 3]).input("v", 1, &[3]);
    let two = error(g.node("BatchNormalization", &FIVE, &["y", "mean"]).output("y").model(15));
    assert!(two.contains("it has 2 outputs"), "{two}");
}

#[test]
fn instance_normalization_lost_an_attribute() {
    let plain = one(22, "InstanceNormalization", &["x", "v", "v"], |_| ());
    assert_eq!(plain, "%2 = InstanceNormalization(%0, %1, %1) {epsilon=1e-5}");
    assert_eq!(one(6, "InstanceNormalization", &["x", "v", "v"], |_| ()), plain);
    let old = |n: &mut Writer| {
        attr_ints(n, "consumed_inputs", &[0, 0, 0]);
        n.message(5, |a| _ = a.text(1, "epsilon").i64(20, 1).f32(2, 0.25));
    };
    assert!(one(5, "InstanceNormalization", &["x", "v", "v"], old).contains("epsilon=0.25"));
    assert!(one(6, "InstanceNormalization", &["x", "v", "v"], old).contains("not one that the op has"));
}

#[test]
fn group_normalization_takes_a_stash_type_from_21_on() {
    let groups = |n: &mut Writer| attr_int(n, "num_groups", 3);
    let plain = one(18, "GroupNormalization", &["x", "v", "v"], groups);
    assert_eq!(plain, "%2 = GroupNormalization(%0, %1, %1) {epsilon=1e-5, num_groups=3}");
    assert_eq!(one(21, "GroupNormalization", &["x", "v", "v"], groups), plain);
    assert!(one(21, "GroupNormalization", &["x", "v", "v"], |_| ()).contains("`num_groups` is missing"));
    let stashed = |n: &mut Writer| {
        attr_int(n, "num_groups", 3);
        attr_int(n, "stash_type", 1);
    };
    assert_eq!(one(21, "GroupNormalization", &["x", "v", "v"], stashed), plain);
    assert!(one(20, "GroupNormalization", &["x", "v", "v"], stashed).contains("not one that the op has"));
    let halves = |n: &mut Writer| {
        attr_int(n, "num_groups", 3);
        attr_int(n, "stash_type", 10);
    };
    assert!(one(21, "GroupNormalization", &["x", "v", "v"], halves).contains("stash_type 10 is not supported"));
}

#[test]
fn local_response_normalization_needs_a_size() {
    let now = one(13, "LRN", &["x"], |n| attr_int(n, "size", 5));
    assert_eq!(now, "%2 = LRN(%0) {alpha=0.0001, beta=0.75, bias=1.0, size=5}");
    assert_eq!(one(1, "LRN", &["x"], |n| attr_int(n, "size", 5)), now);
    assert!(one(13, "LRN", &["x"], |_| ()).contains("`size` is missing"));
}

#[test]
fn lp_pools() {
    let kernel = |n: &mut Writer| attr_ints(n, "kernel_shape", &[2]);
    let plain = one(22, "LpPool", &["x"], kernel);
    assert!(plain.contains("ceil_mode=false, dilations=[], kernel_shape=[2], p=2"), "{plain}");
    assert_eq!(one(2, "LpPool", &["x"], kernel), plain);
    assert!(one(1, "LpPool", &["x"], |_| ()).contains("`kernel_shape` is missing"));
    let float = |n: &mut Writer| {
        attr_ints(n, "kernel_shape", &[2]);
        n.message(5, |a| _ = a.text(1, "p").i64(20, 1).f32(2, 3.0));
    };
    assert!(one(1, "LpPool", &["x"], float).contains("p=3"));
    assert!(one(2, "LpPool", &["x"], float).contains("`p` should be INT"));
    let dilated = |n: &mut Writer| {
        attr_ints(n, "kernel_shape", &[2]);
        attr_ints(n, "dilations", &[3]);
        attr_int(n, "ceil_mode", 1);
    };
    assert!(one(18, "LpPool", &["x"], dilated).contains("ceil_mode=true, dilations=[3]"));
    assert!(one(17, "LpPool", &["x"], dilated).contains("not one that the op has"));
}
