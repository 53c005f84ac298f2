//! Findings as SARIF 2.1.0, one log for all tests of a run.

use crate::error::{Error, Result};
use crate::files::{alone, write_atomically};
use crate::inspect::finding::{Finding, Place};
use crate::inspect::{lint, policy};
use blake2::digest::consts::U8;
use blake2::{Blake2b, Digest};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// The schema of the format, by its official address.
const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// What one test found.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// The project's name.
    pub project: &'a str,
    /// The test's name.
    pub test: &'a str,
    /// The folder that paths in the log start at.
    pub repository: &'a Path,
    /// What it found, allowed findings among them.
    pub findings: &'a [Finding],
}

/// Puts the findings of one test into a log in place of its earlier ones. Those of other tests stay, unless `is_test`
/// says that the project has no such test any more; those of other projects stay.
///
/// # Errors
///
/// When the file cannot be written. One that cannot be read as a log is written anew.
pub fn record(path: &Path, found: &Found<'_>, is_test: impl Fn(&str) -> bool) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .map_err(|error| Error::File(format!("cannot create {}: {error}", folder.display())))?;
    alone(folder, || {
        let mut results: Vec<Value> = kept(path);
        results.retain(|result| {
            let text = |name: &str| result["properties"][name].as_str().unwrap_or_default();
            text("project") != found.project || (text("test") != found.test && is_test(text("test")))
        });
        results.extend(found.findings.iter().enumerate().map(|(at, finding)| {
            let alike = |other: &&Finding| other.rule == finding.rule && other.message == finding.message;
            let earlier = found.findings[..at].iter().filter(alike).count();
            result(finding, found, earlier)
        }));
        let text = serde_json::to_string_pretty(&log(results)).map_err(|error| Error::Internal(error.to_string()))?;
        write_atomically(path, format!("{text}\n").as_bytes())
    })
}

/// The results of a log that is there.
fn kept(path: &Path) -> Vec<Value> {
    let old: Option<Value> = std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    match old.as_ref().and_then(|log| log.pointer("/runs/0/results")) {
        Some(Value::Array(results)) => results.iter().filter(|result| result["ruleId"].is_string()).cloned().collect(),
        _ => Vec::new(),
    }
}

/// A whole log. The rules are those that its results name.
fn log(mut results: Vec<Value>) -> Value {
    results.sort_by_cached_key(|result| {
        let text = |name: &str| result["properties"][name].as_str().unwrap_or_default().to_owned();
        let line = result.pointer("/locations/0/physicalLocation/region/startLine").and_then(Value::as_u64);
        (text("project"), text("test"), line, result["ruleId"].to_string())
    });
    let names: BTreeSet<&str> = results.iter().filter_map(|result| result["ruleId"].as_str()).collect();
    let rules: Vec<Value> = names.iter().map(|name| rule(name)).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "gpuemu", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
            "results": results,
        }],
    })
}

fn rule(name: &str) -> Value {
    let checks = || policy::RULES.iter().find(|(rule, _)| *rule == name).map(|(_, summary)| (*summary, ""));
    match lint::about(name).or_else(checks) {
        None => json!({ "id": name }),
        Some((summary, "")) => json!({ "id": name, "shortDescription": { "text": summary } }),
        Some((summary, explanation)) => json!({
            "id": name,
            "shortDescription": { "text": summary },
            "fullDescription": { "text": explanation },
        }),
    }
}

/// `earlier`: how many findings of the test say the same and stand before it.
fn result(finding: &Finding, found: &Found<'_>, earlier: usize) -> Value {
    let Found { project, test, repository, .. } = *found;
    let text = format!("{} for {}: {}", finding.kernel, finding.target, finding.message);
    let mut result = json!({
        "ruleId": finding.rule,
        "level": finding.level.name(),
        "message": { "text": text },
        "partialFingerprints": { "gpuemu/v1": fingerprint(&[project, test, finding.rule, &finding.message, &earlier.to_string()]) },
        "properties": { "project": project, "test": test, "kernel": finding.kernel, "target": finding.target },
    });
    if let Some(place) = finding.place() {
        result["locations"] = json!([location(place, repository)]);
    }
    let compiled = finding.source.as_ref().and(finding.ptx.as_ref()).map(|ptx| (ptx, "the compiled instruction"));
    let others = finding.related.iter().map(|related| (&related.place, related.message.as_str()));
    let related: Vec<Value> = (1..)
        .zip(others.chain(compiled))
        .map(|(id, (place, message))| {
            let mut related = location(place, repository);
            related["id"] = json!(id);
            related["message"] = json!({ "text": message });
            related
        })
        .collect();
    if !related.is_empty() {
        result["relatedLocations"] = json!(related);
    }
    if let Some(reason) = &finding.allowed {
        result["suppressions"] = json!([{ "kind": "external", "justification": reason }]);
    }
    result
}

