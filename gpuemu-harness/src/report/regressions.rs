//! Saved failures: `gpuemu-regressions/<op>/<id>.toml`, committed by the user, run first from then on. Those of a
//! compiled kernel lie in `gpuemu-regressions/kernel/<name>`.

use crate::case::spec::Spec;
use crate::error::{Error, Result};
use crate::files::write_atomically;
use crate::tensor::{Layout, Tensor};
use gpuemu_contract::{DType, KERNEL};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The folder beside `gpuemu.toml` that holds them.
pub const FOLDER: &str = "gpuemu-regressions";

/// Where those of an op, or of `kernel::` and a kernel, lie.
pub fn folder(op: &str) -> PathBuf {
    op.split("::").fold(PathBuf::from(FOLDER), |folder, part| folder.join(part))
}

/// A saved failure.
#[derive(Clone, Debug, PartialEq)]
pub struct Regression {
    /// Where it lies, relative to the folder of `gpuemu.toml`.
    pub path: PathBuf,
    /// The op.
    pub op: String,
    /// The file's name without its ending.
    pub id: String,
    /// The case.
    pub spec: Spec,
    /// Inputs that the spec cannot regenerate, from the `.safetensors` beside it.
    pub inputs: Vec<(String, Tensor)>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Version of this format.
    version: u32,
    spec: String,
    /// The check that failed when it was saved.
    check: String,
    /// What the failure said when it was saved.
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    inputs: Option<String>,
}

const VERSION: u32 = 1;

/// The id of a case: the first six hexadecimal digits of its seed, with more digits of the spec's hash where two cases
/// share them.
fn id_of(spec: &Spec, digits: usize) -> String {
    use blake2::digest::{Digest, consts::U8};
    let hash = blake2::Blake2b::<U8>::digest(spec.to_string().as_bytes());
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    hash[..digits].to_owned()
}

/// Saves a failing case and returns its path relative to `root`. Saving the same case again, from another process at
/// the same moment too, leaves one file.
pub fn save(root: &Path, spec: &Spec, check: &str, message: &str, inputs: &[(String, Tensor)]) -> Result<PathBuf> {
    let folder = folder(&spec.test.op);
    for digits in [6, 10, 16] {
        let id = id_of(spec, digits);
        let path = folder.join(format!("{id}.toml"));
        let snapshot_name = format!("{id}.safetensors");
        match read(root, &path) {
            // A snapshot that somebody lost is written anew.
            Ok(present) if present.spec == spec.to_string() => {
                if inputs.is_empty() || root.join(&folder).join(&snapshot_name).is_file() {
                    return Ok(path);
                }
            }
            Err(Error::NotFound(_)) => {}
            Err(error @ Error::File(_)) => return Err(error),
            Ok(_) | Err(_) => continue, // another case with the same first digits, or not ours to overwrite
        }
        let mut file = File {
            version: VERSION,
            spec: spec.to_string(),
            check: check.to_owned(),
            message: message.lines().next().unwrap_or_default().to_owned(),
            inputs: None,
        };
        if !inputs.is_empty() {
            write_atomically(&root.join(&folder).join(&snapshot_name), &snapshot(inputs)?)?;
            file.inputs = Some(snapshot_name);
        }
        let text = toml::to_string(&file).map_err(|error| Error::Internal(error.to_string()))?;
        write_atomically(&root.join(&path), text.as_bytes())?;
        return Ok(path);
    }
    Err(Error::File(format!("no free name for a regression in {}", root.join(folder).display())))
}

/// Something wrong with what a regression file says.
fn wrong(path: &Path, message: &dyn std::fmt::Display) -> Error {
    Error::Config(format!("{}: {message}", path.display()))
}

fn read(root: &Path, path: &Path) -> Result<File> {
    let text = std::fs::read_to_string(root.join(path)).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::NotFound(format!("no regression file {}", path.display())),
        std::io::ErrorKind::InvalidData => wrong(path, &"not a text file"),
        _ => Error::File(format!("cannot read {}: {error}", path.display())),
    })?;
    // The version first: a newer format may have keys that this one does not know.
    let document: toml::Table = text.parse().map_err(|error: toml::de::Error| wrong(path, &error))?;
    match document.get("version") {
        Some(toml::Value::Integer(version)) if *version != i64::from(VERSION) => {
            return Err(Error::VersionMismatch(format!(
                "{}: regression format {version}, this gpuemu reads {VERSION}: update gpuemu-harness",
                path.display()
            )));
        }
        _ => {}
    }
    toml::from_str(&text).map_err(|error| wrong(path, &error))
}

