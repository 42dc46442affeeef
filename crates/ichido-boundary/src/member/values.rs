//! Values of JSON as values of Rust: truths, numbers, texts, lists, and objects by name.

use std::borrow::Cow;

use ichido_core::json::Kind;

use super::{At, Misfit, NAME_BYTES_MAX, Read, Reading, Shape, WHOLE_MAX};

impl Read for bool {
    fn shape() -> Shape {
        Shape::Truth
    }

    fn read(at: At<'_>, _: &mut Reading) -> Result<Self, Misfit> {
        at.value.as_bool().ok_or_else(|| at.misfit("true or false"))
    }
}

impl Read for String {
    fn shape() -> Shape {
        Shape::Text
    }

    fn read(at: At<'_>, _: &mut Reading) -> Result<Self, Misfit> {
        at.text().map(Cow::into_owned).ok_or_else(|| at.misfit("a text"))
    }
}

/// A count, a size or a time.
impl Read for u64 {
    fn shape() -> Shape {
        Shape::Whole { min: 0, max: WHOLE_MAX }
    }

    fn read(at: At<'_>, _: &mut Reading) -> Result<Self, Misfit> {
        whole(at, 0, WHOLE_MAX, "a whole number")
    }
}

/// A status of HTTP: nothing else in the model takes 16 bits.
impl Read for u16 {
    fn shape() -> Shape {
        Shape::Whole { min: 100, max: 599 }
    }

    fn read(at: At<'_>, _: &mut Reading) -> Result<Self, Misfit> {
        // The bounds fit, so nothing is lost.
        whole(at, 100, 599, "an HTTP status (100 to 599)").map(|status| u16::try_from(status).unwrap_or(599))
    }
}

fn whole(at: At<'_>, min: u64, max: u64, expected: &str) -> Result<u64, Misfit> {
    let Some(digits) = at.value.as_number_text() else {
        return Err(at.misfit(expected));
    };
    let number = digits.parse().ok().filter(|number| (min..=max).contains(number));
    // The spelling is bounded, because the text of a file can be one long number.
    number.ok_or_else(|| at.wrong(format!("expected {expected}, found {digits:.20}")))
}

impl<T: Read> Read for Vec<T> {
    fn shape() -> Shape {
        Shape::List(Box::new(T::shape()))
    }

    fn read(at: At<'_>, reading: &mut Reading) -> Result<Self, Misfit> {
        if at.kind() != Kind::Array {
            return Err(at.misfit("an array"));
        }
        at.count(at.value.elements().count())?;
        let elements = at.value.elements().enumerate();
        elements.map(|(index, value)| T::read(at.element(index, value), reading)).collect()
    }
}

/// Values under names that the file chooses, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named<T>(pub Vec<(String, T)>);

impl<T> Named<T> {
    /// The names and their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl<T: Read> Read for Named<T> {
    fn shape() -> Shape {
        Shape::Named(Box::new(T::shape()))
    }

    fn read(at: At<'_>, reading: &mut Reading) -> Result<Self, Misfit> {
        if at.kind() != Kind::Object {
            return Err(at.misfit("an object"));
        }
        at.count(at.value.members().count())?;
        let mut named = Vec::new();
        for (name, value) in at.value.members() {
            if NAME_BYTES_MAX < name.len() {
                return Err(at.wrong(format!("a name in here is longer than {NAME_BYTES_MAX} bytes")));
            }
            let value = T::read(at.member(&name, value), reading)?;
            named.push((name.into_owned(), value));
        }
        Ok(Self(named))
    }
}
