//! Constant expressions. The values are those that ptxas 12.9 puts into the data of a `.global .u64` or `.f64`, but for
//! the few that it refuses and the ISA allows.

use gpuemu_ptx::parse::{Operand, Statement};

use super::{body, in_entry, tree};

fn value(expression: &str) -> Operand<'static> {
    let text = in_entry(&format!("mov.b64 %rd1, {expression};"));
    let module = tree(&text);
    let body = body(&module);
    let [Statement::Instruction(instruction)] = &body.statements[..] else { panic!("{expression}: {body:?}") };
    match &body.operands[instruction.operands.start as usize..instruction.operands.end as usize] {
        [Operand::Name("%rd1"), Operand::Integer { bits, unsigned }] => {
            Operand::Integer { bits: *bits, unsigned: *unsigned }
        }
        [Operand::Name("%rd1"), Operand::Float64(bits)] => Operand::Float64(*bits),
        [Operand::Name("%rd1"), Operand::Float32(bits)] => Operand::Float32(*bits),
        other => panic!("{expression}: {other:?}"),
    }
}

#[test]
fn integers() {
    let table: &[(&str, i64)] = &[
        ("5", 5),
        ("((5))", 5),
        ("017", 15),
        ("0b101", 5),
        ("0b101U", 5),
        ("0x1FU", 31),
        ("0X1f", 31),
        ("18446744073709551615", -1),
        ("1+2*3", 7),
        ("10 - 2 - 3", 5),
        ("100 / 10 / 5", 2),
        ("2 + 3 << 1", 10),
        ("2*-3", -6),
        ("- - 1", 1),
        ("-+5", -5),
        ("+ - + 5", -5),
        ("-5U", -5),
        ("~-1", 0),
        ("!5", 0),
        ("!0", 1),
        ("-!0", -1),
        ("!!5", 1),
        // A remainder is unsigned, operands and result.
        ("-1 % 10", 5),
        ("7 % -3", 7),
        ("-7 % 3", 0),
        ("((-1 % 10) - 6) < 0", 0),
        ("((1 % 10) - 6) >> 63", 1),
        ("-7 / 2", -3),
        ("-7 / 2U", 0x7fff_ffff_ffff_fffc),
        // Which operands are signed shows in what a right shift fills in, and in comparisons with 0.
        ("(-1 & -1) >> 63", -1),
        ("(-1 & -1) < 0", 1),
        ("(-1 | 0) >> 63", -1),
        ("(-1 ^ 0) >> 63", -1),
        ("-1 & 1U", 1),
        ("~0 >> 63", 1),
        ("~0 < 0", 0),
        ("~5 < 0", 0),
        ("-1 >> 1", -1),
        ("-1U >> 1", i64::MAX),
        ("0xfabc123400000000 >> 60", 15),
        ("-0xfabc123400000000 >> 60", 0),
        ("(1<<63) >> 63", -1),
        ("(1<<2U) - 5 < 0", 1),
        ("(1U<<2) - 5 < 0", 0),
        ("(.s64)0xffffffffffffffff >> 63", -1),
        ("(.u64)-1 >> 63", 1),
        ("(.s64)-1 % 10", 5),
        ("1U - 2", -1),
        ("(1U-2) < 0", 0),
        ("1 - 2 < 0", 1),
        ("!5U - 1 < 0", 1),
        ("(1U < 2U) - 2 < 0", 1),
        ("(1U && 2U) - 2 < 0", 1),
        ("0x7fffffffffffffff + 1 < 0", 1),
        // Shifts go as far as the low six bits of their second operand say.
        ("1 << 63", i64::MIN),
        ("1 << 64", 1),
        ("1 << 65", 2),
        ("1 << -1", i64::MIN),
        ("-1 >> 64", -1),
        ("-1 >> 200", -1),
        ("-1U >> 64", -1),
        ("-1 < 1U", 0),
        ("-1 < 1", 1),
        ("-1 == 0xffffffffffffffff", 1),
        ("1 < 2 < 3", 1),
        ("5 > 4 > 3", 0),
        ("1==1==1", 1),
        ("1 || 0 && 0", 1),
        ("1 | 2 ^ 3 & 4", 3),
        ("1 ? 2 : 0 ? 4 : 5", 2),
        ("0 ? 2 : 0 ? 4 : 5", 5),
        ("1 ? 0 ? 3 : 4 : 5", 4),
        ("1 ? 2 : 3U", 2),
        ("1 ? 2.5 < 3.0 : 1", 1),
        ("1.5 < 2.0", 1),
        ("1.0 == 1.0", 1),
        ("1.5 * 2.0 == 3.0", 1),
        ("1.0 > 0.5 ? 7 : 8", 7),
        ("WARP_SZ", 32),
        ("-WARP_SZ", -32),
        ("!WARP_SZ", 0),
        ("WARP_SZ*2+1", 65),
        ("1 + WARP_SZ", 33),
        ("4//2\n", 4),
        ("4/2", 2),
    ];
    for &(expression, right) in table {
        let Operand::Integer { bits, .. } = value(expression) else { panic!("{expression}") };
        assert_eq!(bits as i64, right, "{expression}");
    }
}

#[test]
fn which_integers_are_unsigned() {
    for (expression, right) in [
        ("5", false),
        ("-5", false),
        ("5U", true),
        ("-5U", true),
        ("~5", true),
        ("0x7fffffffffffffff", false),
        ("0x8000000000000000", true),
        ("1 + 1U", true),
        ("1 - 1", false),
        ("1U == 1U", false),
        ("(.s64)1U", false),
        ("(.u64)1", true),
        ("5 % 3", true),
        // The usual conversions: both sides decide.
        ("1 ? 2 : 3U", true),
        ("0 ? 2U : 3", true),
    ] {
        let Operand::Integer { unsigned, .. } = value(expression) else { panic!("{expression}") };
        assert_eq!(unsigned, right, "{expression}");
    }
}

#[test]
fn floats() {
    let table: &[(&str, f64)] = &[
        ("1.5", 1.5),
        ("1.5+2.5*2.0", 6.5),
        ("-0d3FF0000000000000", -1.0),
        ("0D3ff0000000000000", 1.0),
        ("1e3", 1000.0),
        ("1.e3", 1000.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("1E+2", 100.0),
        ("-0.0", -0.0),
        ("- -1.5", 1.5),
        // Of the ISA; ptxas wants integers here.
        ("1 ? 1.5 : 2.5", 1.5),
    ];
    for &(expression, right) in table {
        assert_eq!(value(expression), Operand::Float64(right.to_bits()), "{expression}");
    }
    // A NaN keeps its bits.
    assert_eq!(value("0d7FF0000000000001"), Operand::Float64(0x7ff0_0000_0000_0001));
    assert_eq!(value("0f7F800001"), Operand::Float32(0x7f80_0001));
    assert_eq!(value("0F3f800000"), Operand::Float32(0x3f80_0000));
}
