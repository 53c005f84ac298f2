//! Expressions and conditions: values, messages, and what holds of any text and any tree.

use gpuemu_contract::expression::{Comparison, Function};
use gpuemu_contract::{Condition, Expression};
use proptest::prelude::*;

fn bindings() -> Vec<(String, i64)> {
    [("B", 2), ("S", 7), ("H", 128), ("axis", -1), ("causal", 1), ("min", 5)].map(|(n, v)| (n.to_owned(), v)).into()
}

#[test]
fn values() {
    for (text, value) in [
        ("3", 3),
        (" H ", 128),
        ("B*S", 14),
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 3 - 2", 5),
        ("100 / 10 / 2", 5),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("7 % 4 * 2", 6),
        ("- -3", 3),
        ("-(2 + 1)", -3),
        ("2 - -axis", 1),
        ("ceil_div(H, 100)", 2),
        ("ceil_div(128, 128)", 1),
        ("ceil_div(0, 4)", 0),
        ("ceil_div(-7, 2)", -3),
        ("ceil_div(7, -2)", -3),
        ("ceil_div(-7, -2)", 4),
        ("next_pow2(S)", 8),
        ("next_pow2(8)", 8),
        ("next_pow2(0)", 1),
        ("next_pow2(-5)", 1),
        ("min(S, B, 3)", 2),
        ("max(S, B, 3)", 7),
        ("min", 5),
        ("max(min, 1)", 5),
        ("true + false", 1),
        ("-9223372036854775808", i64::MIN),
        ("9223372036854775807", i64::MAX),
    ] {
        let found = Expression::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).evaluate(&bindings());
        assert_eq!(found, Ok(value), "{text}");
    }
}

#[test]
fn conditions() {
    for (text, holds) in [
        ("H % 2 == 0", true),
        ("H <= 127", false),
        ("S != 7", false),
        ("B < S and S < H", true),
        ("B > S or S < H", true),
        ("B > S or S > H or B == 2", true),
        ("B == 2 and B == 3 or S == 7", true),
        ("B == 3 and (B == 2 or S == 7)", false),
        ("(B + 1) * 2 == 6", true),
        ("((B)) == 2", true),
        ("((B == 2) and (S == 7))", true),
        ("causal == true", true),
        ("causal == false or B == 2", true),
        // The side that does not decide is not evaluated.
        ("B == 2 or 1 / 0 == 0", true),
        ("B == 3 and 1 / 0 == 0", false),
    ] {
        let found = Condition::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).holds(&bindings());
        assert_eq!(found, Ok(holds), "{text}");
    }
}

#[test]
fn what_has_no_value_says_why() {
    for (text, message) in [
        ("B / 0", "`B / 0` divides by zero"),
        ("1 % (B - 2)", "`1 % (B - 2)` divides by zero"),
        ("ceil_div(1, 0)", "`ceil_div(1, 0)` divides by zero"),
        ("9223372036854775807 + 1", "`9223372036854775807 + 1` does not fit in 64 bits"),
        ("-9223372036854775808 / -1", "`-9223372036854775808 / -1` does not fit in 64 bits"),
        ("-9223372036854775808 % -1", "`-9223372036854775808 % -1` does not fit in 64 bits"),
        ("-(-9223372036854775808)", "`--9223372036854775808` does not fit in 64 bits"),
        ("ceil_div(-9223372036854775808, -1)", "`ceil_div(-9223372036854775808, -1)` does not fit in 64 bits"),
        ("next_pow2(9223372036854775807)", "`next_pow2(9223372036854775807)` does not fit in 64 bits"),
        ("Q + 1", "`Q` is no dimension and no integer parameter"),
    ] {
        let found = Expression::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).evaluate(&bindings());
        assert_eq!(found.map_err(|error| error.message), Err(message.to_owned()), "{text}");
    }
}

#[test]
fn names_once_and_in_order() {
    assert_eq!(Expression::parse("S + B*max(S, Q) - 3").unwrap().names(), ["S", "B", "Q"]);
    assert_eq!(Condition::parse("S == B and Q < S or A > 0").unwrap().names(), ["S", "B", "Q", "A"]);
}

#[test]
fn printed_with_the_fewest_parentheses() {
    for (text, printed) in [
        ("B*S", "B * S"),
        ("(B*S)", "B * S"),
        ("(a - b) - c", "a - b - c"),
        ("a - (b - c)", "a - (b - c)"),
        ("a * (b + c)", "a * (b + c)"),
        ("a / (b * c)", "a / (b * c)"),
        ("-(a + b)", "-(a + b)"),
        ("-(3)", "-(3)"),
        ("a - -3", "a - -3"),
        ("min( a,b )", "min(a, b)"),
    ] {
        assert_eq!(Expression::parse(text).unwrap().to_string(), printed);
    }
    for (text, printed) in [
        ("(a == 1 and b == 2) and c == 3", "a == 1 and b == 2 and c == 3"),
        ("a == 1 and (b == 2 or c == 3)", "a == 1 and (b == 2 or c == 3)"),
        ("(a == 1 and b == 2) or c == 3", "a == 1 and b == 2 or c == 3"),
        ("a == 1 or (b == 2 or c == 3)", "a == 1 or (b == 2 or c == 3)"),
        ("a==true", "a == 1"),
    ] {
        assert_eq!(Condition::parse(text).unwrap().to_string(), printed);
    }
}

