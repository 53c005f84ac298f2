//! Small projects of a user's kind, built by a real cargo.

use crate::programs::program;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The manifest of a package `NAME` with a library `kernels` and a test target `whole` with a main of its own.
pub const MANIFEST: &str = r#"
[package]
name = "NAME"
version = "0.1.0"
edition = "2024"

[lib]
name = "kernels"

[dev-dependencies]
gpuemu-harness = { path = "../gpuemu-harness" }

[[test]]
name = "whole"
harness = false
"#;

/// What gives the crates that a project depends on the features that they have where all of this workspace is tested:
/// with others they would be compiled once more. Without a build script nothing of the latter two is compiled.
const SAME_FEATURES: &str = r#"
[dev-dependencies.divan]
version = "0.1"

[build-dependencies]
serde = "1"
syn = { version = "2", features = ["extra-traits", "visit-mut"] }
"#;

/// A user's package, alone in a copy of this workspace: its members are links to ours, so that cargo finds them compiled
/// as soon as ours are, and nothing but the package itself is built.
pub struct Project {
    folder: PathBuf,
    target: PathBuf,
}

impl Project {
    /// Writes the files of a package below `scratch` (a test's `CARGO_TARGET_TMPDIR`), in place of what an earlier run
    /// left there. `../` leads to the crates of this workspace.
    pub fn new(scratch: &str, name: &str, files: &[(&str, &str)]) -> Project {
        let scratch = Path::new(scratch);
        let root = scratch.join("projects").join(name);
        let _ = fs::remove_dir_all(&root);
        let target = scratch.parent().expect("the scratch folder is in the target folder").to_owned();
        let project = Project { folder: root.join(name), target };
        for (path, text) in files {
            match *path {
                "Cargo.toml" => project.write(path, &format!("{text}{SAME_FEATURES}")),
                _ => project.write(path, text),
            }
        }
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        fs::copy(workspace.join("Cargo.lock"), root.join("Cargo.lock")).unwrap();
        let manifest = fs::read_to_string(workspace.join("Cargo.toml")).unwrap();
        let (_, members) = manifest.split_once("members = [").expect("a list of members");
        let (members, _) = members.split_once(']').expect("its end");
        for member in members.split(',').map(|member| member.trim().trim_matches('"')) {
            link(&workspace.join(member), &root.join(member));
        }
        let manifest = manifest.replacen("members = [", &format!("members = [\"{name}\", "), 1);
        fs::write(root.join("Cargo.toml"), manifest).unwrap();
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

/// Makes `at` lead to a folder.
fn link(folder: &Path, at: &Path) {
    #[cfg(unix)]
    let made = std::os::unix::fs::symlink(folder, at);
    #[cfg(windows)]
    let made = std::os::windows::fs::symlink_dir(folder, at);
    made.unwrap_or_else(|error| panic!("cannot link {}: {error}", at.display()));
}
