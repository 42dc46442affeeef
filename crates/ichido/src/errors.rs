//! All errors of a builder at once.

use std::fmt;

/// All errors of a builder. Displays one error per line.
#[derive(Clone, PartialEq, Eq)]
pub struct BuildErrors<E>(Vec<E>); // Invariant: not empty.

impl<E> BuildErrors<E> {
    /// Returns what was built if there are no errors.
    pub(crate) fn or<T>(errors: Vec<E>, built: Option<T>) -> Result<T, Self> {
        match built {
            Some(built) if errors.is_empty() => Ok(built),
            _ => Err(Self(errors)),
        }
    }
}

impl<E> std::ops::Deref for BuildErrors<E> {
    type Target = [E];

    fn deref(&self) -> &[E] {
        &self.0
    }
}

impl<E: fmt::Display> fmt::Display for BuildErrors<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.iter().map(E::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

/// The same text: a `main` that returns an error prints this form.
impl<E: fmt::Display> fmt::Debug for BuildErrors<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<E: fmt::Display> std::error::Error for BuildErrors<E> {}