#[test]
fn depth_and_length_are_bounded() {
    let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Expression::parse(&nested(60)).is_ok());
    assert!(Condition::parse(&format!("{} == 1", nested(60))).is_ok());
    let deep = "the text nests more than 64 deep";
    assert_eq!(Expression::parse(&nested(400)).unwrap_err().message, deep);
    assert_eq!(
        Expression::parse(&format!("{}1", "-".repeat(400))).unwrap_err().message,
        "the text nests more than 64 deep"
    );
    assert_eq!(Condition::parse(&nested(400)).unwrap_err().message, deep);
    assert_eq!(Expression::parse(&format!("{}1{}", "max(".repeat(300), ")".repeat(300))).unwrap_err().message, deep);
    let long = "the text has more than 1000 words and signs";
    assert_eq!(Expression::parse(&format!("1{}", "+1".repeat(100_000))).unwrap_err().message, long);
    assert_eq!(Condition::parse(&nested(100_000)).unwrap_err().message, long);
}

#[test]
fn an_error_says_where_reading_stopped() {
    for (text, at) in [("B + * 2", 4), ("ü", 0), ("B + ü", 4), ("B)", 1), ("min(1, 2", 8), ("1e3", 0), ("H == ", 5)] {
        assert_eq!(Expression::parse(text).unwrap_err().at, if text == "H == " { 2 } else { at }, "{text}");
    }
    for (text, at) in [("H == ", 5), ("(H == 2 and K < )", 16), ("H = 2", 2), ("(H == 2", 7), ("H == 2 and", 10)] {
        assert_eq!(Condition::parse(text).unwrap_err().at, at, "{text}");
    }
}

fn any_expression() -> impl Strategy<Value = Expression> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Expression::Literal),
        (-3i64..4).prop_map(Expression::Literal),
        prop::sample::select(vec!["B", "S", "H", "axis", "_x1", "min"])
            .prop_map(|name| Expression::Name(name.to_owned())),
    ];
    leaf.prop_recursive(6, 40, 4, |inner| {
        let operator = prop::sample::select(vec!['+', '-', '*', '/', '%']);
        prop_oneof![
            inner.clone().prop_map(|operand| Expression::Negate(Box::new(operand))),
            (operator, inner.clone(), inner.clone()).prop_map(|(operator, a, b)| Expression::Binary(
                operator,
                Box::new(a),
                Box::new(b)
            )),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Expression::Call(Function::CeilDiv, vec![a, b])),
            inner.clone().prop_map(|a| Expression::Call(Function::NextPow2, vec![a])),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|all| Expression::Call(Function::Min, all)),
            prop::collection::vec(inner, 1..4).prop_map(|all| Expression::Call(Function::Max, all)),
        ]
    })
}

fn any_condition() -> impl Strategy<Value = Condition> {
    let leaf = (any_expression(), prop::sample::select(Comparison::ALL.to_vec()), any_expression())
        .prop_map(|(left, comparison, right)| Condition::Compare(left, comparison, right));
    leaf.prop_recursive(4, 12, 2, |inner| {
        let pair = (inner.clone(), inner);
        prop_oneof![
            pair.clone().prop_map(|(a, b)| Condition::And(Box::new(a), Box::new(b))),
            pair.prop_map(|(a, b)| Condition::Or(Box::new(a), Box::new(b))),
        ]
    })
}

/// Texts of the right words in any order, which come further than any characters do.
fn words() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "B",
        "S",
        "1",
        "-",
        "+",
        "*",
        "/",
        "%",
        "(",
        ")",
        ",",
        "==",
        "<",
        "<=",
        "=",
        "and",
        "or",
        "not",
        "min(",
        "max",
        "ceil_div(",
        "next_pow2(",
        "true",
        "99999999999999999999",
        "ü",
        "&&",
        " ",
        "1.5",
    ]);
    prop::collection::vec(word, 0..30).prop_map(|words| words.join(""))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_expression_reads_back_as_printed(expression in any_expression()) {
        let text = expression.to_string();
        prop_assert_eq!(Expression::parse(&text), Ok(expression), "{}", text);
    }

    #[test]
    fn a_condition_reads_back_as_printed(condition in any_condition()) {
        let text = condition.to_string();
        prop_assert_eq!(Condition::parse(&text), Ok(condition), "{}", text);
    }

    #[test]
    fn no_text_is_too_much(text in prop_oneof![words(), any::<String>()]) {
        for error in [Expression::parse(&text).err(), Condition::parse(&text).err()].into_iter().flatten() {
            prop_assert!(text.is_char_boundary(error.at), "{} in {:?}", error.at, text);
            prop_assert!(!error.message.is_empty());
        }
    }

    #[test]
    fn no_value_is_too_much(expression in any_expression(), a in any::<i64>(), b in -2i64..3) {
        let names = ["B", "S", "H", "axis", "_x1", "min"];
        let bindings: Vec<_> =
            names.iter().enumerate().map(|(i, name)| ((*name).to_owned(), if i % 2 == 0 { a } else { b })).collect();
        let _ = expression.evaluate(&bindings);
    }
}
