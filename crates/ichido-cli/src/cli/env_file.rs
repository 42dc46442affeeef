//! Variables of `.env` that set flags.
// Spec: B5.

use std::error::Error as _;

use clap::{Arg, Command};
use ichido_core::settings::ConfigErrors;
use ichido_server::environment;

/// Reads `.env`, and makes its values the defaults of the flags whose variables they set.
///
/// So a flag wins over the environment, which wins over the file.
pub(super) fn apply(command: Command) -> Result<Command, ConfigErrors> {
    environment::load_env_file()?;
    let mut faults = ConfigErrors::default();
    let command = with_defaults(command, &mut faults);
    faults.or(Some(command))
}

fn with_defaults(command: Command, faults: &mut ConfigErrors) -> Command {
    let command = command.mut_args(|argument| with_default(argument, faults));
    command.mut_subcommands(|below| with_defaults(below, faults))
}

fn with_default(argument: Arg, faults: &mut ConfigErrors) -> Arg {
    let Some(name) = argument.get_env().and_then(|name| name.to_str()) else { return argument };
    let Some(value) = environment::value_from_file(name) else { return argument };
    // Here, because clap checks a default in debug builds only, and with a panic.
    if let Err(why) = check(&argument, value) {
        faults.add(environment::origin(name), format!("is invalid: {why}; fix the line, or remove it"));
        return argument;
    }
    let is_hidden = argument.is_hide_env_values_set();
    argument.default_value(value).hide_default_value(is_hidden)
}

/// Parses a value as the argument would.
fn check(argument: &Arg, value: &str) -> Result<(), String> {
    let parser = argument.get_value_parser().clone();
    let alone = Command::new("").no_binary_name(true).arg(Arg::new("value").value_parser(parser));
    let parsed = alone.try_get_matches_from(["--", value]);
    parsed.map(drop).map_err(|error| {
        // Without the value, which may be a secret.
        error.source().map_or_else(|| "it is not one of the accepted values".to_owned(), ToString::to_string)
    })
}
