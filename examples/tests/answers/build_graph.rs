//! The edges of a square and of a step, as Sobel's filters have them.

use super::{answer, complaint, file, ocr_detect};
use image::{Rgb, RgbImage};

const BUILD_GRAPH: &str = env!("CARGO_BIN_EXE_build_graph");

#[test]
fn a_square_has_the_edges_that_sobels_filters_give() {
    // Of the most, 3 sqrt(2) at the corners inside: edges have 4, corners outside sqrt(2), beside them sqrt(10).
    let expected =
        ["", "   -#%%%%%%#-", "   #@%%%%%%@#", "   %%      %%", "   %%      %%", "   #@%%%%%%@#", "   -#%%%%%%#-", ""];
    assert_eq!(answer(BUILD_GRAPH, &[]).lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_step_has_one_edge_and_the_graph_can_be_printed() {
    let picture = RgbImage::from_fn(32, 16, |x, _| Rgb([if x < 16 { 0 } else { 255 }; 3]));
    let picture = file("step.png", &ocr_detect::png(&picture));
    let said = answer(BUILD_GRAPH, &[&picture, "--width", "32"]);
    let edge = format!("{}@@", " ".repeat(15));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 8);
    assert!(lines[1..7].iter().all(|line| *line == edge) && lines[0].is_empty() && lines[7].is_empty(), "{said}");
    let with_graph = answer(BUILD_GRAPH, &[&picture, "--width", "32", "--graph"]);
    assert!(with_graph.contains("Conv") && with_graph.contains("Sqrt") && with_graph.ends_with(&said), "{with_graph}");
    assert!(complaint(BUILD_GRAPH, &["no/such.png"]).contains("no/such.png"));
}
