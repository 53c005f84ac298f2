//! The committed PTX of a kernel: where it lies, what it records of its source, and whether it still is that.
//!
//! The first lines of `softmax.sm_80.ptx` hold one comment,
//! `// gpuemu: source blake2b:<32 hexadecimal digits> nvcc 13.5.37 options -O3`, written when `softmax.cu` is compiled.

use crate::error::{Error, Result};
use blake2::digest::consts::U16;
use blake2::{Blake2b, Digest};
use gpuemu_contract::Kernel;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// What the comment begins with.
const MARK: &str = "// gpuemu: source ";
/// The largest PTX that is read: beyond it a file is no kernel somebody reviews.
const LARGEST: u64 = 256 << 20;

/// What a committed PTX records of its making.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Digest of its source and of the files that the source includes by quotes.
    pub digest: String,
    /// What compiled it: `nvcc 13.5.37`.
    pub compiler: String,
    /// The kernel's `compile_options`, separated by spaces.
    pub options: String,
}

impl Record {
    /// Reads the comment from the first lines of a PTX; `None` when there is none.
    pub fn read(ptx: &str) -> Option<Record> {
        let comments = ptx.lines().map(str::trim).take_while(|line| line.is_empty() || line.starts_with("//"));
        let line = comments.into_iter().find_map(|line| line.strip_prefix(MARK))?;
        let (digest, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (compiler, options) = rest.split_once(" options ").unwrap_or((rest, ""));
        Some(Record {
            digest: digest.strip_prefix("blake2b:")?.to_owned(),
            compiler: compiler.trim().to_owned(),
            options: options.trim().to_owned(),
        })
    }

    /// The comment, without the end of its line.
    pub fn line(&self) -> String {
        let Record { digest, compiler, options } = self;
        let options = if options.is_empty() { String::new() } else { format!(" options {options}") };
        format!("{MARK}blake2b:{digest} {compiler}{options}")
    }
}

/// A PTX that may be tested: it is that of its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Where it lies.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// What it records; `None` for a PTX that is itself the source.
    pub record: Option<Record>,
}

/// The kernel's source.
///
/// # Errors
///
/// [`Error::Config`] when the contract names none.
pub fn source_of(kernel: &Kernel) -> Result<&Path> {
    kernel.source.as_deref().ok_or_else(|| {
        Error::Config(format!(
            "kernel `{}` has no `source`: name its .cu or .ptx file in its [[kernels]] (line {})",
            kernel.name, kernel.line
        ))
    })
}

/// Whether PTX is the source itself, written by hand or by another tool.
pub fn is_written_by_hand(source: &Path) -> bool {
    source.extension().is_some_and(|extension| extension == "ptx")
}

/// Where the PTX of a source for a target lies: `kernels/softmax.cu` has `kernels/softmax.sm_80.ptx`.
pub fn path_of(source: &Path, target: &str) -> PathBuf {
    match is_written_by_hand(source) {
        true => source.to_owned(),
        false => source.with_extension(format!("{target}.ptx")),
    }
}

/// Reads the PTX of a kernel for a target. `update` is the command that compiles it again.
///
/// # Errors
///
/// [`Error::Artifact`] when it is missing or not that of its source, [`Error::Ptx`] when it is no text.
pub fn load(kernel: &Kernel, target: &str, root: &Path, update: &str) -> Result<Committed> {
    let source = source_of(kernel)?;
    let path = path_of(source, target);
    let (name, from) = (shown(&path, root), shown(source, root));
    let text = match read(&path, &name)? {
        Some(text) => text,
        None => {
            let said =
                format!("{name} is not there: it is the PTX of {from} for {target} and belongs to the repository");
            return Err(Error::Artifact(format!("{said}\n  compile  {update}")));
        }
    };
    if is_written_by_hand(source) {
        return Ok(Committed { path, text, record: None });
    }
    let stale = |why: String| Err(Error::Artifact(format!("{name} {why}\n  compile  {update}")));
    let Some(record) = Record::read(&text) else {
        return stale(format!("does not say which {from} it was compiled from (no `{MARK}...` line at its top)"));
    };
    if record.digest != digest(source)? {
        return stale(format!("is older than its source: {from}, or a file it includes, has changed since"));
    }
    let options = kernel.compile_options.join(" ");
    if record.options != options {
        let quoted = |options: &str| if options.is_empty() { "none".to_owned() } else { format!("`{options}`") };
        let (old, new) = (quoted(&record.options), quoted(&options));
        return stale(format!("was compiled with other options: {old}, and gpuemu.toml says {new}"));
    }
    Ok(Committed { path, text, record: Some(record) })
}

