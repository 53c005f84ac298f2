//! The tests of a project: what each name stands for, and the list of all.

use super::ProjectSuite;
use crate::report::regressions;
use crate::suite::TestEntry;
use gpuemu_contract::{DType, KERNEL, Strategy, TestName};
use std::path::PathBuf;

/// What a name of the list stands for.
pub(super) enum Entry {
    /// `softmax::float32::boundary`, `kernel::row_softmax::float32::boundary`
    Test(TestName),
    /// `softmax::regressions`: all of an op, for the door whose tests are fixed when it is compiled.
    Regressions(String),
    /// `softmax::regressions::9f3c5a`
    Regression(PathBuf),
    /// `accuracy::softmax::float32`, `accuracy::kernel::row_softmax::float32`
    Accuracy(String, DType),
    /// `artifact::softmax_rows::sm_80`
    Artifact(String, String),
}

impl ProjectSuite {
    /// What a name stands for.
    pub(super) fn entry(&self, name: &str) -> Option<Entry> {
        let contract = self.session.contract();
        if let Some(test) = contract.test(name) {
            return Some(Entry::Test(test));
        }
        let mut parts = name.split("::");
        match (parts.next()?, parts.next()?, parts.next(), parts.next()) {
            ("accuracy", KERNEL, Some(kernel), Some(dtype)) if contract.policies.accuracy && parts.next().is_none() => {
                let op = contract.op_of(contract.kernel(kernel)?)?;
                let dtype = *op.dtypes.iter().find(|known| known.name() == dtype)?;
                Some(Entry::Accuracy(op.tested_as(), dtype))
            }
            ("accuracy", op, Some(dtype), None) if contract.policies.accuracy => {
                let dtype = *contract.op(op)?.dtypes.iter().find(|known| known.name() == dtype)?;
                Some(Entry::Accuracy(op.to_owned(), dtype))
            }
            ("artifact", kernel, Some(target), None) => {
                let target = contract.kernel(kernel)?.targets.iter().find(|known| *known == target)?;
                Some(Entry::Artifact(kernel.to_owned(), target.clone()))
            }
            _ => {
                let (op, id) = name.split_once("::regressions")?;
                match id.strip_prefix("::") {
                    None if id.is_empty() => Some(Entry::Regressions(op.to_owned()))
                        .filter(|_| self.session.op(op).is_ok() || regressions::list(contract.root(), op).is_err()),
                    None => None,
                    Some(id) => {
                        let path = regressions::folder(op).join(format!("{id}.toml"));
                        contract.root().join(&path).is_file().then_some(Entry::Regression(path))
                    }
                }
            }
        }
    }

    /// Every test, by name.
    pub(super) fn list(&self) -> Vec<TestEntry> {
        let contract = self.session.contract();
        let mut tests: Vec<TestEntry> =
            contract.tests().into_iter().map(|test| self.listed(test.to_string(), &Entry::Test(test))).collect();
        tests.extend(self.regressions());
        if contract.policies.accuracy {
            let own = contract.kernels.iter().filter_map(|kernel| contract.op_of(kernel));
            for op in contract.ops.iter().cloned().chain(own) {
                for dtype in &op.dtypes {
                    let name = format!("accuracy::{}::{dtype}", op.tested_as());
                    tests.push(self.listed(name, &Entry::Accuracy(op.tested_as(), *dtype)));
                }
            }
        }
        tests.extend(self.kernels());
        tests.sort_by(|a, b| a.name.cmp(&b.name));
        tests
    }

    /// A name as it is listed.
    pub(super) fn listed(&self, name: String, entry: &Entry) -> TestEntry {
        let cannot_run = match entry {
            Entry::Test(test) => self.session.left_out(test.dtype).or_else(|| match test.kernel() {
                None => self.session.computed_by_kernel(&test.op),
                Some(_) => self.session.not_executed(test),
            }),
            Entry::Accuracy(op, dtype) => self.session.left_out(*dtype).or_else(|| {
                let test = TestName { op: op.clone(), dtype: *dtype, strategy: Strategy::Default };
                match test.kernel() {
                    None => self.session.computed_by_kernel(op),
                    Some(_) => self.session.not_executed(&test),
                }
            }),
            Entry::Regressions(_) | Entry::Regression(_) | Entry::Artifact(..) => None,
        };
        TestEntry { name, cannot_run, regression: matches!(entry, Entry::Regression(_) | Entry::Regressions(_)) }
    }

    /// Saved failures, those of ops that are gone too: a file that no test reads would be lost without a word. What
    /// cannot be listed is a test that fails with the reason.
    fn regressions(&self) -> Vec<TestEntry> {
        let root = self.session.contract().root();
        let mut entries = Vec::new();
        let unlisted = |op: &str| self.listed(format!("{op}::regressions"), &Entry::Regressions(op.to_owned()));
        let Ok(ops) = regressions::ops(root) else {
            return self.session.contract().ops.iter().map(|op| unlisted(&op.name)).collect();
        };
        for op in ops {
            let Ok(paths) = regressions::list(root, &op) else {
                entries.push(unlisted(&op));
                continue;
            };
            for path in paths {
                let id = path.file_stem().unwrap_or_default().to_string_lossy();
                entries.push(self.listed(format!("{op}::regressions::{id}"), &Entry::Regression(path.clone())));
            }
        }
        entries
    }

    /// Tests of compiled kernels. What a kernel leaves open is a test that is ignored with the reason.
    pub(super) fn kernels(&self) -> Vec<TestEntry> {
        let contract = self.session.contract();
        let mut entries = Vec::new();
        for kernel in &contract.kernels {
            for target in &kernel.targets {
                let entry = Entry::Artifact(kernel.name.clone(), target.clone());
                entries.push(self.listed(format!("artifact::{}::{target}", kernel.name), &entry));
            }
            if kernel.targets.is_empty() && kernel.source.is_some() {
                entries.push(TestEntry {
                    name: format!("artifact::{}", kernel.name),
                    cannot_run: Some("no `targets` in its [kernels.artifact_checks]".to_owned()),
                    regression: false,
                });
            }
            if kernel.op.is_some() || kernel.reference.is_none() {
                continue;
            }
            for dtype in &kernel.dtypes {
                for strategy in &contract.validation.strategies {
                    if strategy.selects().is_none() {
                        entries.push(TestEntry {
                            name: format!("kernel::{}::{dtype}::{strategy}", kernel.name),
                            cannot_run: Some(
                                "it names no `op`, so nothing says what its tensors are: write an [[ops]] with their schema, \
                                 `op = ...` and a [kernels.launch]"
                                    .to_owned(),
                            ),
                            regression: false,
                        });
                    }
                }
            }
        }
        for test in contract.kernel_tests() {
            entries.push(self.listed(test.to_string(), &Entry::Test(test)));
        }
        for kernel in &contract.kernels {
            let Some(op) = kernel.op.as_deref().and_then(|op| contract.op(op)) else { continue };
            let takes_views = contract.op_of(kernel).is_some_and(|own| own.strategies.contains(&Strategy::Layout));
            if op.strategies.contains(&Strategy::Layout) && !takes_views {
                entries.extend(kernel.dtypes.iter().map(|dtype| {
                    TestEntry {
                        name: format!("{KERNEL}::{}::{dtype}::{}", kernel.name, Strategy::Layout),
                        cannot_run: Some(
                            "no launch passes strides: inputs lie in row order where they declare no other `layouts`"
                                .to_owned(),
                        ),
                        regression: false,
                    }
                }));
            }
        }
        entries
    }
}
