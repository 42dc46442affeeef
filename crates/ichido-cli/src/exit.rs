//! How a command ends when it does not end well, and what its exit code means.

use std::process::ExitCode;

use crate::faults::Faults;

/// Why a command did not do what was asked.
#[derive(Debug)]
pub(crate) enum Exit {
    /// Code 1: it was tried, and failed.
    Failed(String),
    /// Code 2: it was not tried, because what was asked makes no sense. The command line's own errors end so too.
    Misconfigured {
        /// Of which command.
        command: &'static str,
        /// Everything that is wrong.
        faults: Faults,
    },
    /// Code 3: it was told to stop, and cut off what was still in flight.
    Cut(String),
}

impl Exit {
    /// Says why, and gives the code.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Self::Failed(why) => {
                eprintln!("ichido: {why}");
                ExitCode::from(1)
            }
            Self::Misconfigured { command, faults } => {
                eprintln!("ichido {command}: {faults}");
                ExitCode::from(2)
            }
            Self::Cut(why) => {
                eprintln!("ichido: {why}");
                ExitCode::from(3)
            }
        }
    }
}
