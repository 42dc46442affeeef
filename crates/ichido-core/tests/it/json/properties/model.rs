//! Values as the tests see them, independent of any spelling.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::Dice;

/// A JSON value; two are equal exactly when their canonical bytes should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ModelValue {
    Null,
    Bool(bool),
    Number(Decimal),
    String(String),
    Array(Vec<ModelValue>),
    Object(BTreeMap<String, ModelValue>),
}

/// `digits` as an integer, times ten to the power of `exponent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    pub(super) negative: bool,
    /// Without zeros at either end; empty for zero.
    pub(super) digits: String,
    pub(super) exponent: i32,
}

impl Decimal {
    fn new(negative: bool, digits: &str, exponent: i32) -> Self {
        let digits = digits.trim_start_matches('0');
        let significant = digits.trim_end_matches('0');
        if significant.is_empty() {
            return Self { negative: false, digits: String::new(), exponent: 0 };
        }
        let trimmed = i32::try_from(digits.len() - significant.len()).expect("digits are few");
        Self { negative, digits: significant.to_owned(), exponent: exponent + trimmed }
    }
}

impl ModelValue {
    /// Changes this into another value, somewhere.
    pub(super) fn change(&mut self, dice: &mut Dice) {
        match self {
            Self::Null => *self = Self::Bool(false),
            Self::Bool(truth) if dice.flip() => *truth = !*truth,
            Self::Bool(_) => *self = Self::Null,
            Self::Number(number) if number.digits.is_empty() || dice.flip() => {
                number.digits.push('1');
                number.exponent -= 1;
            }
            Self::Number(number) if dice.flip() => number.negative = !number.negative,
            Self::Number(number) => number.exponent += 1,
            Self::String(text) => text.push('x'),
            Self::Array(elements) => match elements.last_mut() {
                Some(element) if dice.flip() => element.change(dice),
                _ => elements.push(Self::Null),
            },
            Self::Object(members) => match members.pop_last() {
                Some((name, mut value)) if dice.flip() => {
                    value.change(dice);
                    members.insert(name, value);
                }
                Some((name, value)) if dice.flip() => {
                    members.insert(name + "x", value);
                }
                Some(_) => (),
                None => {
                    members.insert(String::new(), Self::Null);
                }
            },
        }
    }
}

/// Values of all kinds. Names, texts and numbers sometimes come from small sets, so equal ones meet.
pub(super) fn model() -> impl Strategy<Value = ModelValue> {
    let leaf = prop_oneof![
        Just(ModelValue::Null),
        any::<bool>().prop_map(ModelValue::Bool),
        decimal().prop_map(ModelValue::Number),
        name().prop_map(ModelValue::String),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(ModelValue::Array),
            prop::collection::btree_map(name(), inner, 0..6).prop_map(ModelValue::Object),
        ]
    })
}

fn decimal() -> impl Strategy<Value = Decimal> {
    let digits = prop_oneof!["[0-9]{1,2}", "[0-9]{10,25}", "[0-9]{1,60}"];
    let exponent = prop_oneof![Just(0), -3..4, -40..40, -400..400];
    (any::<bool>(), digits, exponent)
        .prop_map(|(negative, digits, exponent)| Decimal::new(negative, &digits, exponent))
}

/// Text for names and strings, with the characters that matter for escapes and sorting.
pub(super) fn name() -> impl Strategy<Value = String> {
    let special = prop::sample::select(SPECIAL);
    prop_oneof![
        "[ab]{0,2}",
        "[a-z_]{1,12}",
        ".{0,20}",
        prop::collection::vec(special, 0..8).prop_map(String::from_iter),
    ]
}

/// Control characters, characters that must or may be escaped, and the boundaries of UTF-8 and UTF-16 lengths.
const SPECIAL: &[char] = &[
    '\0',
    '\u{8}',
    '\t',
    '\n',
    '\u{b}',
    '\u{c}',
    '\r',
    '\u{1f}',
    ' ',
    '"',
    '/',
    '\\',
    'a',
    'b',
    '\u{7f}',
    '\u{80}',
    'é',
    '\u{7ff}',
    '\u{800}',
    '\u{d7ff}',
    '\u{e000}',
    '\u{fb33}',
    '\u{ffff}',
    '\u{10000}',
    '😀',
    '\u{10ffff}',
];
