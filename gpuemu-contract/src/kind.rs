//! The types a key may have. Reading, the JSON Schema and the page of keys all follow these, so they cannot drift.

/// A table of keys.
#[derive(Debug)]
pub(crate) struct Table {
    /// How messages and the page of keys call it, such as `[validation]`.
    pub title: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

/// One key of a table.
#[derive(Debug)]
pub(crate) struct Key {
    /// Its name.
    pub name: &'static str,
    /// The type of its value.
    pub kind: Kind,
    /// Whether it must be written.
    pub required: bool,
    /// What holds where it is not written, in words; empty for a required key.
    pub default: &'static str,
    /// What it means.
    pub about: &'static str,
}

/// The type of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number between two others, both included.
    Integer(i128, i128),
    /// A number of at least `min`, never NaN.
    Number { min: f64, infinite: bool },
    /// A number other than NaN, a string or a boolean.
    Scalar,
    /// Text that is not empty.
    Text,
    /// Why something is allowed, in words.
    Reason,
    /// A name of letters, digits and underscores that does not start with a digit.
    Identifier,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// Where right answers come from: a built-in, a script, a Python function.
    Reference(&'static [&'static str]),
    /// `package.module:function`.
    Function,
    /// An integer expression, or an integer.
    Expression,
    /// The size of an axis: an expression, an integer, or `...` for any number of axes.
    Axis,
    /// A comparison of expressions.
    Condition,
    /// A list, with the fewest and the most entries it may have.
    List(&'static Kind, usize, usize),
    /// A table whose keys are names the user chooses.
    Map(&'static Kind),
    /// A table whose keys are some of a few words.
    MapOf(&'static [&'static str], &'static Kind),
    /// A table of known keys.
    Table(&'static Table),
    /// A list of tables of known keys.
    Tables(&'static Table),
    /// Several types; the value's own TOML type says which is meant.
    OneOf(&'static [Kind]),
}

/// The TOML type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TomlType {
    Text,
    Integer,
    Float,
    Bool,
    Datetime,
    List,
    Table,
}

impl TomlType {
    /// With its article, to follow "not".
    pub const fn name(self) -> &'static str {
        match self {
            TomlType::Text => "a string",
            TomlType::Integer => "an integer",
            TomlType::Float => "a float",
            TomlType::Bool => "a boolean",
            TomlType::Datetime => "a date",
            TomlType::List => "a list",
            TomlType::Table => "a table",
        }
    }
}

impl Kind {
    /// Whether values of this kind can have that TOML type.
    pub fn has_type(&self, found: TomlType) -> bool {
        match self {
            Kind::Bool => found == TomlType::Bool,
            Kind::Integer(..) => found == TomlType::Integer,
            Kind::Number { .. } => matches!(found, TomlType::Integer | TomlType::Float),
            Kind::Expression | Kind::Axis => matches!(found, TomlType::Integer | TomlType::Text),
            Kind::Scalar => !matches!(found, TomlType::Datetime | TomlType::List | TomlType::Table),
            Kind::Text
            | Kind::Reason
            | Kind::Identifier
            | Kind::Choice(_)
            | Kind::Reference(_)
            | Kind::Function
            | Kind::Condition => found == TomlType::Text,
            Kind::List(..) | Kind::Tables(_) => found == TomlType::List,
            Kind::Map(_) | Kind::MapOf(..) | Kind::Table(_) => found == TomlType::Table,
            Kind::OneOf(kinds) => kinds.iter().any(|kind| kind.has_type(found)),
        }
    }

    /// In words, with its article.
    pub fn describe(&self) -> String {
        match self {
            Kind::Bool => "true or false".to_owned(),
            Kind::Integer(min, max) if *max >= i128::from(i64::MAX) && *min <= i128::from(i64::MIN) => {
                "an integer".to_owned()
            }
            // Larger bounds say nothing about what is meant.
            Kind::Integer(min, max) if *max >= i128::from(u32::MAX) => format!("an integer of at least {min}"),
            Kind::Integer(min, max) => format!("an integer from {min} to {max}"),
            Kind::Number { min, .. } if *min == f64::NEG_INFINITY => "a number".to_owned(),
            Kind::Number { min, .. } => format!("a number of at least {min}"),
            Kind::Scalar => "a number, a string or a boolean".to_owned(),
            Kind::Text => "a string".to_owned(),
            Kind::Reason => "a reason in words".to_owned(),
            Kind::Identifier => "a name of letters, digits and underscores".to_owned(),
            Kind::Choice(words) => match words {
                [first, second] => format!("{first:?} or {second:?}"),
                _ => format!("one of {}", words.join(", ")),
            },
            Kind::Reference(_) => "a built-in's name, a script's path or `package.module:function`".to_owned(),
            Kind::Function => "`package.module:function`".to_owned(),
            Kind::Expression => "an expression such as \"B*S\" or an integer".to_owned(),
            Kind::Axis => "a size such as \"B\", \"2*H\" or 3".to_owned(),
            Kind::Condition => "a condition such as \"H % 2 == 0\"".to_owned(),
            Kind::List(of, min, max) if min == max => format!("a list of {min}, each {}", of.describe()),
            Kind::List(of, min, max) if *max != usize::MAX => {
                format!("a list of {min} to {max}, each {}", of.describe())
            }
            Kind::List(of, ..) => format!("a list, each {}", of.describe()),
            Kind::Map(_) | Kind::MapOf(..) | Kind::Table(_) => "a table".to_owned(),
            Kind::Tables(table) => format!("a list of tables, each under a {} header", table.title),
            Kind::OneOf(kinds) => kinds.iter().map(Kind::describe).collect::<Vec<_>>().join(", or "),
        }
    }
}
