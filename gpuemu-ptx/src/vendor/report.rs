//! What `ptxas -v` prints, as figures.

use std::collections::BTreeMap;

/// Everything that one run printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PtxasOutput {
    /// Every entry, in ptxas's order.
    pub entries: Vec<EntryReport>,
    /// Every function that is no entry and was not inlined everywhere.
    pub functions: Vec<FunctionReport>,
    /// Bytes of `.global` variables of the module.
    pub global_bytes: u64,
    /// Warnings, and notes that have a number (`C7510`, serialised wgmma, say).
    pub warnings: Vec<Diagnostic>,
    /// Errors.
    pub errors: Vec<Diagnostic>,
}

/// Resources of one entry. Registers of 32 bits, sizes in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryReport {
    /// Its (mangled) name.
    pub name: String,
    /// The target it was assembled for.
    pub target: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes written to local memory by the instructions that ptxas added, a thread, counted statically.
    pub spill_stores: u32,
    /// Bytes read back by such instructions.
    pub spill_loads: u32,
    /// Stack of the entry itself, a thread; spills live there too.
    pub stack_frame: u32,
    /// Stack of the entry and of what it calls; nothing where ptxas names none or cannot know it.
    pub cumulative_stack: Option<u32>,
    /// Static shared memory of a block.
    pub shared: u32,
    /// Named barriers.
    pub barriers: u32,
    /// Bytes of every constant bank that ptxas names (none from sm_90 on).
    pub constants: BTreeMap<u32, u32>,
}

/// Resources of a function that is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionReport {
    /// Its (mangled) name.
    pub name: String,
    /// Bytes of its stack frame.
    pub stack_frame: u32,
    /// As for entries.
    pub spill_stores: u32,
    /// As for entries.
    pub spill_loads: u32,
}

/// A warning or an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Line of the PTX text, from 1, where one is named.
    pub line: Option<u32>,
    /// What it says.
    pub message: String,
}

impl PtxasOutput {
    /// The figures of one entry.
    pub fn entry(&self, name: &str) -> Option<&EntryReport> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// Reads what ptxas printed on standard error (or output). Lines that are not understood are passed over.
    pub fn read(text: &str) -> PtxasOutput {
        let mut output = PtxasOutput::default();
        // The entry that is being reported on, and what "Function properties" was last said of.
        let mut open: Option<EntryReport> = None;
        let mut properties_of = String::new();
        for line in text.lines() {
            if let Some((level, at, message)) = message_of(line) {
                match level {
                    "info" => {
                        if let Some((name, target)) = quoted_pair(message, "Compiling entry function ") {
                            output.entries.extend(open.take());
                            open = Some(EntryReport { name, target, ..EntryReport::default() });
                        } else if let Some(name) = message.strip_prefix("Function properties for ") {
                            properties_of = name.trim().to_owned();
                        } else if message.starts_with("Used ") {
                            if let Some(entry) = &mut open {
                                used(entry, message);
                            }
                        } else if message.starts_with('(') {
                            output.warnings.push(Diagnostic { line: at, message: message.to_owned() });
                        } else if let Some(bytes) =
                            counts(message).find_map(|(n, what)| (what == "bytes gmem").then_some(n))
                        {
                            output.global_bytes = bytes;
                        }
                    }
                    "warning" => output.warnings.push(Diagnostic { line: at, message: message.to_owned() }),
                    _ => output.errors.push(Diagnostic { line: at, message: message.to_owned() }),
                }
            } else if line.contains("bytes stack frame") {
                let mut function = FunctionReport { name: properties_of.clone(), ..FunctionReport::default() };
                for (count, what) in counts(line.trim()) {
                    match what {
                        "bytes stack frame" => function.stack_frame = small(count),
                        "bytes spill stores" => function.spill_stores = small(count),
                        "bytes spill loads" => function.spill_loads = small(count),
                        _ => {}
                    }
                }
                match &mut open {
                    Some(entry) if entry.name == function.name => {
                        entry.stack_frame = function.stack_frame;
                        entry.spill_stores = function.spill_stores;
                        entry.spill_loads = function.spill_loads;
                    }
                    _ => output.functions.push(function),
                }
            }
        }
        output.entries.extend(open);
        output
    }
}

/// "Used 40 registers, used 1 barriers, 256 bytes cumulative stack size, 1024 bytes smem, 364 bytes cmem[0]"
fn used(entry: &mut EntryReport, message: &str) {
    for (count, what) in counts(message) {
        let count = small(count);
        match what {
            "registers" => entry.registers = count,
            "barriers" => entry.barriers = count,
            "bytes smem" => entry.shared = count,
            "bytes cumulative stack size" => entry.cumulative_stack = Some(count),
            _ => {
                let bank = what.strip_prefix("bytes cmem[").and_then(|rest| rest.strip_suffix(']'));
                if let Some(bank) = bank.and_then(|bank| bank.parse().ok()) {
                    entry.constants.insert(bank, count);
                }
            }
        }
    }
}

