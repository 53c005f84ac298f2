//! `GPUEMU_UPDATE=ptx`: the committed PTX of a `.cu` file, compiled again with nvcc or NVRTC.

use crate::error::{Error, Result};
use crate::files::{alone, write_atomically};
use crate::inspect::committed::{Record, digest, path_of, shown, source_of};
use gpuemu_contract::Kernel;
use gpuemu_ptx::vendor::{Compiled, Toolbox};
use std::path::{Path, PathBuf};

/// Compiles the source of a kernel for a target with the compiler of a toolbox and puts the PTX beside it, in place of the
/// one that is there. When anything fails, the one that is there stays.
///
/// # Errors
///
/// [`Error::Tool`] with what the compiler said, or where it was looked for.
pub fn update(kernel: &Kernel, target: &str, root: &Path, toolbox: &Toolbox) -> Result<PathBuf> {
    let source = source_of(kernel)?;
    let folder = source.parent().unwrap_or(Path::new("."));
    let to = path_of(source, target);
    let failed = |error: gpuemu_ptx::Error| {
        let kept = if to.exists() { format!("; {} stays as it is", shown(&to, root)) } else { String::new() };
        Error::Tool(format!("{} was not compiled for {target}{kept}: {error}", shown(source, root)))
    };
    // What is hashed is what was there when the compiler began.
    let digest = digest(source)?;
    let mut flags = vec!["-lineinfo".to_owned()];
    flags.extend(kernel.compile_options.iter().cloned());
    let Compiled { compiler, ptx } = toolbox.compile(source, target, &flags).map_err(failed)?;
    if !ptx.lines().any(|line| line.trim_start().starts_with(".version")) {
        let what = gpuemu_ptx::Error::ToolFailed(format!("what {compiler} wrote is no PTX, it has no .version"));
        return Err(failed(what));
    }
    let record = Record { digest, compiler, options: kernel.compile_options.join(" ") };
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
    fn toolbox(folder: &Path, body: &str) -> Toolbox {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.join("nvcc");
        let script = format!(
            "#!/bin/sh\n\
             if [ \"$1\" = --version ]; then\n\
             echo 'nvcc: NVIDIA (R) Cuda compiler driver'; echo 'Cuda compilation tools, release 13.5, V13.5.37'; exit\nfi\n\
             while [ \"$1\" != -o ]; do asked=\"$asked $source\"; source=$1; shift; done\nout=$2\n{body}\n"
        );
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Toolbox::new(gpuemu_ptx::vendor::Settings { nvcc: Some(path), ..Default::default() })
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
        let run = |body: &str| update(&kernel, "sm_80", root, &toolbox(tools.path(), body));
        let ptx = root.join("k.sm_80.ptx");

        // One that works: its own comment first, the folder left out, and current from then on.
        let works = "printf '//%s\\n.version 9.5\\n\\t.file\\t1 \"%s\"\\n' \"$asked\" \"$source\" > \"$out\"";
        assert_eq!(run(works).unwrap(), ptx);
        let text = std::fs::read_to_string(&ptx).unwrap();
        let digest = digest(&root.join("k.cu")).unwrap();
        assert_eq!(
            text,
            format!(
                "// gpuemu: source blake2b:{digest} nvcc 13.5 options -O2 -DN=3\n\
                 //  -ptx -arch=sm_80 -lineinfo -O2 -DN=3\n.version 9.5\n\t.file\t1 \"k.cu\"\n"
            )
        );
        assert!(committed::load(&kernel, "sm_80", root, "").is_ok());

        // Those that do not: what they say is shown, and what lies there stays.
        for (body, said) in [
            ("echo 'k.cu(1): error: expected a \";\"' >&2; exit 2", "k.cu(1): error: expected a \";\""),
            ("echo partial > \"$out\"; echo no memory; exit 1", "no memory"),
            ("kill -9 $$", "SIGKILL"),
            ("true", "left no PTX"),
            ("echo garbage > \"$out\"", "it has no .version"),
        ] {
            let error = run(body).unwrap_err();
            assert_eq!(error.code(), "ToolFailed");
            let text_of_error = error.to_string();
            let start = "k.cu was not compiled for sm_80; k.sm_80.ptx stays as it is: ";
            assert!(text_of_error.starts_with(start) && text_of_error.contains(said), "{error}");
            assert_eq!(std::fs::read_to_string(&ptx).unwrap(), text, "{said}");
        }
        let none = update(&kernel, "sm_80", root, &Toolbox::new(Default::default())).unwrap_err();
        assert!(none.to_string().contains("nvcc is needed and not there"), "{none}");
        let files: Vec<_> = std::fs::read_dir(root).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(files.len(), 2, "nothing is left behind: {files:?}");
    }
}
