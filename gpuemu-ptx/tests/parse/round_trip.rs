//! A module that is printed and read again is the same module.

use gpuemu_ptx::parse::{Item, Statement, parse, parse_bytes};

use super::EVERYTHING;

#[test]
fn the_whole_syntax() {
    let module = parse(EVERYTHING).unwrap_or_else(|error| panic!("{error}"));
    let text = module.to_string();
    let again = parse(&text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    assert!(again.same_but_for_offsets(&module), "{text}");
    assert_eq!(again.to_string(), text);
    assert!(again != module, "the offsets are others");
}

#[test]
fn a_difference_is_seen() {
    let module = parse(EVERYTHING).unwrap();
    for (from, to) in [
        ("bar.sync 	0", "bar.sync 	1"),
        (".maxnreg 64", ".maxnreg 65"),
        ("@!%p1", "@%p1"),
        ("[%rd1+-4]", "[%rd1+4]"),
        ("inlined_at 2 30 6", "inlined_at 2 30 7"),
        (".b8 17", ".b8 18"),
        ("kernel_param_3", "kernel_param_4"),
    ] {
        let text = EVERYTHING.replacen(from, to, 1);
        assert_ne!(text, EVERYTHING, "{from}");
        assert!(!parse(&text).unwrap().same_but_for_offsets(&module), "{from}");
    }
}

#[test]
fn offsets_point_at_what_they_are_of() {
    let module = parse(EVERYTHING).unwrap();
    let begins = |offset: u32, with: &str| assert!(EVERYTHING[offset as usize..].starts_with(with), "{with}");
    let mut seen = 0;
    for item in &module.items {
        match item {
            Item::Variable(variable) => {
                begins(variable.offset, ".");
                assert!(EVERYTHING[variable.offset as usize..].split(';').next().unwrap().contains(variable.name));
            }
            Item::Function(function) => {
                begins(function.offset, ".");
                for statement in function.body.iter().flat_map(|body| &body.statements) {
                    match statement {
                        Statement::Instruction(instruction) if instruction.guard.is_some() => {
                            begins(instruction.offset, "@");
                        }
                        Statement::Instruction(instruction) => begins(instruction.offset, instruction.opcode),
                        Statement::Label(label) => begins(label.offset, label.name),
                        Statement::Variable(variable) => begins(variable.offset, "."),
                        _ => continue,
                    }
                    seen += 1;
                }
            }
            _ => {}
        }
    }
    assert!(seen > 70, "{seen}");
}

#[test]
fn the_bytes_of_a_file() {
    let module = parse(EVERYTHING).unwrap();
    // NVRTC counts the NUL behind its PTX; a Windows editor puts a mark before it.
    for bytes in [
        EVERYTHING.as_bytes().to_vec(),
        [EVERYTHING.as_bytes(), b"\0"].concat(),
        [b"\xEF\xBB\xBF", EVERYTHING.as_bytes()].concat(),
        EVERYTHING.replace('\n', "\r\n").into_bytes(),
    ] {
        let again = parse_bytes(&bytes).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.items.len(), module.items.len());
    }
}