/// Reads one saved failure; `path` is relative to `root`.
pub fn load(root: &Path, path: &Path) -> Result<Regression> {
    let file = read(root, path)?;
    let spec: Spec = file.spec.parse().map_err(|error: Error| wrong(path, &error))?;
    let inputs = match &file.inputs {
        None => Vec::new(),
        Some(name) => {
            let bytes = std::fs::read(root.join(path).with_file_name(name)).map_err(|error| {
                let wanted = format!("cannot read its inputs, {name}: {error}");
                wrong(path, &format_args!("{wanted}; restore that file, or delete both"))
            })?;
            restore(&bytes).map_err(|message| wrong(path, &format_args!("{name}: {message}")))?
        }
    };
    let id = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Regression { path: path.to_owned(), op: spec.test.op.clone(), id, spec, inputs })
}

/// Names of the ops that have saved failures, and of kernels after `kernel::`, sorted, whether or not the contract still
/// has them. No folder: none.
pub fn ops(root: &Path) -> Result<Vec<String>> {
    let mut ops = folders(root, Path::new(FOLDER))?;
    if let Some(place) = ops.iter().position(|op| op == KERNEL) {
        ops.remove(place);
        let kernels = folders(root, &folder(KERNEL))?;
        ops.extend(kernels.into_iter().map(|kernel| format!("{KERNEL}::{kernel}")));
    }
    ops.sort();
    Ok(ops)
}

/// Names of the folders in a folder.
fn folders(root: &Path, folder: &Path) -> Result<Vec<String>> {
    let entries = match std::fs::read_dir(root.join(folder)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::File(format!("cannot read {}: {error}", folder.display()))),
    };
    let folders = entries.filter_map(|entry| entry.ok()).filter(|entry| entry.path().is_dir());
    Ok(folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

/// Paths of the saved failures of one op, sorted, relative to `root`. No folder: none.
pub fn list(root: &Path, op: &str) -> Result<Vec<PathBuf>> {
    let folder = folder(op);
    let entries = match std::fs::read_dir(root.join(&folder)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::File(format!("cannot read {}: {error}", folder.display()))),
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| folder.join(entry.file_name())))
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .collect();
    paths.sort();
    Ok(paths)
}

fn snapshot(inputs: &[(String, Tensor)]) -> Result<Vec<u8>> {
    let dense: Vec<(String, Tensor)> =
        inputs.iter().map(|(name, tensor)| (name.clone(), tensor.to_contiguous())).collect();
    let views = dense.iter().map(|(name, tensor)| {
        let view = safetensors::tensor::TensorView::new(
            safetensors_dtype(tensor.dtype()),
            tensor.shape().to_vec(),
            tensor.bytes(),
        );
        view.map(|view| (name.as_str(), view))
    });
    let views: std::result::Result<Vec<_>, _> = views.collect();
    views
        .and_then(|views| safetensors::serialize(views, None::<HashMap<String, String>>))
        .map_err(|error| Error::Internal(format!("cannot snapshot inputs: {error}")))
}

fn restore(bytes: &[u8]) -> std::result::Result<Vec<(String, Tensor)>, String> {
    let file = safetensors::SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    file.iter()
        .map(|(name, view)| {
            let dtype = DType::ALL
                .into_iter()
                .find(|&dtype| safetensors_dtype(dtype) == view.dtype())
                .ok_or_else(|| format!("{name} has dtype {:?}, which gpuemu does not know", view.dtype()))?;
            let mut tensor = Tensor::zeros(dtype, Layout::contiguous(view.shape()));
            tensor.bytes_mut().copy_from_slice(view.data());
            Ok((name.to_owned(), tensor))
        })
        .collect()
}

fn safetensors_dtype(dtype: DType) -> safetensors::Dtype {
    use safetensors::Dtype;
    match dtype {
        DType::Float64 => Dtype::F64,
        DType::Float32 => Dtype::F32,
        DType::Float16 => Dtype::F16,
        DType::BFloat16 => Dtype::BF16,
        DType::Float8E4M3 => Dtype::F8_E4M3,
        DType::Float8E5M2 => Dtype::F8_E5M2,
        DType::Int8 => Dtype::I8,
        DType::Int16 => Dtype::I16,
        DType::Int32 => Dtype::I32,
        DType::Int64 => Dtype::I64,
        DType::UInt8 => Dtype::U8,
        DType::UInt16 => Dtype::U16,
        DType::UInt32 => Dtype::U32,
        DType::UInt64 => Dtype::U64,
        DType::Bool => Dtype::BOOL,
    }
}
