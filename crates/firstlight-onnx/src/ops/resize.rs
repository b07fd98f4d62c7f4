//! Resize and its forerunner Upsample.

use crate::error::LoadError;
use crate::node_ctx::{NodeCtx, Values};
use firstlight_graph::ops::nn::resampling::{Coordinates, Filter, NearestMode};
use firstlight_graph::ops::nn::resize::AspectRatioPolicy;
use firstlight_graph::{ValueId, ops};
use firstlight_tensor::DType;

/// Up to opset 10 scales came second and there was one way to place elements.
pub(super) fn resize(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    if ctx.opset < 11 {
        let (op, x, scales) = (early(ctx)?, ctx.needed(0)?, ctx.needed(1)?);
        return ctx.emit_with(op, &[Some(x), None, Some(scales)]);
    }
    let has_more = ctx.opset >= 18;
    let coordinates = ctx.text("coordinate_transformation_mode")?.unwrap_or("half_pixel");
    let coordinates = match Coordinates::from_name(coordinates) {
        Some(Coordinates::HalfPixelSymmetric) if ctx.opset < 19 => None,
        Some(Coordinates::TfHalfPixelForNn) if ctx.opset >= 13 => None,
        known => known,
    }
    .ok_or_else(|| {
        ctx.error(format!("coordinate_transformation_mode {coordinates:?} is unknown at opset {}", ctx.opset))
    })?;
    let nearest_mode = ctx.text("nearest_mode")?.unwrap_or("round_prefer_floor");
    let nearest_mode = NearestMode::from_name(nearest_mode)
        .ok_or_else(|| ctx.error(format!("nearest_mode {nearest_mode:?} is unknown")))?;
    let cubic = ctx.float("cubic_coeff_a")?.unwrap_or(-0.75);
    let filter = match ctx.text("mode")? {
        None | Some("nearest") => Filter::Nearest(nearest_mode),
        Some("linear") => Filter::Linear,
        Some("cubic") => Filter::Cubic(cubic.into()),
        Some(other) => return Err(ctx.error(format!("mode {other:?} is unknown"))),
    };
    let policy = if has_more { ctx.text("keep_aspect_ratio_policy")? } else { None }.unwrap_or("stretch");
    let policy = AspectRatioPolicy::from_name(policy)
        .ok_or_else(|| ctx.error(format!("keep_aspect_ratio_policy {policy:?} is unknown")))?;
    let op = ops::Resize {
        antialias: has_more && ctx.flag("antialias", false)?,
        axes: if has_more { ctx.ints("axes")?.unwrap_or(&[]).to_vec() } else { Vec::new() },
        coordinates,
        exclude_outside: ctx.flag("exclude_outside", false)?,
        extrapolation_value: ctx.float("extrapolation_value")?.unwrap_or(0.0),
        filter,
        policy,
    };
    let (x, scales, sizes) = (ctx.needed(0)?, ctx.input(2), ctx.input(3));
    let roi = region(ctx, coordinates)?;
    ctx.emit_with(op, &[Some(x), roi, scales, sizes])
}

/// The region, in f64, where the mode knows one.
fn region(ctx: &mut NodeCtx<'_, '_>, coordinates: Coordinates) -> Result<Option<ValueId>, LoadError> {
    match ctx.input(1) {
        Some(roi) if coordinates == Coordinates::TfCropAndResize => match ctx.dtype(roi) {
            Some(DType::F64) => Ok(Some(roi)),
            _ => ctx.step(ops::Cast { to: DType::F64 }, &[roi]).map(Some),
        },
        _ => Ok(None),
    }
}

/// Scales were an attribute of each axis up to opset 6, of all up to opset 8.
pub(super) fn upsample(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let op = early(ctx)?;
    let x = ctx.needed(0)?;
    let scales = match ctx.opset {
        ..7 => {
            let (high, wide) = (ctx.float("height_scale")?, ctx.float("width_scale")?);
            let (high, wide) = (ctx.required("height_scale", high)?, ctx.required("width_scale", wide)?);
            ctx.list("scales", &[1.0, 1.0, high, wide])?
        }
        7..9 => {
            let scales = ctx.floats("scales")?;
            let scales = ctx.required("scales", scales)?;
            ctx.list("scales", scales)?
        }
        9.. => ctx.needed(1)?,
    };
    ctx.emit_with(op, &[Some(x), None, Some(scales)])
}

fn early(ctx: &mut NodeCtx<'_, '_>) -> Result<ops::Resize, LoadError> {
    let filter = match ctx.text("mode")? {
        None | Some("nearest") => Filter::Nearest(NearestMode::Floor),
        Some("linear" | "bilinear") => Filter::Linear,
        Some(other) => return Err(ctx.error(format!("mode {other:?} is unknown"))),
    };
    Ok(ops::Resize { coordinates: Coordinates::Asymmetric, filter, ..ops::Resize::default() })
}
