//! JSON values as Rust values: booleans, numbers, strings, lists, and objects by name.

use std::borrow::Cow;

use ichido_core::json::Kind;

use super::{FromJson, InvalidValue, LocatedValue, MAX_NAME_BYTES, MAX_WHOLE, ReadContext, Schema};

impl FromJson for bool {
    fn schema() -> Schema {
        Schema::Bool
    }

    fn read(at: LocatedValue<'_>, _: &mut ReadContext) -> Result<Self, InvalidValue> {
        at.value.as_bool().ok_or_else(|| at.mismatch("true or false"))
    }
}

impl FromJson for String {
    fn schema() -> Schema {
        Schema::String
    }

    fn read(at: LocatedValue<'_>, _: &mut ReadContext) -> Result<Self, InvalidValue> {
        at.text().map(Cow::into_owned).ok_or_else(|| at.mismatch("a string"))
    }
}

/// A count, a size or a time.
impl FromJson for u64 {
    fn schema() -> Schema {
        Schema::Integer { min: 0, max: MAX_WHOLE }
    }

    fn read(at: LocatedValue<'_>, _: &mut ReadContext) -> Result<Self, InvalidValue> {
        integer(at, 0, MAX_WHOLE, "an integer")
    }
}

/// An HTTP status: nothing else in the model has 16 bits.
impl FromJson for u16 {
    fn schema() -> Schema {
        Schema::Integer { min: 100, max: 599 }
    }

    fn read(at: LocatedValue<'_>, _: &mut ReadContext) -> Result<Self, InvalidValue> {
        // The range fits, so nothing is lost.
        integer(at, 100, 599, "an HTTP status (100 to 599)")
            .map(|status| u16::try_from(status).unwrap_or(599))
    }
}

fn integer(at: LocatedValue<'_>, min: u64, max: u64, expected: &str) -> Result<u64, InvalidValue> {
    let Some(digits) = at.value.as_number_text() else {
        return Err(at.mismatch(expected));
    };
    let number = digits.parse().ok().filter(|number| (min..=max).contains(number));
    // The text is cut, because a file can be one long number.
    number.ok_or_else(|| at.wrong(format!("expected {expected}, found {digits:.20}")))
}

impl<T: FromJson> FromJson for Vec<T> {
    fn schema() -> Schema {
        Schema::Array(Box::new(T::schema()))
    }

    fn read(at: LocatedValue<'_>, context: &mut ReadContext) -> Result<Self, InvalidValue> {
        if at.kind() != Kind::Array {
            return Err(at.mismatch("an array"));
        }
        at.count(at.value.elements().count())?;
        let mut read = Vec::new();
        for (index, value) in at.value.elements().enumerate() {
            match T::read(at.element(index, value), context) {
                Ok(element) => read.push(element),
                Err(invalid) => context.refuse(invalid),
            }
        }
        Ok(read)
    }
}

/// Values under names that the file chooses, in file order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedValues<T>(pub Vec<(String, T)>);

impl<T> NamedValues<T> {
    /// Returns the names and their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl<T: FromJson> FromJson for NamedValues<T> {
    fn schema() -> Schema {
        Schema::Map { members: Vec::new(), others: Box::new(T::schema()) }
    }

    fn read(at: LocatedValue<'_>, context: &mut ReadContext) -> Result<Self, InvalidValue> {
        read_except(at, &[], context)
    }
}

/// Reads all members but those with fixed names.
pub(crate) fn read_except<T: FromJson>(
    at: LocatedValue<'_>,
    fixed: &[&str],
    context: &mut ReadContext,
) -> Result<NamedValues<T>, InvalidValue> {
    if at.kind() != Kind::Object {
        return Err(at.mismatch("an object"));
    }
    at.count(at.value.members().count())?;
    let mut named = Vec::new();
    for (name, value) in at.value.members().filter(|(name, _)| !fixed.contains(&name.as_ref())) {
        if MAX_NAME_BYTES < name.len() {
            context.refuse(at.wrong(format!("a member name is longer than {MAX_NAME_BYTES} bytes")));
            continue;
        }
        match T::read(at.member(&name, value), context) {
            Ok(value) => named.push((name.into_owned(), value)),
            Err(invalid) => context.refuse(invalid),
        }
    }
    Ok(NamedValues(named))
}
