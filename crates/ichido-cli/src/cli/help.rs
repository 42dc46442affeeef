//! The help of every command: `-h` is short, `--help` adds exit codes, examples and details.

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::Command;
use ichido_server::target;

use crate::exit;

/// The commands by purpose, as `ichido --help` lists them.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Try", &["demo", "mock-broker"]),
    ("Run", &["serve", "worker", "proxy"]),
    ("Send", &["send", "offline"]),
    ("Operate", &["messages", "dead", "keys", "queues", "destinations", "alerts", "audit"]),
    ("Set up", &["config", "token", "doctor", "healthcheck", "backup", "completions"]),
    ("Check", &["check", "probe"]),
    ("Models", &["judge"]),
];

/// Returns the command with its complete help texts.
pub(super) fn with_help(command: Command) -> Command {
    let template = format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n{}\nOptions:\n{{options}}{{after-help}}",
        groups(&command)
    );
    with_long_help(command, exit::HELP, false).help_template(template)
}

/// Turns `ichido help dead list` into `ichido dead list --help`, and `ichido alerts list` into `ichido alerts`.
///
/// A subcommand of the parser would list every command a second time, in completions too.
pub(super) fn arguments(given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = given.collect();
    if arguments.get(1).is_some_and(|first| first == "help") {
        arguments.remove(1);
        arguments.push("--help".into());
    }
    if matches!(&arguments[..], [_, alerts, list, ..] if alerts == "alerts" && list == "list") {
        arguments.remove(2);
    }
    arguments
}

/// Returns whether the command line only asks for help, the version or completions.
pub(super) fn is_requested(arguments: &[OsString]) -> bool {
    let asks = |argument: &OsString| ["-h", "--help", "-V", "--version"].iter().any(|flag| argument == flag);
    arguments.get(1).is_none_or(|first| first == "completions") || arguments.iter().any(asks)
}

/// Returns the list of commands, grouped.
fn groups(command: &Command) -> String {
    let width = command.get_subcommands().map(|below| below.get_name().len()).max().unwrap_or_default();
    let mut text = String::new();
    for (group, names) in GROUPS {
        let _ = write!(text, "\n{group}:\n");
        for below in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let about = below.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {:<width$}  {about}", below.get_name());
        }
    }
    text
}

/// Moves everything after the options to the long help, and adds the exit codes and how a store is found.
///
/// A command that does not describe its exit codes inherits the text of its parent.
fn with_long_help(command: Command, inherited: &str, finds_store: bool) -> Command {
    let own = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let codes = own.split("\n\n").find(|part| part.starts_with(exit::HELP_BEGINS));
    let has = |id: &str| command.get_arguments().any(|argument| argument.get_id() == id);
    let finds_store = finds_store || has("store") && has("config");
    let parts = [codes.is_none().then_some(inherited), finds_store.then_some(target::HELP), Some(&own)];
    let parts: Vec<&str> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    let after = parts.join("\n\n");
    let codes = codes.unwrap_or(inherited).to_owned();
    let command = command.after_help(None).after_long_help(after);
    command.mut_subcommands(|command| with_long_help(command, &codes, finds_store))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::super::Cli;
    use super::*;

    #[test]
    fn each_command_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let command = Cli::command();
        let mut defined: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        grouped.sort_unstable();
        defined.sort_unstable();
        assert_eq!(grouped, defined);
    }

    #[test]
    fn help_and_a_command_is_the_long_help_of_that_command() {
        let asked = |text: &str| arguments(text.split(' ').map(OsString::from)).join(" ".as_ref());
        assert_eq!(asked("ichido help"), "ichido --help");
        assert_eq!(asked("ichido help dead list"), "ichido dead list --help");
        assert_eq!(asked("ichido send help"), "ichido send help");
        assert_eq!(asked("ichido alerts list --all"), "ichido alerts --all");
        assert_eq!(asked("ichido help alerts list"), "ichido alerts --help");
    }

    #[test]
    fn the_short_help_is_shorter_and_only_the_long_one_has_exit_codes() {
        fn check(command: &Command, path: &str) -> usize {
            let short = command.clone().render_help().to_string();
            let long = command.clone().render_long_help().to_string();
            assert!(short.len() < long.len(), "{path}: the short help is as long as the long one");
            assert!(!short.contains(exit::HELP_BEGINS), "{path}: {short}");
            assert_eq!(long.matches(exit::HELP_BEGINS).count(), 1, "{path}: {long}");
            let below = command.get_subcommands();
            1 + below.map(|below| check(below, &format!("{path} {}", below.get_name()))).sum::<usize>()
        }
        let commands = check(&with_help(Cli::command()), "ichido");
        assert!(30 < commands, "{commands} commands are too few to be all");
    }

    /// The same filter selects dead letters by default elsewhere.
    #[test]
    fn help_of_decide_names_its_default() {
        let command = with_help(Cli::command());
        let decide = command.find_subcommand("dead").and_then(|dead| dead.find_subcommand("decide"));
        let help = decide.expect("a command").clone().render_help().to_string();
        assert!(help.contains("Parked messages: the default"), "{help}");
        assert!(!help.contains("instead of dead letters"), "{help}");
    }

    #[test]
    fn the_list_shows_groups_and_every_command() {
        let help = with_help(Cli::command()).render_help().to_string();
        for (group, names) in GROUPS {
            assert!(help.contains(&format!("\n{group}:\n")), "{help}");
            for name in names {
                assert!(help.contains(&format!("\n  {name} ")), "{name}: {help}");
            }
        }
    }
}
