//! How a command ends when it does not end well, and what its exit code means.

use std::io::Write as _;
use std::process::ExitCode;

use ichido_core::settings::Faults;
use ichido_http::signals::SignalsError;

/// What a help says of exit codes, where a command has no words of its own for them. Each begins with [`HELP_BEGINS`].
pub(crate) const HELP: &str = "\
Exit code: 0 when all went well, 1 when it was refused or failed or something was found, 2 when what was asked makes no sense, 3 when the \
server or the store was not reached or gave no outcome, or when it was stopped, 4 when it stands against how things are, and 5 when its database file was removed or replaced while it ran.";
pub(crate) const HELP_BEGINS: &str = "Exit code: ";

/// Why a command did not do what was asked.
#[derive(Debug)]
pub(crate) enum Exit {
    /// Code 1: it was tried, and failed.
    Failed(String),
    /// Code 1: it was done, and there is something to mend. The report has said what.
    Findings,
    /// Code 2: it was not tried, because what was asked makes no sense. The command line's own errors end so too.
    Misconfigured(Faults),
    /// Code 3: it was told to stop, and cut off what was still in flight.
    Interrupted(String),
    /// Code 3: the server or the store that it is about was not reached, or gave no outcome.
    Unreachable(String),
    /// Code 4: what was asked stands against what is there: a key that was used for another request.
    Conflict(String),
    /// Code 5: its database file was removed, moved or replaced while it ran. A supervisor must not start it again: a person has to
    /// put the file back first.
    StoreLost(String),
}

impl Exit {
    /// One thing makes no sense: where it was said, and what is wrong with it.
    pub(crate) fn invalid(argument: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Misconfigured(Faults::one(argument, what))
    }

    /// Says why, and gives the code. `command` is the one that was run, such as `dead list`.
    pub(crate) fn report(self, command: &str) -> ExitCode {
        let (code, why) = match self {
            Self::Findings => return ExitCode::from(1),
            Self::Failed(why) => (1, format!("ichido: {why}")),
            Self::Misconfigured(faults) => (2, format!("ichido {command}: {faults}")),
            Self::Interrupted(why) | Self::Unreachable(why) => (3, format!("ichido: {why}")),
            Self::Conflict(why) => (4, format!("ichido: {why}")),
            Self::StoreLost(why) => (5, format!("ichido: {why}")),
        };
        // Whoever closed standard error does not want to know; the code still tells.
        _ = writeln!(std::io::stderr(), "{why}");
        ExitCode::from(code)
    }
}

impl From<Faults> for Exit {
    fn from(faults: Faults) -> Self {
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
            ichido_server::Error::Cut(why) => Self::Interrupted(why),
            ichido_server::Error::Unreachable(why) => Self::Unreachable(why),
            ichido_server::Error::StoreLost(why) => Self::StoreLost(why),
        }
    }
}
