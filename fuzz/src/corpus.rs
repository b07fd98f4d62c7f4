//! Numbered cases from base models.

use crate::message::{Kind, Message};
use crate::{Rng, base, cases, hostile, mutate};
use firstlight_graph::OpKind;
use std::io;
use std::path::Path;

/// Files beyond that are not mutated: a case would mostly be copying.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The models that cases are made from.
#[derive(Debug)]
pub struct Corpus {
    /// Op by op, the models of its named cases.
    ops: Vec<(OpKind, Vec<Model>)>,
    /// The others: written by hand, and those added.
    models: Vec<Model>,
}

#[derive(Debug)]
struct Model {
    name: String,
    bytes: Vec<u8>,
    /// `None` for bytes that are no model.
    tree: Option<Message>,
}

/// A model to judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// What it was made from.
    pub origin: String,
    /// The file's contents.
    pub bytes: Vec<u8>,
}

impl Corpus {
    /// The built-in models.
    pub fn built_in() -> Corpus {
        let model = |(name, bytes)| Model::new(name, bytes);
        let ops = cases::models().into_iter();
        Corpus {
            ops: ops.map(|op| (op.kind, op.models.into_iter().map(model).collect())).collect(),
            models: base::models().into_iter().map(|(name, bytes)| model((name.to_owned(), bytes))).collect(),
        }
    }

    /// Adds a file, or every `.onnx` file in a folder and below it; gives the number of models added. Files beyond
    /// 16 MiB are left out.
    ///
    /// **Errors**: what the system says.
    pub fn add(&mut self, path: &Path) -> io::Result<usize> {
        if path.is_dir() {
            let mut entries = std::fs::read_dir(path)?.map(|e| Ok(e?.path())).collect::<io::Result<Vec<_>>>()?;
            entries.sort();
            let wanted = |path: &Path| path.is_dir() || path.extension().is_some_and(|e| e == "onnx");
            return entries.iter().filter(|path| wanted(path)).map(|path| self.add(path)).sum();
        }
        if std::fs::metadata(path)?.len() > MAX_FILE_BYTES {
            return Ok(0);
        }
        self.models.push(Model::new(path.display().to_string(), std::fs::read(path)?));
        Ok(1)
    }

    /// Number of models.
    pub fn len(&self) -> usize {
        self.all().count()
    }

    /// True when there is no model.
    pub fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    /// The ops that have models of their own.
    pub fn ops(&self) -> impl Iterator<Item = OpKind> {
        self.ops.iter().map(|(kind, _)| *kind)
    }

    /// The `n`-th model as it is; those that were added come last.
    pub fn unchanged(&self, n: u64) -> Option<Case> {
        let (_, model) = self.all().nth(n as usize)?;
        Some(Case { origin: model.name.clone(), bytes: model.bytes.clone() })
    }

    /// The op whose named case the `n`-th model is.
    pub fn op_of_model(&self, n: u64) -> Option<OpKind> {
        self.all().nth(n as usize)?.0
    }

    /// The op from whose named cases the numbered case is made.
    pub fn op_of_case(&self, number: u64) -> Option<OpKind> {
        self.turn(number).map(|(kind, _)| *kind)
    }

    /// Whose turn it is.
    fn turn(&self, number: u64) -> Option<&(OpKind, Vec<Model>)> {
        let turn = (number / 2).checked_rem(self.ops.len() as u64).filter(|_| number.is_multiple_of(2))?;
        self.ops.get(turn as usize)
    }

    fn all(&self) -> impl Iterator<Item = (Option<OpKind>, &Model)> {
        let of_ops = self.ops.iter().flat_map(|(kind, models)| models.iter().map(|model| (Some(*kind), model)));
        of_ops.chain(self.models.iter().map(|model| (None, model)))
    }

    /// The case of a seed and a number: always the same one. Every other number takes its turn among the ops.
    pub fn case(&self, seed: u64, number: u64) -> Case {
        let mut rng = Rng::new(seed, number);
        let of_op = self.turn(number);
        let model = rng.pick(of_op.map_or(&self.models, |(_, models)| models));
        let donors = if rng.one_in(2) { &self.models } else { &rng.pick(&self.ops).1 };
        let donor = rng.pick(donors);
        let (mut origin, mut bytes) = match (rng.below(10), &model.tree, &donor.tree) {
            (0..=2, _, _) if of_op.is_none() => {
                let (name, bytes) = hostile::model_of(&mut rng);
                (format!("hostile:{name}"), bytes)
            }
            (0..=5, Some(tree), _) => {
                let mut tree = tree.clone();
                for _ in 0..1 + rng.below(3) {
                    mutate::number(&mut rng, &mut tree);
                }
                (format!("numbers:{}", model.name), tree.encode())
            }
            (6..=8, Some(tree), Some(donor)) => {
                let mut tree = tree.clone();
                for _ in 0..1 + rng.below(3) {
                    mutate::message(&mut rng, &mut tree, donor);
                }
                (format!("fields:{}", model.name), tree.encode())
            }
            _ => (format!("bytes:{}", model.name), model.bytes.clone()),
        };
        if origin.starts_with("bytes") || rng.one_in(8) {
            for _ in 0..1 + rng.below(4) {
                mutate::bytes(&mut rng, &mut bytes, &donor.bytes);
            }
            if !origin.starts_with("bytes") {
                origin.push_str("+bytes");
            }
        }
        Case { origin, bytes }
    }
}

impl Model {
    fn new(name: String, bytes: Vec<u8>) -> Model {
        Model { tree: Message::parse(Kind::Model, &bytes), name, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_determined_by_seed_and_number() {
        let (a, b) = (Corpus::built_in(), Corpus::built_in());
        let mut differ = 0;
        for i in 0..200 {
            assert_eq!(a.case(5, i), b.case(5, i));
            differ += usize::from(a.case(5, i) != a.case(6, i));
        }
        assert!(differ > 190);
    }

    #[test]
    fn ops_take_turns() {
        let corpus = Corpus::built_in();
        let ops: Vec<_> = corpus.ops().collect();
        assert!(ops.contains(&OpKind::Abs) && ops.contains(&OpKind::Xor));
        let turns = |from: u64| (from..from + 2 * ops.len() as u64).filter_map(|i| corpus.op_of_case(i));
        assert!(turns(0).eq(corpus.ops()) && turns(2 * ops.len() as u64).eq(corpus.ops()));
        let origin = corpus.case(1, 0).origin;
        assert!(origin.contains(":Abs/"), "{origin}");
    }

    #[test]
    fn files_and_folders_are_added() {
        let folder = std::env::temp_dir().join(format!("firstlight-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("inner")).unwrap();
        std::fs::write(folder.join("a.onnx"), [1, 2, 3]).unwrap();
        std::fs::write(folder.join("inner/b.onnx"), [4]).unwrap();
        std::fs::write(folder.join("c.txt"), [5]).unwrap();
        let mut corpus = Corpus { ops: vec![], models: vec![] };
        assert_eq!(corpus.add(&folder).unwrap(), 2);
        assert_eq!(corpus.unchanged(0).unwrap().bytes, [1, 2, 3]);
        assert!(corpus.add(&folder.join("missing.onnx")).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
