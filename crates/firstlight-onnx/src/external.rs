//! External data: files beside the model that hold its weights.
//!
//! A location is a relative path; neither it nor a link on its way may leave the model's folder.

use crate::error::LoadError;
use firstlight_tensor::pb::{ExternalData, TensorProto};
use firstlight_tensor::{Bytes, MappedFile, Tensor};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files opened so far.
#[derive(Debug)]
pub(crate) struct ExternalFiles {
    folder: Option<PathBuf>,
    map: bool,
    open: HashMap<String, Arc<MappedFile>>,
}

impl ExternalFiles {
    pub(crate) fn new(folder: Option<PathBuf>, map: bool) -> Self {
        Self { folder, map, open: HashMap::new() }
    }

    /// The tensor whose payload lies in another file, as a range of that file.
    pub(crate) fn tensor(&mut self, proto: &TensorProto<'_>) -> Result<Tensor, LoadError> {
        let data = proto.external_data().map_err(LoadError::Malformed)?;
        let fail =
            |problem: String| LoadError::External { tensor: proto.name.into(), file: data.location.clone(), problem };
        let (dtype, shape) = (proto.dtype()?, proto.shape()?);
        let expected = proto.n_bytes()?.ok_or_else(|| fail("strings cannot be external".into()))?;
        let length = data.length.unwrap_or(expected as u64);
        if length != expected as u64 {
            return Err(fail(format!("its length is {length} bytes, but {dtype}{shape} takes {expected}")));
        }
        let file = self.file(&data, &fail)?;
        let offset = usize::try_from(data.offset).ok();
        let bytes = offset.and_then(|offset| Bytes::mapped(&file, offset, expected)).ok_or_else(|| {
            fail(format!(
                "the file is too short: {expected} bytes at offset {} are needed, the file has {}",
                data.offset,
                file.len()
            ))
        })?;
        Tensor::new(dtype, shape, bytes).map_err(|e| fail(e.to_string()))
    }

    fn file(&mut self, data: &ExternalData, fail: &impl Fn(String) -> LoadError) -> Result<Arc<MappedFile>, LoadError> {
        if let Some(file) = self.open.get(&data.location) {
            return Ok(file.clone());
        }
        let folder = self
            .folder
            .as_deref()
            .ok_or_else(|| fail("a model from bytes has no folder; name one in the load options".into()))?;
        let path = resolve(folder, &data.location).map_err(fail)?;
        let open = if self.map { MappedFile::map } else { MappedFile::read };
        let file = Arc::new(open(&path).map_err(|e| fail(e.to_string()))?);
        self.open.insert(data.location.clone(), file.clone());
        Ok(file)
    }
}

/// The real path of a location inside `folder`.
fn resolve(folder: &Path, location: &str) -> Result<PathBuf, String> {
    let parts = || location.split(['/', '\\']);
    let has_drive = parts().next().is_some_and(|first| first.contains(':'));
    if location.starts_with(['/', '\\']) || has_drive {
        return Err("an absolute path; only files inside the model's folder are read".into());
    }
    if parts().any(|part| part == "..") {
        return Err("the path leaves the model's folder (`..`); only files inside it are read".into());
    }
    if location.contains('\0') {
        return Err("the path holds a zero byte".into());
    }
    let said = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => "there is no such file in the model's folder".to_owned(),
        _ => e.to_string(),
    };
    let root = folder.canonicalize().map_err(said)?;
    let path = root.join(location).canonicalize().map_err(said)?;
    if path.starts_with(&root) {
        Ok(path)
    } else {
        Err("a link leads out of the model's folder; only files inside it are read".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firstlight_tensor::wire::Writer;

    fn message(location: &str, dims: &[i64], offset: &str, length: &str) -> Vec<u8> {
        let mut w = Writer::new();
        w.packed_i64(1, dims).i64(2, 1).text(8, "w").i64(14, 1);
        for (k, v) in [("location", location), ("offset", offset), ("length", length)] {
            if !v.is_empty() {
                w.message(13, |e| _ = e.text(1, k).text(2, v));
            }
        }
        w.finish()
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("firstlight-external-{}-{name}", std::process::id()));
        std::fs::create_dir_all(folder.join("inside")).unwrap();
        std::fs::write(folder.join("inside/w.bin"), [0, 0, 128, 63, 0, 0, 0, 64]).unwrap();
        folder
    }

    #[test]
    fn reads_ranges_inside_the_folder_and_nothing_else() {
        let root = folder("ranges");
        let model_folder = root.join("inside");
        std::fs::write(root.join("secret.bin"), [0; 8]).unwrap();
        let read = |location: &str, dims: &[i64], offset: &str, length: &str| {
            let bytes = message(location, dims, offset, length);
            let proto = TensorProto::from_bytes(&bytes, 8).unwrap();
            ExternalFiles::new(Some(model_folder.clone()), true).tensor(&proto).map_err(|e| e.to_string())
        };
        let tensor = read("w.bin", &[1], "4", "4").unwrap();
        assert_eq!(&tensor.values::<f32>().unwrap()[..], [2.0]);
        assert_eq!(tensor.bytes().owned_len(), 0);
        assert_eq!(&read("./w.bin", &[2], "", "").unwrap().values::<f32>().unwrap()[..], [1.0, 2.0]);

        let error = |location, dims, offset, length| read(location, dims, offset, length).unwrap_err();
        assert!(
            error("none.bin", &[2], "", "").contains("tensor `w`: external data in \"none.bin\": there is no such")
        );
        assert!(error("w.bin", &[2], "4", "").contains("too short"));
        assert!(error("w.bin", &[2], "18446744073709551615", "").contains("too short"));
        assert!(error("w.bin", &[2], "", "4").contains("takes 8"));
        assert!(error("../secret.bin", &[2], "", "").contains("leaves"));
        assert!(error("a\\..\\..\\secret.bin", &[2], "", "").contains("leaves"));
        assert!(error("/etc/hostname", &[2], "", "").contains("absolute"));
        assert!(error("C:\\w.bin", &[2], "", "").contains("absolute"));
        assert!(error("w\0.bin", &[2], "", "").contains("zero byte"));
        assert!(error(".", &[2], "", "").contains("directory"));
        assert!(error("w.bin", &[1 << 62], "", "").contains("more than memory"));
        std::fs::remove_dir_all(root).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn links_may_not_leave_the_folder() {
        let root = folder("links");
        let model_folder = root.join("inside");
        std::fs::write(root.join("secret.bin"), [0; 8]).unwrap();
        std::os::unix::fs::symlink("../secret.bin", model_folder.join("out.bin")).unwrap();
        std::os::unix::fs::symlink("w.bin", model_folder.join("in.bin")).unwrap();
        assert!(resolve(&model_folder, "in.bin").is_ok());
        assert!(resolve(&model_folder, "out.bin").unwrap_err().contains("link leads out"));
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_model_from_bytes_has_no_folder() {
        let bytes = message("w.bin", &[1], "", "");
        let proto = TensorProto::from_bytes(&bytes, 8).unwrap();
        let e = ExternalFiles::new(None, true).tensor(&proto).unwrap_err();
        assert!(e.to_string().contains("no folder"), "{e}");
    }
}
