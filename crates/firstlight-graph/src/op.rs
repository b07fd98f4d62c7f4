//! How an op is declared: [`OpInfo`] (what is fixed) and [`OpDef`] (what its attributes do).

use crate::ops::Op;
use crate::{InferCtx, OpError, OpErrorKind, OutInfo, ValueId};
use firstlight_tensor::{DType, Tensor, TensorView, TensorViewMut};
use smallvec::SmallVec;
use std::fmt;

/// What an op's attribute struct does. One file declares one op: the struct (doc comments of its fields are the user's
/// docs), its `INFO`, and this trait.
pub trait OpDef: fmt::Debug {
    /// Attributes in the order of the text form.
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        vec![]
    }

    /// Element types and shapes of the outputs, from those of the inputs and from small integer values.
    ///
    /// **Errors**: inputs that do not fit; `NeedsValue` when an input's value is needed and not known.
    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError>;

    /// The plain implementation that defines correctness: reads views, fills the given outputs.
    ///
    /// **Errors**: inputs that do not fit. Control flow, inputs and constants have no reference.
    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError>;

    /// True when the first output is the first input's bytes under another shape, so that no kernel need run.
    fn is_view(&self) -> bool {
        false
    }

    /// Arithmetic operations that the node takes, given the specs of a node whose shapes are known; for cost models.
    fn n_operations(&self, inputs: &[&[usize]], outputs: &[&[usize]]) -> u64 {
        let _ = inputs;
        let count = |dims: &&[usize]| dims.iter().fold(1u64, |product, &dim| product.saturating_mul(dim as u64));
        outputs.iter().map(count).fold(0, u64::saturating_add)
    }
}

/// What is fixed for an op, whatever its attributes.
#[derive(Debug)]
pub struct OpInfo {
    /// The op's name; ONNX's where ONNX has it.
    pub name: &'static str,
    /// One sentence, then edge cases.
    pub doc: &'static str,
    /// The attributes that the text form prints, with what they mean.
    pub attributes: &'static [AttrDoc],
    /// The inputs in order.
    pub inputs: &'static [Param],
    /// The outputs in order.
    pub outputs: &'static [Param],
    /// The op's type variables: the kernel table's key holds one dtype for each.
    pub types: &'static [TypeVar],
    /// How far kernels may be from the reference.
    pub exactness: Exactness,
    /// Named cases with worked answers.
    pub cases: fn() -> Vec<Case>,
}

/// Documentation of one attribute.
#[derive(Debug)]
pub struct AttrDoc {
    /// Name as the text form prints it.
    pub name: &'static str,
    /// What it does and what it is where the file says nothing.
    pub doc: &'static str,
}

/// One declared input or output.
#[derive(Debug)]
pub struct Param {
    /// Name by which documentation and errors call it.
    pub name: &'static str,
    /// Which element types it takes.
    pub ty: TypeRef,
    /// How often it occurs.
    pub arity: Arity,
}

/// How often a declared input or output occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// Exactly once.
    One,
    /// May be omitted.
    Optional,
    /// The last one, any number of times from the given one on.
    Variadic(usize),
}

/// The element type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeRef {
    /// The type variable of that index.
    Var(u8),
    /// Always this type.
    Fixed(DType),
    /// Any type, each occurrence its own (carried values of control flow).
    Any,
}

/// A type variable and the element types it may stand for.
#[derive(Debug)]
pub struct TypeVar {
    /// Name in the documentation, such as `T`.
    pub name: &'static str,
    /// The element types, of which a node has one.
    pub allowed: &'static [DType],
}

/// The element types bound to an op's type variables, in their order.
pub type Types = SmallVec<[DType; 2]>;

/// How results may differ from the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exactness {
    /// Not at all.
    Exact,
    /// By rounding, within the tolerance of the element type.
    Rounding,
    /// Draws of a generator.
    Random,
}

/// An attribute as the text form prints it.
#[derive(Clone, Debug, PartialEq)]
pub enum AttrValue {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f32),
    /// A list of whole numbers.
    Ints(Vec<i64>),
    /// A word or any other text.
    Text(String),
    /// An element type, printed by its name.
    DType(DType),
    /// A value that the op carries, printed by its spec.
    Tensor(Tensor),
    /// A subgraph, printed as an indented block by the text form.
    Graph,
}

/// A named case of an op with the right answer.
#[derive(Clone, Debug)]
pub struct Case {
    /// Name, unique among the op's cases.
    pub name: &'static str,
    /// The op with the attributes of the case.
    pub op: Op,
    /// The inputs; `None`: omitted.
    pub inputs: Vec<Option<Tensor>>,
    /// The right outputs.
    pub outputs: Vec<Tensor>,
}