/// The text of a PTX file; `None` when there is no file.
fn read(path: &Path, name: &str) -> Result<Option<String>> {
    let unreadable = |error: std::io::Error| Error::File(format!("cannot read {name}: {error}"));
    let size = match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(unreadable)?.len(),
    };
    if size > LARGEST {
        return Err(Error::Ptx(format!(
            "{name} has {} MiB, more than the {} MiB of any kernel",
            size >> 20,
            LARGEST >> 20
        )));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Error::Ptx(format!("{name} is empty")));
    }
    let wrong = match std::str::from_utf8(&bytes) {
        Ok(_) => bytes.iter().position(|byte| *byte == 0),
        Err(error) => Some(error.valid_up_to()),
    };
    if let Some(at) = wrong {
        let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        let what = if bytes.starts_with(b"\x7fELF") { ", but a compiled binary (ELF)" } else { "" };
        return Err(Error::Ptx(format!("{name} is no PTX text{what}: byte 0x{:02x} on line {line}", bytes[at])));
    }
    String::from_utf8(bytes).map(Some).map_err(|error| Error::Internal(error.to_string()))
}

/// A path as messages show it: from the folder of `gpuemu.toml`.
pub fn shown(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

/// 16-byte Blake2b, in hexadecimal digits, of a source and of every file it includes by quotes that is there, whatever
/// the line ends of the checkout.
///
/// # Errors
///
/// [`Error::File`] when one of them cannot be read.
pub fn digest(source: &Path) -> Result<String> {
    let folder = source.parent().unwrap_or(Path::new("."));
    let name = PathBuf::from(source.file_name().unwrap_or_default());
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut waiting = vec![name];
    while let Some(name) = waiting.pop() {
        let (key, path) = (name.to_string_lossy().replace('\\', "/"), folder.join(&name));
        if files.contains_key(&key) || (!files.is_empty() && !path.is_file()) {
            continue;
        }
        let bytes =
            std::fs::read(&path).map_err(|error| Error::File(format!("cannot read {}: {error}", path.display())))?;
        let beside = name.parent().unwrap_or(Path::new(""));
        waiting.extend(includes(&String::from_utf8_lossy(&bytes)).map(|include| lexical(&beside.join(include))));
        files.insert(key, unix(bytes));
    }
    let mut hash = Blake2b::<U16>::new();
    for (name, bytes) in &files {
        hash.update(name.as_bytes());
        hash.update([0]);
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What `#include "..."` lines name.
fn includes(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?;
        rest.trim_start().strip_prefix('"')?.split_once('"').map(|(name, _)| name)
    })
}

/// A relative path without `.`, and without `..` where a folder stands before it.
fn lexical(path: &Path) -> PathBuf {
    let mut parts: Vec<Component<'_>> = Vec::new();
    for part in path.components() {
        match (part, parts.last()) {
            (Component::CurDir, _) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.iter().collect()
}

fn unix(bytes: Vec<u8>) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for (at, byte) in bytes.iter().enumerate() {
        if *byte != b'\r' || bytes.get(at + 1) != Some(&b'\n') {
            out.push(*byte);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "00112233445566778899aabbccddeeff";

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    fn kernel(root: &Path, source: &str, more: &str) -> Kernel {
        let text = format!(
            "[[kernels]]\nname = \"k\"\nsource = \"{source}\"\n{more}\n[kernels.artifact_checks]\ntargets = [\"sm_80\"]\n"
        );
        gpuemu_contract::Contract::parse(&text, &root.join("gpuemu.toml")).unwrap().kernels.remove(0)
    }

    #[test]
    fn a_record_reads_as_it_is_written() {
        for (compiler, options) in
            [("nvcc 13.5.37", ""), ("nvcc 13.5.37", "-O2 --use_fast_math"), ("nvcc 9", "-DX=a b")]
        {
            let record = Record { digest: DIGEST.into(), compiler: compiler.into(), options: options.into() };
            assert_eq!(Record::read(&format!("//\n\n{}\n.version 8.0\n", record.line())), Some(record));
        }
        for text in [
            "",
            "// gpuemu: source\n",
            "// gpuemu: source sha256:00 nvcc 13\n",
            ".version 8.0\n// gpuemu: source blake2b:00112233445566778899aabbccddeeff nvcc 13.5\n",
        ] {
            assert_eq!(Record::read(text), None, "{text}");
        }
    }

    #[test]
    fn the_digest_is_that_of_another_implementation() {
        let folder = folder(&[("k.cu", "#include \"a.cuh\"\r\n#include <math.h>\n"), ("a.cuh", "x\n")]);
        // Python: h = hashlib.blake2b(digest_size=16), then for a.cuh and k.cu, in this order, h.update(name + b"\0" +
        // len(text).to_bytes(8, "little") + text), with \n for \r\n.
        assert_eq!(digest(&folder.path().join("k.cu")).unwrap(), "33098080bdbb7661d53d0c5f99e9155b");
    }

    #[test]
    fn headers_by_quotes_count_and_others_do_not() {
        let files = [
            ("k/k.cu", "#include \"a.cuh\"\n  # include \"../shared/./b.cuh\" // here\n#include \"cuda_fp16.h\"\n"),
            ("k/a.cuh", "#include \"a.cuh\"\n"),
            ("shared/b.cuh", "#include \"c.cuh\"\n"),
            ("shared/c.cuh", ""),
            ("k/c.cuh", ""),
        ];
        let folder = folder(&files);
        let source = folder.path().join("k/k.cu");
        let before = digest(&source).unwrap();
        for (file, counts) in [("k/a.cuh", true), ("shared/b.cuh", true), ("shared/c.cuh", true), ("k/c.cuh", false)] {
            let path = folder.path().join(file);
            let text = std::fs::read_to_string(&path).unwrap();
            std::fs::write(&path, format!("{text}int x;\n")).unwrap();
            assert_eq!(digest(&source).unwrap() != before, counts, "{file}");
            std::fs::write(&path, text.replace('\n', "\r\n")).unwrap();
            assert_eq!(digest(&source).unwrap(), before, "{file}");
        }
    }

    #[test]
    fn a_ptx_that_cannot_be_tested_says_why_and_what_to_do() {
        let folder = folder(&[("k/k.cu", "__global__ void k() {}\n")]);
        let root = folder.path();
        let current = digest(&root.join("k/k.cu")).unwrap();
        let headed = |digest: &str, options: &str| {
            let record = Record { digest: digest.into(), compiler: "nvcc 13.5.37".into(), options: options.into() };
            format!("{}\n.version 9.5\n", record.line()).into_bytes()
        };
        // What lies there, what is said, and whether compiling is the way out.
        let table: [(Option<Vec<u8>>, &str, bool); 8] = [
            (None, "k/k.sm_80.ptx is not there: it is the PTX of k/k.cu for sm_80 and belongs to the repository", true),
            (Some(b" \n".to_vec()), "k/k.sm_80.ptx is empty", false),
            (
                Some(b"\x7fELF\x02\x01\x01\0\0".to_vec()),
                "k/k.sm_80.ptx is no PTX text, but a compiled binary (ELF): byte 0x00 on line 1",
                false,
            ),
            (Some(b".version 8.0\n\xff\xfe".to_vec()), "k/k.sm_80.ptx is no PTX text: byte 0xff on line 2", false),
            (Some(b".version 8.0\n".to_vec()), "k/k.sm_80.ptx does not say which k/k.cu it was compiled from", true),
            (
                Some(headed(DIGEST, "-O2")),
                "k/k.sm_80.ptx is older than its source: k/k.cu, or a file it includes, has changed since",
                true,
            ),
            (
                Some(headed(&current, "")),
                "k/k.sm_80.ptx was compiled with other options: none, and gpuemu.toml says `-O2`",
                true,
            ),
            (
                Some(headed(&current, "-O3")),
                "k/k.sm_80.ptx was compiled with other options: `-O3`, and gpuemu.toml says `-O2`",
                true,
            ),
        ];
        let kernel = kernel(root, "k/k.cu", "compile_options = [\"-O2\"]");
        let ptx = root.join("k/k.sm_80.ptx");
        let load = || load(&kernel, "sm_80", root, "GPUEMU_UPDATE=ptx cargo test");
        for (bytes, said, compile) in table {
            if let Some(bytes) = bytes {
                std::fs::write(&ptx, bytes).unwrap();
            }
            let text = load().unwrap_err().to_string();
            assert!(text.starts_with(said), "{text}");
            assert_eq!(text.ends_with("\n  compile  GPUEMU_UPDATE=ptx cargo test"), compile, "{text}");
        }
        std::fs::write(&ptx, headed(&current, "-O2")).unwrap();
        assert_eq!(load().unwrap().record.map(|record| record.options).as_deref(), Some("-O2"));
    }

    #[test]
    fn ptx_written_by_hand_is_tested_as_it_is() {
        let folder = folder(&[("k.ptx", ".version 8.0\n.target sm_80\n")]);
        let kernel = kernel(folder.path(), "k.ptx", "");
        let committed = load(&kernel, "sm_90", folder.path(), "").unwrap();
        assert_eq!((committed.record, committed.path), (None, folder.path().join("k.ptx")));
    }
}
