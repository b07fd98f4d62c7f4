//! The inputs of a benchmark case: `name|dtype|dims|file` a line, raw little-endian files.

use firstlight::DType;
use std::path::Path;

/// An input.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) dims: Vec<usize>,
    pub(crate) bytes: Vec<u8>,
}

/// Reads a case's `inputs.txt` and the files it names.
pub(crate) fn read(case: &Path) -> Result<Vec<Input>, String> {
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
    let path = case.join(file);
    Ok(Input {
        name: name.to_owned(),
        dtype: DType::from_name(dtype).ok_or_else(|| bad("an unknown element type"))?,
        dims: dims.map_err(|_| bad("a dim that is no number"))?,
        bytes: std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?,
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
            read(&case)
        };
        let inputs = with("a|i64|1,1|a.bin\n\nb|i64||a.bin\n").unwrap();
        assert_eq!((inputs[0].dims.as_slice(), inputs[1].dims.as_slice()), (&[1, 1][..], &[][..]));
        assert_eq!((inputs[0].dtype, inputs[0].bytes.len()), (DType::I64, 8));
        for bad in ["a|i64|1", "a|q|1|a.bin", "a|i64|x|a.bin", "a|i64|1|none.bin"] {
            assert!(with(bad).is_err(), "{bad}");
        }
        std::fs::remove_dir_all(case).unwrap();
    }
}
