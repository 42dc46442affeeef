//! Colours of a terminal.
//!
//! Guarantee: a style ends where its text ends.

/// A style of text on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// Bold red: something needs a person.
    Red,
    /// Bold yellow: something may need a person.
    Yellow,
    /// Green: all is well.
    Green,
    /// Faint: labels.
    Faint,
}

impl Paint {
    /// Returns the text in this style. The text must contain no escape codes of its own.
    pub fn on(self, text: &str) -> String {
        let code = match self {
            Self::Red => "1;31",
            Self::Yellow => "1;33",
            Self::Green => "32",
            Self::Faint => "2",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// Returns the style of a state: of a message, an alert, a bulk operation or a circuit breaker.
    pub fn of_state(state: &str) -> Option<Self> {
        match state {
            "dead" | "firing" | "halted" | "open" => Some(Self::Red),
            "failed" | "parked" | "held" | "stopped" | "abandoned" | "half_open" => Some(Self::Yellow),
            "sent" | "resolved" | "ended" => Some(Self::Green),
            _ => None,
        }
    }
}