/// What a reference implementation reads and fills.
#[derive(Debug)]
pub struct RefCtx<'a> {
    inputs: SmallVec<[Option<TensorView<'a>>; 4]>,
    outputs: SmallVec<[TensorViewMut<'a>; 2]>,
}

impl<'a> RefCtx<'a> {
    /// A context over given views.
    pub fn new(inputs: SmallVec<[Option<TensorView<'a>>; 4]>, outputs: SmallVec<[TensorViewMut<'a>; 2]>) -> RefCtx<'a> {
        RefCtx { inputs, outputs }
    }

    /// Number of inputs, omitted ones included.
    pub fn n_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// Number of outputs.
    pub fn n_outputs(&self) -> usize {
        self.outputs.len()
    }

    /// A given input (cheap to clone, borrows the bytes and not the context).
    ///
    /// **Errors**: the input is omitted.
    pub fn input(&self, i: usize) -> Result<TensorView<'a>, OpError> {
        self.optional(i).ok_or_else(|| OpError::new(OpErrorKind::Arity, format!("input {i} is missing")))
    }

    /// An input that may be omitted.
    pub fn optional(&self, i: usize) -> Option<TensorView<'a>> {
        self.inputs.get(i).cloned().flatten()
    }

    /// An output to fill.
    ///
    /// **Errors**: the op has no such output.
    pub fn output(&mut self, i: usize) -> Result<&mut TensorViewMut<'a>, OpError> {
        self.outputs.get_mut(i).ok_or_else(|| OpError::new(OpErrorKind::Arity, format!("output {i} is missing")))
    }

    /// The outputs, for their final shapes.
    pub fn outputs(&self) -> &[TensorViewMut<'a>] {
        &self.outputs
    }
}

impl OpInfo {
    /// Checks how many inputs and outputs a node gives.
    ///
    /// **Errors**: too many, too few, or an omitted one that is required.
    pub fn check_arity(&self, inputs: &[Option<ValueId>], n_outputs: usize) -> Result<(), OpError> {
        let given: SmallVec<[bool; 8]> = inputs.iter().map(Option::is_some).collect();
        check_params(self.name, "input", self.inputs, &given)?;
        let outputs: SmallVec<[bool; 8]> = SmallVec::from_elem(true, n_outputs);
        check_params(self.name, "output", self.outputs, &outputs)
    }

    /// The parameter that input `i` belongs to.
    pub fn input_param(&self, i: usize) -> Option<&'static Param> {
        self.inputs.get(i).or_else(|| self.inputs.last().filter(|last| matches!(last.arity, Arity::Variadic(_))))
    }

    /// The parameter that output `i` belongs to.
    pub fn output_param(&self, i: usize) -> Option<&'static Param> {
        self.outputs.get(i).or_else(|| self.outputs.last().filter(|last| matches!(last.arity, Arity::Variadic(_))))
    }
}

fn check_params(op: &str, what: &str, params: &[Param], given: &[bool]) -> Result<(), OpError> {
    let arity = |message: String| Err(OpError::new(OpErrorKind::Arity, message));
    let variadic = params.last().is_some_and(|last| matches!(last.arity, Arity::Variadic(_)));
    if given.len() > params.len() && !variadic {
        return arity(format!("{op} takes at most {} {what}s, got {}", params.len(), given.len()));
    }
    for (i, param) in params.iter().enumerate() {
        match param.arity {
            Arity::One if !given.get(i).is_some_and(|&is| is) => {
                return arity(format!("{op} needs its {what} {i} ({})", param.name));
            }
            Arity::One | Arity::Optional => {}
            Arity::Variadic(least) => {
                let rest = given.get(i..).unwrap_or(&[]);
                if rest.len() < least {
                    return arity(format!("{op} needs at least {least} {what}s ({}), got {}", param.name, rest.len()));
                }
            }
        }
    }
    Ok(())
}

/// Binds an op's type variables to the element types of a node's inputs and outputs.
///
/// **Errors**: a type that the op does not take, or two types for one variable.
pub fn bind_types(info: &OpInfo, inputs: &[Option<DType>], outputs: &[DType]) -> Result<Types, OpError> {
    let mut bound: SmallVec<[Option<DType>; 2]> = SmallVec::from_elem(None, info.types.len());
    let params = inputs.iter().enumerate().filter_map(|(i, &dtype)| Some((info.input_param(i)?, i, dtype?, "input")));
    let results =
        outputs.iter().enumerate().filter_map(|(i, &dtype)| Some((info.output_param(i)?, i, dtype, "output")));
    for (param, i, dtype, what) in params.chain(results) {
        let wrong = |expected: String| {
            OpError::dtype(format!("{} takes {expected} as {what} {i} ({}), got {dtype}", info.name, param.name))
        };
        match param.ty {
            TypeRef::Any => {}
            TypeRef::Fixed(expected) if expected == dtype => {}
            TypeRef::Fixed(expected) => return Err(wrong(expected.to_string())),
            TypeRef::Var(var) => {
                let var = var as usize;
                if !info.types[var].allowed.contains(&dtype) {
                    let names: Vec<_> = info.types[var].allowed.iter().map(|dtype| dtype.name()).collect();
                    return Err(wrong(format!("one of {}", names.join(", "))));
                }
                match bound[var] {
                    None => bound[var] = Some(dtype),
                    Some(first) if first == dtype => {}
                    Some(first) => {
                        return Err(wrong(format!("{first}, as its other operands of type {}", info.types[var].name)));
                    }
                }
            }
        }
    }
    // A variable that no given parameter binds (all its inputs omitted) takes its first allowed type.
    Ok(bound.iter().zip(info.types).map(|(dtype, var)| dtype.unwrap_or(var.allowed[0])).collect())
}
