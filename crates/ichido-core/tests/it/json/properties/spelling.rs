//! The many ways to spell a value.

use proptest::prelude::*;

use super::model::{Decimal, ModelValue};

/// Choices drawn in advance, so a failing case shrinks and repeats.
#[derive(Clone, Debug)]
pub(super) struct Dice {
    throws: Vec<u8>,
    next: usize,
}

pub(super) fn dice() -> impl Strategy<Value = Dice> {
    prop::collection::vec(any::<u8>(), 1..60).prop_map(|throws| Dice { throws, next: 0 })
}

impl Dice {
    /// A number below `sides`, which is at most 256.
    fn throw(&mut self, sides: usize) -> usize {
        let throw = usize::from(self.throws[self.next]);
        self.next = (self.next + 1) % self.throws.len();
        throw % sides
    }

    pub(super) fn flip(&mut self) -> bool {
        self.throw(2) == 0
    }

    fn pick<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.throw(texts.len())]
    }
}

impl ModelValue {
    /// One random spelling of this value.
    pub(super) fn spell(&self, dice: &mut Dice) -> String {
        let mut out = String::new();
        self.spell_to(dice, &mut out);
        out
    }

    fn spell_to(&self, dice: &mut Dice, out: &mut String) {
        spell_space(dice, out);
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
            Self::Number(number) => spell_number(number, dice, out),
            Self::String(text) => spell_string(text, dice, out),
            Self::Array(elements) => {
                out.push('[');
                for (index, element) in elements.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { "," });
                    element.spell_to(dice, out);
                }
                spell_space(dice, out);
                out.push(']');
            }
            Self::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                for end in (1..members.len()).rev() {
                    members.swap(end, dice.throw(end + 1));
                }
                out.push('{');
                for (index, (name, value)) in members.into_iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { "," });
                    spell_space(dice, out);
                    spell_string(name, dice, out);
                    spell_space(dice, out);
                    out.push(':');
                    value.spell_to(dice, out);
                }
                spell_space(dice, out);
                out.push('}');
            }
        }
        spell_space(dice, out);
    }
}

fn spell_space(dice: &mut Dice, out: &mut String) {
    out.push_str(dice.pick(&["", "", "", " ", "\n", "\r\n\t", "  "]));
}

fn spell_string(text: &str, dice: &mut Dice, out: &mut String) {
    out.push('"');
    for char in text.chars() {
        let short = match char {
            '\u{8}' => Some("\\b"),
            '\t' => Some("\\t"),
            '\n' => Some("\\n"),
            '\u{c}' => Some("\\f"),
            '\r' => Some("\\r"),
            '"' => Some("\\\""),
            '\\' => Some("\\\\"),
            '/' => Some("\\/"),
            _ => None,
        };
        let must_escape = char < ' ' || char == '"' || char == '\\';
        match short {
            Some(short) if dice.flip() => out.push_str(short),
            _ if must_escape || dice.throw(6) == 0 => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    let escape =
                        if dice.flip() { format!("\\u{unit:04x}") } else { format!("\\u{unit:04X}") };
                    out.push_str(&escape);
                }
            }
            _ => out.push(char),
        }
    }
    out.push('"');
}

/// Writes a number with the point anywhere, extra zeros, and the exponent that corrects it.
fn spell_number(number: &Decimal, dice: &mut Dice, out: &mut String) {
    let digits = &number.digits;
    if digits.is_empty() {
        out.push_str(dice.pick(&["0", "-0", "0.0", "-0.000", "0e7", "0E-99999999999999999999", "0.00e+5"]));
        return;
    }
    let count = i32::try_from(digits.len()).expect("digits are few");
    // Where the point is without an exponent.
    let plain = number.exponent + count;
    let point = match dice.throw(3) {
        0 if plain.abs() < 100 => plain,
        _ => i32::try_from(dice.throw(digits.len() + 7)).expect("a throw is small") - 3,
    };
    let sign = if number.negative { "-" } else { "" };
    let spare = "0".repeat(dice.throw(3));
    let size = usize::try_from(point.unsigned_abs()).expect("the point is near");
    let mantissa = if point <= 0 {
        format!("0.{}{digits}{spare}", "0".repeat(size))
    } else if point < count {
        format!("{}.{}{spare}", &digits[..size], &digits[size..])
    } else if spare.is_empty() {
        format!("{digits:0<size$}")
    } else {
        format!("{digits:0<size$}.{spare}")
    };
    let exponent = match plain - point {
        0 if dice.flip() => String::new(),
        exponent => {
            let sign = if exponent < 0 { "-" } else { dice.pick(&["", "+"]) };
            let zeros = dice.pick(&["", "", "0"]);
            format!("{}{sign}{zeros}{}", dice.pick(&["e", "E"]), exponent.abs())
        }
    };
    out.extend([sign, &mantissa, &exponent]);
}