fn location(place: &Place, repository: &Path) -> Value {
    let mut region = json!({ "startLine": place.line.max(1) });
    if place.column > 0 {
        region["startColumn"] = json!(place.column);
    }
    let artifact = match place.file.strip_prefix(repository) {
        Ok(file) => json!({ "uri": uri(file), "uriBaseId": "%SRCROOT%" }),
        Err(_) => json!({ "uri": format!("file://{}", uri(&place.file)) }),
    };
    json!({ "physicalLocation": { "artifactLocation": artifact, "region": region } })
}

/// A path as a URI reference: `/` between its parts, everything else that is not unreserved percent-encoded (RFC 3986).
fn uri(path: &Path) -> String {
    let mut uri = String::new();
    for byte in path.to_string_lossy().replace('\\', "/").bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(byte.into()),
            byte if byte.is_ascii_alphanumeric() => uri.push(byte.into()),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// What tells a finding apart when lines move.
fn fingerprint(parts: &[&str]) -> String {
    let digest = Blake2b::<U8>::digest(parts.join("\0").as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::finding::Level;
    use crate::inspect::finding::tests::finding;
    use std::path::PathBuf;

    fn read(path: &Path) -> Value {
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    }

    /// The rule and the test of each result.
    fn results(path: &Path) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let log = read(path);
        let results = log["runs"][0]["results"].as_array().unwrap();
        results.iter().map(|result| (text(&result["ruleId"]), text(&result["properties"]["test"]))).collect()
    }

    /// A log with everything that one may hold; a validator of its own judges the committed copy by the schema.
    #[test]
    fn the_committed_example_is_current() {
        let root = Path::new("/repository");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lint.sarif");
        // What rules of the lint say of themselves is theirs to change.
        let plain = Finding { rule: "max-spills", ..finding(&root.join("kernels/soft max\u{e9}.cu"), 12, 5) };
        let findings = [
            plain.clone(),
            Finding { allowed: Some("the loop runs once".into()), level: Level::Warning, ..plain.clone() },
            Finding { source: None, rule: "max-registers", ..plain.clone() },
            Finding { source: None, ptx: None, level: Level::Note, ..plain.clone() },
            Finding { source: Some(Place { file: "/usr/include/a.h".into(), line: 3, column: 0 }), ..plain },
        ];
        let found = Found { project: "p", test: "artifact::softmax::sm_80", repository: root, findings: &findings };
        record(&path, &found, |_| true).unwrap();
        let committed = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/lint.sarif");
        let text = std::fs::read_to_string(&path).unwrap().replace(env!("CARGO_PKG_VERSION"), "VERSION");
        assert_eq!(text, std::fs::read_to_string(&committed).unwrap_or_default(), "{}", committed.display());
    }

    #[test]
    fn a_log_is_merged_over_tests_projects_and_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gpuemu/lint.sarif");
        let root = folder.path();
        let one = [finding(&root.join("k.cu"), 1, 1)];
        let put = |project: &str, test: &str, findings: &[Finding], gone: &str| {
            let found = Found { project, test, repository: root, findings };
            record(&path, &found, |test| test != gone).unwrap();
        };
        let named = |tests: &[&str]| -> Vec<(String, String)> {
            tests.iter().map(|test| ("spill-in-loop".to_owned(), (*test).to_owned())).collect()
        };
        put("p", "b", &one, "");
        put("p", "a", &one, "");
        put("q", "c", &one, "");
        assert_eq!(results(&path), named(&["a", "b", "c"]));
        put("p", "a", &one, "");
        assert_eq!(results(&path), named(&["a", "b", "c"]), "no finding twice");
        put("p", "a", &[], "");
        assert_eq!(results(&path), named(&["b", "c"]), "repaired");
        put("p", "a", &[], "b");
        assert_eq!(results(&path), named(&["c"]), "a test that is gone");
        for broken in ["", "{", "{\"runs\": [{\"results\": [3]}]}", "[]"] {
            std::fs::write(&path, broken).unwrap();
            put("p", "a", &one, "");
            assert_eq!(results(&path), named(&["a"]), "{broken}");
        }
    }

    #[test]
    fn threads_at_once_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lint.sarif");
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (path, root) = (&path, folder.path());
                scope.spawn(move || {
                    let findings = [finding(&root.join("k.cu"), 1, 1)];
                    let test = format!("t{thread}");
                    let found = Found { project: "p", test: &test, repository: root, findings: &findings };
                    record(path, &found, |_| true).unwrap();
                });
            }
        });
        assert_eq!(results(&path).len(), 8);
    }
}
