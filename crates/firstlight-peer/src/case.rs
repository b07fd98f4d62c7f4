//! The inputs of a benchmark case: `name|dtype|dims|file` a line, raw little-endian files.

use firstlight::DType;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// An input.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) dims: Vec<usize>,
    file: PathBuf,
}

impl Input {
    /// Reads the input's file, which is as long as `to`.
    pub(crate) fn read_to(&self, to: &mut [u8]) -> Result<(), String> {
        let fail = |problem: String| format!("{}: {problem}", self.file.display());
        let mut file = File::open(&self.file).map_err(|error| fail(error.to_string()))?;
        let size = file.metadata().map_err(|error| fail(error.to_string()))?.len();
        if size != to.len() as u64 {
            return Err(fail(format!("{size} bytes, the dims of {} take {}", self.name, to.len())));
        }
        file.read_exact(to).map_err(|error| fail(error.to_string()))
    }
}

/// Reads a case's `inputs.txt`; the files it names are read when their buffers are there.
pub(crate) fn list(case: &Path) -> Result<Vec<Input>, String> {
    let list = case.join("inputs.txt");
    let text = std::fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?;
    text.lines().filter(|line| !line.is_empty()).map(|line| input(case, line)).collect()
}

fn input(case: &Path, line: &str) -> Result<Input, String> {
    let bad = |what: &str| format!("inputs.txt: {what} in {line:?}");
    let mut parts = line.split('|');
    let (Some(name), Some(dtype), Some(dims), Some(file)) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(bad("not name|dtype|dims|file"));
    };
    let dims = dims.split(',').filter(|dim| !dim.is_empty()).map(str::parse).collect::<Result<_, _>>();
    Ok(Input {
        name: name.to_owned(),
        dtype: DType::from_name(dtype).ok_or_else(|| bad("an unknown element type"))?,
        dims: dims.map_err(|_| bad("a dim that is no number"))?,
        file: case.join(file),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_read() {
        let case = std::env::temp_dir().join(format!("firstlight-peer-{}", std::process::id()));
        std::fs::create_dir_all(&case).unwrap();
        std::fs::write(case.join("a.bin"), [1, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        let with = |text: &str| {
            std::fs::write(case.join("inputs.txt"), text).unwrap();
            list(&case)
        };
        let inputs = with("a|i64|1,1|a.bin\n\nb|i64||a.bin\n").unwrap();
        assert_eq!((inputs[0].dims.as_slice(), inputs[1].dims.as_slice()), (&[1, 1][..], &[][..]));
        let mut bytes = [9; 8];
        inputs[0].read_to(&mut bytes).unwrap();
        assert_eq!((inputs[0].dtype, bytes), (DType::I64, [1, 0, 0, 0, 0, 0, 0, 0]));
        assert!(inputs[0].read_to(&mut [0; 7]).unwrap_err().contains("take 7"));
        assert!(with("a|i64|1|none.bin").unwrap()[0].read_to(&mut bytes).is_err());
        for bad in ["a|i64|1", "a|q|1|a.bin", "a|i64|x|a.bin"] {
            assert!(with(bad).is_err(), "{bad}");
        }
        std::fs::remove_dir_all(case).unwrap();
    }
}
