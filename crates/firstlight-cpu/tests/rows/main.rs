//! Every row of the table against its op's reference: named cases in the row's types and random operands, on 1 and 4
//! threads, with aligned and unaligned inputs, which may not change a bit; and no launch allocates.

mod compare;
mod launch;
mod moves;
mod networks;
mod random;
mod resizes;
mod samples;
mod windows;

use compare::{differences, other_bits};
use firstlight_backend::{KernelBinding, KernelBindingTable, Pool, reference_kernel};
use firstlight_cpu::BINDINGS;
use firstlight_graph::{OpKind, ValueInfo, bind_types, infer_known, run_reference};
use firstlight_tensor::{SymShape, Tensor};
use launch::{Placement, allocations, launch};
use random::Random;
use samples::{Sample, samples};

/// Ops that round, whose references round in the order of their rows.
const BIT_FOR_BIT: &[OpKind] = &[
    OpKind::AveragePool,
    OpKind::BatchNormalization,
    OpKind::GlobalAveragePool,
    OpKind::GlobalLpPool,
    OpKind::GroupNormalization,
    OpKind::InstanceNormalization,
    OpKind::LRN,
    OpKind::LayerNormalization,
    OpKind::LpPool,
    OpKind::RMSNormalization,
];

#[test]
fn the_rows_make_a_table() {
    let references = [(firstlight_backend::BackendId::CPU, reference_kernel as firstlight_backend::KernelFn)];
    let table = KernelBindingTable::finalize(BINDINGS, &references).unwrap();
    assert!(table.all().len() > 100);
}

#[test]
fn rows_agree_with_their_references() {
    let pools = [Pool::new(1).unwrap(), Pool::new(4).unwrap()];
    // ROWS_OF=Softmax tries the rows of one op.
    let only = std::env::var("ROWS_OF").ok();
    let mut failures = vec![];
    for row in BINDINGS.iter().flat_map(|rows| rows.iter()) {
        if only.as_ref().is_some_and(|only| only != row.op.name()) {
            continue;
        }
        let mut random = Random::new(row.op as u64);
        let mut n_run = 0;
        for sample in samples(row, &mut random) {
            match check(row, &sample, &pools) {
                Ok(ran) => n_run += usize::from(ran),
                Err(what) => failures.push(format!("{row:?}, {}: {what}", sample.name)),
            }
            if failures.len() > 20 {
                panic!("{}", failures.join("\n"));
            }
        }
        if n_run == 0 {
            failures.push(format!("{row:?} was never run"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Runs a sample; false when the row does not take it.
fn check(row: &KernelBinding, sample: &Sample, pools: &[Pool]) -> Result<bool, String> {
    let known = |tensor: &Tensor| ValueInfo {
        dtype: tensor.dtype(),
        dims: SymShape::from(tensor.shape()),
        value: Some(tensor.clone()),
    };
    let infos: Vec<_> = sample.inputs.iter().map(|input| input.as_ref().map(known)).collect();
    let Ok(outputs) = infer_known(&sample.op, &infos, sample.n_outputs) else { return Ok(false) };
    let inputs: Vec<_> = sample.inputs.iter().map(|input| input.as_ref().map(Tensor::dtype)).collect();
    let output_types: Vec<_> = outputs.iter().map(|output| output.dtype).collect();
    match bind_types(sample.op.info(), &inputs, &output_types) {
        Ok(types) if types[..] == *row.types => {}
        _ => return Ok(false),
    }
    let views: Vec<_> = sample.inputs.iter().map(|input| input.as_ref().map(Tensor::view)).collect();
    let expected = run_reference(&sample.op, &views, &outputs);
    // Small operands are one chunk, whatever the pool.
    let sizes = sample.inputs.iter().flatten().map(Tensor::n_elems);
    let out_sizes = outputs.iter().filter_map(|output| output.dims.known()?.n_elems());
    let is_large = sizes.chain(out_sizes).any(|n_elems| n_elems > 10_000);
    let mut first: Option<Vec<Tensor>> = None;
    for pool in &pools[..if is_large { pools.len() } else { 1 }] {
        for placement in [Placement::Aligned, Placement::Unaligned] {
            if placement == Placement::Unaligned && !row.caps.unaligned {
                continue;
            }
            let before = || format!("{placement:?}, {} threads", pool.threads());
            let ran = launch(row, &sample.op, &sample.inputs, &outputs, pool, placement);
            let Some(ran) = ran else { return Ok(false) };
            match (&expected, ran) {
                (Ok(expected), Ok(got)) => {
                    let same = |what: Result<(), String>| what.map_err(|what| format!("{}: {what}", before()));
                    same(differences(sample, expected, &got.outputs))?;
                    same(other_bits(first.get_or_insert_with(|| got.outputs.clone()), &got.outputs))?;
                    if BIT_FOR_BIT.contains(&row.op) {
                        same(other_bits(expected, &got.outputs))?;
                    }
                    if pool.threads() == 1 && got.n_allocations > 0 {
                        return Err(format!("{}: {} allocations", before(), got.n_allocations));
                    }
                }
                (Err(_), Err(_)) => {}
                (Ok(_), Err(error)) => return Err(format!("{}: {error}", before())),
                (Err(error), Ok(_)) => return Err(format!("the reference says {error}, the row nothing")),
            }
        }
    }
    Ok(true)
}

#[test]
fn competing_rows_give_the_same_bits() {
    let pool = Pool::new(1).unwrap();
    let all: Vec<&KernelBinding> = BINDINGS.iter().flat_map(|rows| rows.iter()).collect();
    let only = std::env::var("ROWS_OF").ok();
    let mut n_compared = 0;
    for (i, row) in all.iter().enumerate() {
        let competes = |other: &&&KernelBinding| (other.op, other.types) == (row.op, row.types);
        let others: Vec<_> = all[i + 1..].iter().filter(competes).collect();
        if others.is_empty() || only.as_ref().is_some_and(|only| only != row.op.name()) {
            continue;
        }
        for sample in samples(row, &mut Random::new(row.op as u64)) {
            let Some(bits) = outputs_of(row, &sample, &pool) else { continue };
            for other in &others {
                let Some(theirs) = outputs_of(other, &sample, &pool) else { continue };
                other_bits(&bits, &theirs)
                    .unwrap_or_else(|what| panic!("{row:?} and {other:?}, {}: {what}", sample.name));
                n_compared += 1;
            }
        }
    }
    assert!(n_compared > 10 || only.is_some(), "{n_compared} pairs were compared");
}

/// What a row makes of a sample; `None` when it does not take it.
fn outputs_of(row: &KernelBinding, sample: &Sample, pool: &Pool) -> Option<Vec<Tensor>> {
    let known = |tensor: &Tensor| ValueInfo {
        dtype: tensor.dtype(),
        dims: SymShape::from(tensor.shape()),
        value: Some(tensor.clone()),
    };
    let infos: Vec<_> = sample.inputs.iter().map(|input| input.as_ref().map(known)).collect();
    let outputs = infer_known(&sample.op, &infos, sample.n_outputs).ok()?;
    let ran = launch(row, &sample.op, &sample.inputs, &outputs, pool, Placement::Aligned)?;
    Some(ran.ok()?.outputs)
}

#[test]
fn the_counter_counts() {
    let (kept, n) = allocations(|| vec![1u8]);
    assert_eq!((kept.len(), n), (1, 1));
    assert_eq!(allocations(|| 1).1, 0);
}
