//! `GPUEMU_UPDATE=ptx`: the committed PTX of a `.cu` file, compiled again with nvcc.

use crate::error::{Error, Result};
use crate::files::{alone, write_atomically};
use crate::inspect::committed::{Record, digest, path_of, shown, source_of};
use crate::process::{self, Ending, Limits};
use gpuemu_contract::Kernel;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// What one compilation may use up; templates of large libraries take minutes.
const LIMITS: Limits = Limits { timeout: Duration::from_secs(600), stdout: 16 << 20 };

/// A compiler that was found.
#[derive(Clone, Copy, Debug)]
pub struct Nvcc<'a> {
    /// Its executable.
    pub path: &'a Path,
    /// Its release, `13.5`.
    pub release: &'a str,
}

/// Compiles the source of a kernel for a target and puts the PTX beside it, in place of the one that is there. When
/// anything fails, the one that is there stays.
///
/// # Errors
///
/// [`Error::Tool`] with what the compiler said.
pub fn update(kernel: &Kernel, target: &str, root: &Path, nvcc: Nvcc<'_>) -> Result<PathBuf> {
    let source = source_of(kernel)?;
    let folder = source.parent().unwrap_or(Path::new("."));
    let to = path_of(source, target);
    // What is hashed is what was there when the compiler began.
    let digest = digest(source)?;
    let made = tempfile::Builder::new().prefix("gpuemu-").suffix(".ptx").tempfile();
    let made = made.map_err(|error| Error::File(format!("cannot create a temporary file: {error}")))?;
    let mut command = Command::new(nvcc.path);
    command.current_dir(folder).args(["-ptx", "-lineinfo"]).arg(format!("-arch={target}"));
    command.args(&kernel.compile_options).arg("-o").arg(made.path());
    command.arg(source.file_name().unwrap_or_default());
    let name = shown(source, root);
    let finished = process::run(&mut command, Arc::default(), LIMITS)
        .map_err(|error| Error::Tool(format!("cannot start {}: {error}", nvcc.path.display())))?;
    if finished.ending != Ending::Exited(0) {
        let said = [String::from_utf8_lossy(&finished.stdout).trim(), &finished.stderr].join("\n");
        let said = said.trim().lines().map(|line| format!("\n  {line}")).collect::<String>();
        return Err(Error::Tool(format!(
            "{name} was not compiled for {target}: nvcc {} {}, and {} stays as it is{said}",
            nvcc.release,
            finished.ending,
            shown(&to, root)
        )));
    }
    let ptx = std::fs::read_to_string(made.path())
        .map_err(|error| Error::Tool(format!("nvcc left no PTX of {name} for {target}: {error}")))?;
    if !ptx.contains(".version") {
        return Err(Error::Tool(format!("nvcc left no PTX of {name} for {target}: what it wrote has no .version")));
    }
    let record =
        Record { digest, compiler: format!("nvcc {}", nvcc.release), options: kernel.compile_options.join(" ") };
    let text = format!("{}\n{}", record.line(), without_folders(&ptx, folder));
    alone(folder, || write_atomically(&to, text.as_bytes()))?;
    Ok(to)
}

