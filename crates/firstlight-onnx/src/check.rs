//! Importing that goes on after a problem, to tell all of them at once.
//!
//! What cannot be imported is replaced by a stand-in: an input of the graph at hand that carries the value's name and,
//! where that is declared, its element type. What reads a stand-in is looked at like everything else, but a problem
//! that may only be the stand-in's is not told.

use crate::build::{Binding, Builder};
use crate::error::LoadError;
use crate::proto::NodeProto;
use crate::survey::is_known;
use crate::{Imported, LoadOptions, folder_of, import_noting, open};
use firstlight_graph::{Spec, ValueId};
use firstlight_tensor::{DType, SymShape};
use std::path::Path;

/// Problems kept; a file that has more has said enough.
const MAX_PROBLEMS: usize = 1000;

/// What stands in the way of importing a model.
#[derive(Debug, Default)]
pub struct Checked {
    /// All problems: unsupported ops first, in one, then the others as they were met.
    pub problems: Vec<LoadError>,
    /// Nodes behind a problem that could not be looked at themselves.
    pub n_unsure: usize,
    /// The model, where there is no problem.
    pub imported: Option<Imported>,
}

/// Problems met so far.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    pub(crate) problems: Vec<LoadError>,
    pub(crate) n_unsure: usize,
}

/// How deep the import was at some point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Depth {
    levels: usize,
    frames: usize,
    calls: usize,
}

/// Imports a model file as far as it goes and tells everything that stands in the way.
pub fn check(path: &Path, options: &LoadOptions) -> Checked {
    let mut noted = Noted::default();
    let imported = open(path, options)
        .and_then(|file| import_noting(&file, folder_of(path, options), options, Some(&mut noted)))
        .map_err(|error| noted.note(error))
        .ok()
        .filter(|_| noted.problems.is_empty());
    Checked { problems: noted.problems, n_unsure: noted.n_unsure, imported }
}

impl Noted {
    pub(crate) fn note(&mut self, error: LoadError) {
        if self.problems.len() < MAX_PROBLEMS && !self.problems.contains(&error) {
            self.problems.push(error);
        }
    }
}

impl<'m> Builder<'m> {
    /// Notes a problem where problems are collected.
    ///
    /// **Errors**: the problem itself, where they are not, or when it is a limit.
    pub(crate) fn note(&mut self, error: LoadError) -> Result<(), LoadError> {
        match &mut self.noted {
            Some(noted) if !matches!(error, LoadError::Limit { .. } | LoadError::Cancelled { .. }) => {
                noted.note(error);
                Ok(())
            }
            _ => Err(error),
        }
    }

    pub(crate) fn is_checking(&self) -> bool {
        self.noted.is_some()
    }

    pub(crate) fn depth(&self) -> Depth {
        Depth { levels: self.levels.len(), frames: self.frames.len(), calls: self.calls.len() }
    }

    /// Goes on after a node that failed: its outputs become stand-ins.
    ///
    /// **Errors**: the problem, where problems are not collected.
    pub(crate) fn pass_over(
        &mut self,
        node: &'m NodeProto<'m>,
        error: LoadError,
        depth: Depth,
    ) -> Result<(), LoadError> {
        if !self.is_checking() || matches!(error, LoadError::Limit { .. }) {
            return Err(error);
        }
        self.levels.truncate(depth.levels);
        self.frames.truncate(depth.frames);
        self.calls.truncate(depth.calls);
        // The survey names ops that nobody knows.
        let is_told = self.functions.called_by(node).is_none() && !is_known(node, &self.frame().opsets);
        if !is_told {
            let may_be_other = matches!(error, LoadError::Node { .. } | LoadError::UnsupportedNode { .. });
            if may_be_other && self.reads_stand_in(node) {
                self.noted.iter_mut().for_each(|noted| noted.n_unsure += 1);
            } else {
                self.note(error)?;
            }
        }
        for &output in node.outputs.iter().filter(|output| !output.is_empty()) {
            if !self.frame().is_bound(output) {
                let frame = self.frame();
                let (label, dtype) = (frame.value_label(output), frame.types.get(output).copied());
                let value = self.stand_in(label, dtype, None);
                self.bind(output, Binding::Value(value));
            }
        }
        Ok(())
    }

    /// An input of the graph at hand, in the place of a value that could not be imported.
    pub(crate) fn stand_in(&mut self, name: String, dtype: Option<DType>, dims: Option<SymShape>) -> ValueId {
        self.level_mut().stand_in(name, dtype, dims)
    }

    fn reads_stand_in(&mut self, node: &'m NodeProto<'m>) -> bool {
        node.inputs.iter().filter(|input| !input.is_empty()).any(|input| {
            let value = self.value(input, &String::new).ok().flatten();
            value.is_some_and(|value| self.level().is_stand_in(value) || self.level().dtype(value).is_none())
        })
    }

    /// Number of problems so far.
    pub(crate) fn n_noted(&self) -> usize {
        self.noted.as_ref().map_or(0, |noted| noted.problems.len())
    }

    /// Problems from `from` on happened inside the node of that name.
    pub(crate) fn noted_inside(&mut self, from: usize, outer: &str) {
        let Some(noted) = &mut self.noted else { return };
        for problem in noted.problems.iter_mut().skip(from) {
            let inner = std::mem::replace(problem, LoadError::Model(String::new()));
            *problem = inner.inside(outer);
        }
    }
}

impl crate::build::Level {
    pub(crate) fn stand_in(&mut self, name: String, dtype: Option<DType>, dims: Option<SymShape>) -> ValueId {
        let value = self.input(name, Spec { dtype: dtype.unwrap_or(DType::F32), dims }, None);
        self.forget_dtype(value, dtype);
        self.stand_ins.insert(value);
        value
    }

    pub(crate) fn is_stand_in(&self, value: ValueId) -> bool {
        self.stand_ins.contains(&value)
    }
}
