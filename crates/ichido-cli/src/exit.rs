//! The ways in which a command fails, and their exit codes.

use std::io::Write as _;
use std::process::ExitCode;

use ichido_core::settings::ConfigErrors;
use ichido_core::text::visible;
use ichido_http::signals::SignalsError;

/// The default help text on exit codes. Each such text starts with [`HELP_BEGINS`].
pub(crate) const HELP: &str = "\
Exit code: 0 on success, 1 for a failure, a refusal or findings, 2 for a usage or configuration error, 3 if the server or store cannot be \
reached, the outcome is unknown or the command was stopped, 4 for a conflict with the current state, and 5 if the database file was removed \
or replaced while the command ran.";
pub(crate) const HELP_BEGINS: &str = "Exit code: ";

/// The reason why a command did not succeed.
#[derive(Debug)]
pub(crate) enum Exit {
    /// Code 1: the command tried and failed.
    Failed(String),
    /// Code 1: the command succeeded and has findings. The report lists them.
    Findings,
    /// Code 2: a usage or configuration error; nothing was tried. Errors of the command line itself use the same
    /// code.
    Misconfigured(ConfigErrors),
    /// Code 3: the command was stopped and cut off work in flight.
    Interrupted(String),
    /// Code 3: the server or the store was not reached, or its outcome is unknown.
    Unreachable(String),
    /// Code 4: a conflict with the current state, such as the key of another request.
    Conflict(String),
    /// Code 4: everything was refused by its state. The output says why.
    Refused,
    /// Code 5: the database file was removed, moved or replaced while the command ran.
    ///
    /// A supervisor must not restart the command: a person has to put the file back first.
    StoreLost(String),
}

impl Exit {
    /// Creates a usage error: which argument is wrong, and why.
    pub(crate) fn invalid(argument: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Misconfigured(ConfigErrors::one(argument, what))
    }

    /// Prints the reason and returns the exit code.
    ///
    /// `command` is the command that was run, such as `dead list`.
    pub(crate) fn report(self, command: &str) -> ExitCode {
        let (code, why) = match self {
            Self::Findings => return ExitCode::from(1),
            Self::Refused => return ExitCode::from(4),
            Self::Failed(why) => (1, format!("ichido: {why}")),
            Self::Misconfigured(faults) => (2, format!("ichido {command}: {faults}")),
            Self::Interrupted(why) | Self::Unreachable(why) => (3, format!("ichido: {why}")),
            Self::Conflict(why) => (4, format!("ichido: {why}")),
            Self::StoreLost(why) => (5, format!("ichido: {why}")),
        };
        // If standard error is closed, the exit code still reports the failure.
        _ = writeln!(std::io::stderr(), "{}", escaped(&why));
        ExitCode::from(code)
    }
}

/// Escapes each line: a reason may quote a key, a file or a server.
fn escaped(why: &str) -> String {
    why.split('\n').map(visible).collect::<Vec<_>>().join("\n")
}

impl From<ConfigErrors> for Exit {
    fn from(faults: ConfigErrors) -> Self {
        Self::Misconfigured(faults)
    }
}

impl From<SignalsError> for Exit {
    fn from(error: SignalsError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<ichido_server::Error> for Exit {
    fn from(error: ichido_server::Error) -> Self {
        match error {
            ichido_server::Error::Failed(why) => Self::Failed(why),
            ichido_server::Error::Misconfigured(faults) => Self::Misconfigured(faults),
            ichido_server::Error::Interrupted(why) => Self::Interrupted(why),
            ichido_server::Error::Unreachable(why) => Self::Unreachable(why),
            ichido_server::Error::StoreLost(why) => Self::StoreLost(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_cannot_control_the_terminal() {
        assert_eq!(escaped("2 problems\n  é: \u{1b}[2J\r"), "2 problems\n  é: \\u{1b}[2J\\r");
    }
}
