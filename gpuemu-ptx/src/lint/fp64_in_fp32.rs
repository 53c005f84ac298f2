//! `fp64-in-fp32`.

use super::context::Context;
use super::rule::{Finding, Rule, Severity};
use crate::metrics::Class;
use crate::program::{Form, Opcode, Operand, ScalarType};

pub(super) const RULE: Rule = Rule {
    name: "fp64-in-fp32",
    summary: "double-precision arithmetic in a kernel whose data holds no doubles",
    severity: Severity::Warning,
    explanation: "A constant without its `f` (`x * 0.5`) or a function of doubles (`sqrt`, `pow` for `sqrtf`, `powf`) makes \
                  the compiler calculate in double precision, at 1/2 to 1/64 of the speed. The rule speaks where doubles are \
                  added, multiplied or compared and none is loaded from memory or stored to it. Conversions alone, as \
                  `printf` needs them, and the one product with which `sinf` reduces large arguments are no finding.",
};

/// 2^-64 times pi/2: CUDA's `sinf` and `cosf` multiply by it, in double precision, to reduce large arguments.
const SINE_REDUCTION: u64 = 0x3BF9_21FB_5444_2D19;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    // Smaller floats have a part: arithmetic in them, or conversions of them.
    let converts = |form: &Form| {
        let smaller = [ScalarType::F32, ScalarType::F16, ScalarType::Bf16].iter().any(|ty| form.types.contains(ty));
        form.opcode == Opcode::Cvt && form.types.contains(&ScalarType::F64) && smaller
    };
    let mixed = context.metrics.singles.instructions > 0 || context.instructions().any(|(_, _, form)| converts(form));
    if context.metrics.double_data || !mixed {
        return;
    }
    for (index, instruction, form) in context.instructions() {
        if Class::of(form) != Class::Double {
            continue;
        }
        let operands = context.function.operands_of(instruction);
        if operands.iter().any(|operand| matches!(operand, Operand::Float64(SINE_REDUCTION))) {
            continue;
        }
        let constant = operands.iter().find_map(|operand| match operand {
            Operand::Float64(bits) => Some(f64::from_bits(*bits)),
            _ => None,
        });
        let advice = match constant {
            Some(constant) => format!("write the constant {constant} as a float"),
            None => "use the float form of the function or constant".to_owned(),
        };
        let message = format!(
            "`{}` calculates in double precision, though the kernel loads and stores no doubles: {advice}",
            form.text
        );
        findings.push(context.finding(&RULE, index, message));
    }
}
