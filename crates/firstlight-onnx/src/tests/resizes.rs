//! Resize and Upsample.

use super::opsets::one;
use super::{attr_ints, attr_text};

#[test]
fn early_forms() {
    let early = "coordinate_transformation_mode=\"asymmetric\", exclude_outside=false, extrapolation_value=0.0, \
                 keep_aspect_ratio_policy=\"stretch\", mode=\"nearest\", nearest_mode=\"floor\"";
    let resize = one(10, "Resize", &["x", "w"], |_| ());
    assert!(resize.contains("%3 = Resize(%0, _, %2)") && resize.contains(early), "{resize}");
    assert!(
        one(10, "Resize", &["x", "w"], |n| attr_text(n, "nearest_mode", "ceil")).contains("not one that the op has")
    );
    let upsample = one(9, "Upsample", &["x", "w"], |n| attr_text(n, "mode", "linear"));
    assert!(upsample.contains("%3 = Resize(%0, _, %2)") && upsample.contains("mode=\"linear\""), "{upsample}");
    let listed = one(7, "Upsample", &["x"], |n| {
        n.message(5, |a| _ = a.text(1, "scales").i64(20, 6).f32(7, 1.0).f32(7, 2.0));
    });
    assert!(listed.starts_with("%2 = Const() {tensor=f32[2]}; %3 = Resize(%0, _, %2)"), "{listed}");
    assert!(one(8, "Upsample", &["x"], |_| ()).contains("`scales` is missing"));
    let two = one(1, "Upsample", &["x"], |n| {
        n.message(5, |a| _ = a.text(1, "height_scale").i64(20, 1).f32(2, 2.0));
        n.message(5, |a| _ = a.text(1, "width_scale").i64(20, 1).f32(2, 3.0));
    });
    assert!(two.starts_with("%2 = Const() {tensor=f32[4]}; %3 = Resize(%0, _, %2)"), "{two}");
    assert!(one(1, "Upsample", &["x"], |_| ()).contains("`height_scale` is missing"));
}

#[test]
fn what_came_when() {
    let mode = |opset, mode: &'static str| match mode {
        "half_pixel_symmetric" => one(opset, "Resize", &["x", "", "w"], |n| {
            attr_text(n, "coordinate_transformation_mode", "half_pixel_symmetric");
        }),
        _ => one(opset, "Resize", &["x", "", "w"], |n| {
            attr_text(n, "coordinate_transformation_mode", "tf_half_pixel_for_nn");
        }),
    };
    assert!(mode(19, "half_pixel_symmetric").contains("mode=\"half_pixel_symmetric\""));
    assert!(mode(18, "half_pixel_symmetric").contains("\"half_pixel_symmetric\" is unknown at opset 18"));
    assert!(mode(11, "tf_half_pixel_for_nn").contains("mode=\"tf_half_pixel_for_nn\""));
    assert!(mode(13, "tf_half_pixel_for_nn").contains("\"tf_half_pixel_for_nn\" is unknown at opset 13"));
    let axes = |opset| one(opset, "Resize", &["x", "", "w"], |n| attr_ints(n, "axes", &[1]));
    assert!(axes(18).contains("axes=[1]"));
    assert!(axes(13).contains("not one that the op has"));
    for (name, text) in [("mode", "area"), ("nearest_mode", "up"), ("keep_aspect_ratio_policy", "wide")] {
        let wrong = match name {
            "mode" => one(18, "Resize", &["x", "", "w"], |n| attr_text(n, "mode", "area")),
            "nearest_mode" => one(18, "Resize", &["x", "", "w"], |n| attr_text(n, "nearest_mode", "up")),
            _ => one(18, "Resize", &["x", "", "w"], |n| attr_text(n, "keep_aspect_ratio_policy", "wide")),
        };
        assert!(wrong.contains(&format!("{name} {text:?} is unknown")), "{wrong}");
    }
}

#[test]
fn a_region_is_read_where_the_mode_knows_one() {
    let kept =
        one(13, "Resize", &["x", "w", "w"], |n| attr_text(n, "coordinate_transformation_mode", "tf_crop_and_resize"));
    assert!(kept.contains("Cast(%2) {to=f64}") && kept.contains("= Resize(%0, %3, %2)"), "{kept}");
    assert!(one(13, "Resize", &["x", "w", "w"], |_| ()).contains("%3 = Resize(%0, _, %2)"));
}