/// The PTX with the files that `.file` names as they are called from the source's folder, and those outside of it by
/// their names alone: where a repository or a toolkit lies on one machine is no business of the others.
fn without_folders(ptx: &str, folder: &Path) -> String {
    let real = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let mut text = String::with_capacity(ptx.len());
    for line in ptx.split_inclusive('\n') {
        let parts = line.trim_start().strip_prefix(".file").and_then(|rest| {
            let (number, rest) = rest.split_once('"')?;
            let (path, _) = rest.split_once('"')?;
            Some((number.trim(), Path::new(path)))
        });
        match parts {
            Some((number, path)) => {
                let inside = path.strip_prefix(folder).or_else(|_| path.strip_prefix(&real)).ok();
                let name = inside.or_else(|| path.file_name().map(Path::new)).unwrap_or(path);
                text.push_str(&format!("\t.file\t{number} \"{}\"\n", name.to_string_lossy().replace('\\', "/")));
            }
            None => text.push_str(line),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::committed;

    #[test]
    fn paths_of_the_machine_are_left_out() {
        let ptx = "\t.loc\t1 3 0\n\t.file\t1 \"/repo/k/a.cu\"\n\t.file\t2 \"/repo/k/x/b.cuh\", 17, 3\n\t.file\t3 \"/opt/cuda/include/c.hpp\"\n";
        assert_eq!(
            without_folders(ptx, Path::new("/repo/k")),
            "\t.loc\t1 3 0\n\t.file\t1 \"a.cu\"\n\t.file\t2 \"x/b.cuh\"\n\t.file\t3 \"c.hpp\"\n"
        );
    }

    /// A compiler of a few lines: what it is asked goes into its output.
    #[cfg(unix)]
    fn compiler(folder: &Path, body: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.join("nvcc");
        let script = format!(
            "#!/bin/sh\nfor last; do :; done\nwhile [ \"$1\" != -o ]; do asked=\"$asked $1\"; shift; done\nout=$2\n{body}\n"
        );
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[cfg(unix)]
    #[test]
    fn a_ptx_is_replaced_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::write(root.join("k.cu"), "__global__ void k() {}\n").unwrap();
        let contract = "[[kernels]]\nname = \"k\"\nsource = \"k.cu\"\ncompile_options = [\"-O2\", \"-DN=3\"]\n\
                        [kernels.artifact_checks]\ntargets = [\"sm_80\"]\n";
        let kernel = gpuemu_contract::Contract::parse(contract, &root.join("gpuemu.toml")).unwrap().kernels.remove(0);
        let tools = tempfile::tempdir().unwrap();
        let run = |body: &str| {
            let path = compiler(tools.path(), body);
            update(&kernel, "sm_80", root, Nvcc { path: &path, release: "13.5" })
        };
        let ptx = root.join("k.sm_80.ptx");

        // One that works: its own comment first, the folder left out, and current from then on.
        let works = "printf '//%s\\n.version 9.5\\n\\t.file\\t1 \"%s/%s\"\\n' \"$asked\" \"$PWD\" \"$last\" > \"$out\"";
        assert_eq!(run(works).unwrap(), ptx);
        let text = std::fs::read_to_string(&ptx).unwrap();
        let digest = digest(&root.join("k.cu")).unwrap();
        assert_eq!(
            text,
            format!(
                "// gpuemu: source blake2b:{digest} nvcc 13.5 options -O2 -DN=3\n// -ptx -lineinfo -arch=sm_80 -O2 -DN=3\n\
                 .version 9.5\n\t.file\t1 \"k.cu\"\n"
            )
        );
        assert!(committed::load(&kernel, "sm_80", root, "").is_ok());

        // Those that do not: what they say is shown, and what lies there stays.
        for (body, said) in [
            (
                "echo 'k.cu(1): error: expected a \";\"' >&2; exit 2",
                "nvcc 13.5 exited with status 2, and k.sm_80.ptx stays as it is\n  k.cu(1): error: expected a \";\"",
            ),
            ("echo partial > \"$out\"; echo no memory; exit 1", "\n  no memory"),
            ("kill -9 $$", "was killed by SIGKILL"),
            ("true", "what it wrote has no .version"),
            ("rm -f \"$out\"", "nvcc left no PTX of k.cu for sm_80"),
        ] {
            let error = run(body).unwrap_err();
            assert_eq!(error.code(), "ToolFailed");
            assert!(error.to_string().contains(said), "{error}");
            assert_eq!(std::fs::read_to_string(&ptx).unwrap(), text, "{said}");
        }
        let gone = update(&kernel, "sm_80", root, Nvcc { path: Path::new("/no/such/nvcc"), release: "13.5" });
        assert!(gone.unwrap_err().to_string().starts_with("cannot start /no/such/nvcc: "));
        let files: Vec<_> = std::fs::read_dir(root).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(files.len(), 2, "nothing is left behind: {files:?}");
    }
}
