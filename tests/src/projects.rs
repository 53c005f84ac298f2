//! Small projects of a user's kind, built by a real cargo.

use crate::programs::program;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The manifest of a package `NAME` with a library `kernels` and a test target `whole` with a main of its own.
pub const MANIFEST: &str = concat!(
    r#"
[package]
name = "NAME"
version = "0.1.0"
edition = "2024"

[lib]
name = "kernels"

[dev-dependencies]
gpuemu-harness = { path = ""#,
    env!("CARGO_MANIFEST_DIR"),
    r#"/../gpuemu-harness" }

[[test]]
name = "whole"
harness = false

[profile.dev]
opt-level = 1
debug = "line-tables-only"

[workspace]
"#
);

/// A package of its own, outside of this workspace.
pub struct Project {
    folder: PathBuf,
    target: PathBuf,
}

impl Project {
    /// Writes the files of a package below `scratch` (a test's `CARGO_TARGET_TMPDIR`), in place of what an earlier run
    /// left there. What is compiled is shared with this workspace, so that only the package itself is built anew.
    pub fn new(scratch: &str, name: &str, files: &[(&str, &str)]) -> Project {
        let scratch = Path::new(scratch);
        let folder = scratch.join("projects").join(name);
        let _ = fs::remove_dir_all(&folder);
        let target = scratch.parent().expect("the scratch folder is in the target folder").to_owned();
        let project = Project { folder, target };
        files.iter().for_each(|(path, text)| project.write(path, text));
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        fs::copy(workspace.join("Cargo.lock"), project.folder.join("Cargo.lock")).unwrap();
        project
    }

    /// The package's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes or replaces one of its files.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// cargo in its folder.
    pub fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        self.prepare(&mut command);
        command.args(arguments);
        command
    }

    /// A line of a POSIX shell in its folder, as a person would paste it.
    pub fn shell(&self, line: &str) -> Command {
        let mut command = program("sh");
        self.prepare(&mut command);
        command.args(["-c", line]);
        command
    }

    fn prepare(&self, command: &mut Command) {
        command.current_dir(&self.folder).env("CARGO_TARGET_DIR", &self.target);
        command.env("CARGO_NET_OFFLINE", "true").env("CARGO_TERM_COLOR", "never");
    }
}
