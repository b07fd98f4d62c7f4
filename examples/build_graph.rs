//! A model built in code: the edges of a picture, by the graph API and without an ONNX file.
//!
//! ```text
//! cargo run --release -p firstlight-examples --bin build_graph
//! cargo run --release -p firstlight-examples --bin build_graph -- photo.png
//! ```
//!
//! Two 3x3 filters find how brightness changes along x and y; the length of both changes is how strong an edge is.

use clap::Parser;
use firstlight::core::{
    BackendId, Budget, CPU_BINDINGS, CpuDevice, ExecutorConfig, Graph, KernelBindingTable, PipelinedExecutor, Pool,
    Realized, Spec, StorageCache, ValueId, ops, reference_kernel,
};
use firstlight::{DType, Dim, Tensor};
use image::imageops::{self, FilterType};
use ndarray::{Array2, Array4, Axis, Ix4, s};
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// Draws the edges of an image, or of a square, in the terminal.
#[derive(Debug, Parser)]
struct Args {
    /// An image, PNG or JPEG; a bright square on black when none is given.
    image: Option<PathBuf>,
    /// Columns to draw.
    #[arg(long, default_value_t = 64)]
    width: u32,
    /// Prints the graph before it runs.
    #[arg(long)]
    graph: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let picture = match &args.image {
        Some(path) => {
            let image = image::open(path).map_err(|e| format!("{}: {e}", path.display()))?.into_luma8();
            // A character is about twice as high as wide.
            let height =
                (u64::from(args.width) * u64::from(image.height()) / (2 * u64::from(image.width().max(1)))).max(1);
            let image = imageops::resize(&image, args.width.max(1), height as u32, FilterType::Triangle);
            Array2::from_shape_fn((image.height() as usize, image.width() as usize), |(y, x)| {
                f32::from(image.get_pixel(x as u32, y as u32)[0]) / 255.0
            })
        }
        None => Array2::from_shape_fn((8, 16), |(y, x)| f32::from((2..6).contains(&y) && (4..12).contains(&x))),
    };
    let (graph, image, edges) = edge_graph()?;
    if args.graph {
        println!("{graph}");
    }
    let strength = realize(&Arc::new(graph), image, edges, &picture)?;
    let most = strength.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    for row in strength.rows() {
        let shade = |&value: &f32| b" .:-=+*#%@"[(value / most * 9.0).round() as usize] as char;
        println!("{}", row.iter().map(shade).collect::<String>().trim_end());
    }
    Ok(())
}

/// The graph, its input and its output: `edges = sqrt(gx * gx + gy * gy)`, where `gx, gy = conv(image)`.
fn edge_graph() -> Result<(Graph, ValueId, ValueId), Box<dyn Error>> {
    const FILTERS: [f32; 18] = [
        -1., 0., 1., -2., 0., 2., -1., 0., 1., // along x
        -1., -2., -1., 0., 0., 0., 1., 2., 1., // along y
    ];
    let mut graph = Graph::new("edges");
    let dims = [Dim::Known(1), Dim::Known(1), Dim::Named("H".into()), Dim::Named("W".into())];
    let image = graph.input("image", Spec { dtype: DType::F32, dims: Some(dims.into_iter().collect()) }, None);
    let filters = graph.constant("filters", Tensor::from_slice([2, 1, 3, 3], &FILTERS)?);
    let ones = graph.constant("ones", Tensor::from_slice([1, 2, 1, 1], &[1f32, 1.])?);
    let conv = ops::Conv { pads: vec![1, 1, 1, 1], ..ops::Conv::default() };
    let changes = graph.op(conv.into(), &[image, filters])?;
    let squares = graph.op(ops::Mul.into(), &[changes, changes])?;
    let sum = graph.op(ops::Conv::default().into(), &[squares, ones])?;
    let edges = graph.op(ops::Sqrt.into(), &[sum])?;
    graph.output("edges", edges)?;
    Ok((graph, image, edges))
}

/// Feeds a picture and computes how strong its edges are, without the frame that the picture's own borders draw.
fn realize(
    graph: &Arc<Graph>,
    image: ValueId,
    edges: ValueId,
    picture: &Array2<f32>,
) -> Result<Array2<f32>, Box<dyn Error>> {
    let executor = PipelinedExecutor::new(ExecutorConfig {
        pool: Arc::new(Pool::new(1)?),
        table: Arc::new(KernelBindingTable::finalize(CPU_BINDINGS, &[(BackendId::CPU, reference_kernel)])?),
        device: Arc::new(CpuDevice),
        budget: Budget::new(None),
    });
    let batch: Array4<f32> = picture.clone().insert_axis(Axis(0)).insert_axis(Axis(0));
    let mut inputs = StorageCache::new();
    inputs.insert(image, Realized::from_tensor(&Tensor::from_array(&batch)?));
    let realized = executor.realize(graph, &[edges], &inputs)?;
    let tensor = realized.get(edges).ok_or("the executor gave no edges")?.to_tensor()?;
    let mut strength = tensor.array::<f32>()?.into_dimensionality::<Ix4>()?.slice(s![0, 0, .., ..]).to_owned();
    let (height, width) = strength.dim();
    for ((y, x), value) in strength.indexed_iter_mut() {
        if y == 0 || x == 0 || y + 1 == height || x + 1 == width {
            *value = 0.0;
        }
    }
    Ok(strength)
}