/// Every "<number> <what>" between commas; "used" before a number is passed over.
fn counts(message: &str) -> impl Iterator<Item = (u64, &str)> {
    message.split(',').filter_map(|part| {
        let part = part.trim();
        let part = part.strip_prefix("Used ").or_else(|| part.strip_prefix("used ")).unwrap_or(part);
        let (number, what) = part.split_once(' ')?;
        // "4096+0 bytes smem" names the static part and what the system adds to it.
        let sum = number.split('+').map(|term| term.parse::<u64>().ok()).sum::<Option<u64>>()?;
        Some((sum, what.trim()))
    })
}

fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// `'name' for 'target'` behind a prefix.
fn quoted_pair(message: &str, prefix: &str) -> Option<(String, String)> {
    let rest = message.strip_prefix(prefix)?.strip_prefix('\'')?;
    let (name, rest) = rest.split_once('\'')?;
    let target = rest.split('\'').nth(1)?;
    Some((name.to_owned(), target.to_owned()))
}

/// Level, line of the PTX and text of "ptxas info    : text", "ptxas-blackwell file.ptx, line 9; fatal   : text".
fn message_of(line: &str) -> Option<(&str, Option<u32>, &str)> {
    let (head, message) = line.split_once(" : ").or_else(|| line.split_once(": "))?;
    let (before, level) = head.trim_end().rsplit_once(' ')?;
    let level = ["info", "warning", "error", "fatal"].into_iter().find(|known| *known == level)?;
    let at = before.trim_end().strip_suffix(';').and_then(|place| {
        let (_, number) = place.rsplit_once(", line ")?;
        number.trim().parse().ok()
    });
    Some((level, at, message.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Printed by ptxas 13.5 for a file of three entries and a function, and read by eye.
    const PRINTED: &str = "\
ptxas info    : 24 bytes gmem, 40 bytes cmem[3]
ptxas info    : Compiling entry function 'spill' for 'sm_80'
ptxas info    : Function properties for spill
    1104 bytes stack frame, 1464 bytes spill stores, 1492 bytes spill loads
ptxas info    : Used 64 registers, used 0 barriers, 1104 bytes cumulative stack size, 364 bytes cmem[0]
ptxas info    : Compile time = 84.372 ms
ptxas info    : Compiling entry function 'red' for 'sm_80'
ptxas info    : Function properties for red
    256 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 256 bytes cumulative stack size, 1024 bytes smem, 364 bytes cmem[0], 8 bytes cmem[2]
ptxas info    : Compile time = 30.971 ms
ptxas info    : Function properties for _Z6helperPfi
    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Compiling entry function 'saxpy' for 'sm_80'
ptxas info    : Function properties for saxpy
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers
";

    #[test]
    fn figures_of_every_entry_and_function() {
        let output = PtxasOutput::read(PRINTED);
        let entry = |name: &str| EntryReport { name: name.into(), target: "sm_80".into(), ..EntryReport::default() };
        assert_eq!(
            output.entries,
            [
                EntryReport {
                    registers: 64,
                    spill_stores: 1464,
                    spill_loads: 1492,
                    stack_frame: 1104,
                    cumulative_stack: Some(1104),
                    constants: [(0, 364)].into(),
                    ..entry("spill")
                },
                EntryReport {
                    registers: 40,
                    stack_frame: 256,
                    cumulative_stack: Some(256),
                    shared: 1024,
                    barriers: 1,
                    constants: [(0, 364), (2, 8)].into(),
                    ..entry("red")
                },
                EntryReport { registers: 10, ..entry("saxpy") },
            ]
        );
        let helper = FunctionReport { name: "_Z6helperPfi".into(), stack_frame: 8, spill_stores: 4, spill_loads: 12 };
        assert_eq!(output.functions, [helper]);
        assert_eq!((output.global_bytes, output.warnings.len(), output.errors.len()), (24, 0, 0));
        assert_eq!(output.entry("red").map(|entry| entry.shared), Some(1024));
        assert_eq!(output.entry("re"), None);
    }

    #[test]
    fn messages_have_a_level_a_line_and_a_text() {
        for (line, expected) in [
            ("ptxas info    : Used 3 registers", Some(("info", None, "Used 3 registers"))),
            ("ptxas-blackwell info    : 0 bytes gmem", Some(("info", None, "0 bytes gmem"))),
            (
                "ptxas module.ptx, line 9; fatal   : Unsupported .version 9.5; current version is '8.8'",
                Some(("fatal", Some(9), "Unsupported .version 9.5; current version is '8.8'")),
            ),
            (
                "ptxas a b, line 3;x.ptx, line 12; error   : Unknown symbol 'a : b'",
                Some(("error", Some(12), "Unknown symbol 'a : b'")),
            ),
            (
                "ptxas warning : Stack size cannot be determined",
                Some(("warning", None, "Stack size cannot be determined")),
            ),
            ("    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads", None),
            ("Segmentation fault", None),
            ("", None),
        ] {
            assert_eq!(message_of(line), expected, "{line}");
        }
    }

    #[test]
    fn notes_with_a_number_are_warnings() {
        let text = "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized";
        let warnings = PtxasOutput::read(text).warnings;
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].message.starts_with("(C7510)"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn anything_is_read(text in "(ptxas |info|error|fatal| : |, line |;|Used |'|[0-9+]{1,25}|,| bytes |cmem\\[|\n|é|Compiling entry function |Function properties for )*") {
            PtxasOutput::read(&text);
        }
    }
}
