//! The front that a run belongs to: how its user starts it again, and where its files go.

use crate::case::spec::Spec;
use crate::environment::test_target;
use crate::error::Result;
use crate::report::results;
use gpuemu_contract::TestName;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

/// What a run says to its user, and asks, in the words of the tool that started it.
pub trait Front: Debug + Send + Sync {
    /// The command that runs one case in its test. `declared`: the test is listed without `GPUEMU_STRATEGIES`.
    fn replay(&self, spec: &Spec, declared: bool) -> String;

    /// The command that runs one test alone.
    fn rerun(&self, test: &str) -> String;

    /// What gives the spec of one case.
    fn case_source(&self) -> &'static str;

    /// How something is bound that computes an op, fit to follow "nothing computes op `x`: ".
    fn way_to_bind(&self, op: &str) -> String;

    /// The folder of files that may be deleted at any time. `root` is that of the contract.
    fn folder(&self, root: &Path) -> PathBuf;

    /// What makes a run leave snapshots that differ to be reviewed, as `.snap.new`.
    fn review_snapshots(&self) -> &'static str {
        "INSTA_UPDATE=new"
    }

    /// What makes a run accept snapshots that differ.
    fn accept_snapshots(&self) -> &'static str {
        "INSTA_UPDATE=always"
    }

    /// Case `case` of `cases` of a test comes next.
    fn progress(&self, test: &TestName, case: u32, cases: u32) {
        let _ = (test, case, cases);
    }

    /// Asked after each run of a subject, and while a compiled kernel runs:
    /// [`Error::Interrupted`](crate::Error::Interrupted) ends the test without a verdict.
    fn go_on(&self) -> Result<()> {
        Ok(())
    }
}

/// `cargo test`.
#[derive(Clone, Copy, Debug)]
pub struct Cargo;

fn target() -> String {
    test_target().map_or(String::new(), |target| format!("--test {target} "))
}

impl Front for Cargo {
    fn replay(&self, spec: &Spec, declared: bool) -> String {
        // A test that only GPUEMU_STRATEGIES has listed is there again only with it.
        let strategies = match declared {
            true => String::new(),
            false => format!("GPUEMU_STRATEGIES={} ", spec.test.strategy),
        };
        format!("{strategies}GPUEMU_CASE='{spec}' cargo test {}-- --exact {}", target(), spec.test)
    }

    fn rerun(&self, test: &str) -> String {
        format!("cargo test {}-- --exact {test}", target())
    }

    fn case_source(&self) -> &'static str {
        "GPUEMU_CASE"
    }

    fn way_to_bind(&self, op: &str) -> String {
        format!(
            "bind a function with #[gpuemu_harness::op(\"{op}\")] in this test binary, or give the op an `op_script`"
        )
    }

    fn folder(&self, root: &Path) -> PathBuf {
        results::target_folder(root)
    }
}
