//! The commands, and the code that they share.

mod env_file;
mod help;
#[cfg(test)]
mod reference_tests;

use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use ichido_server::traces;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{FilterExt as _, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use self::help::with_help;
use crate::api_client::ApiArgs;
use crate::beside::LogWriter;
use crate::exit::Exit;
use crate::out::{self, ViewArgs};
use crate::{
    alerts, audit, backup, check, completions, config, dead, demo, destinations, doctor, healthcheck, judge,
    keys, messages, mock_broker, offline, probe, proxy, queues, send, serve, store, token, worker,
};

/// Makes state-changing requests take effect once, however often they are sent.
#[derive(Debug, Parser)]
#[command(name = "ichido", version, disable_help_subcommand = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Log level for stderr [default: warn; error for `demo`]
    #[arg(long, global = true, value_parser = PossibleValuesParser::new(LEVELS), env = "ICHIDO_LOG")]
    log: Option<String>,
    #[command(flatten)]
    view: ViewArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show retries, dead letters and alerts; leaves nothing behind
    Demo(demo::Args),
    /// Accept messages over HTTP and deliver them; needs no setup
    Serve(serve::Args),
    /// Run a proxy that checks keys or adds idempotency
    Proxy(Box<proxy::Args>),
    /// Deliver messages from the outbox, each with exactly-once effects
    Worker(worker::Args),
    /// Enqueue messages: one, or one per line
    Send(Box<send::Args>),
    /// Manage the offline queue: list, retry, release, discard
    Offline(offline::Args),
    /// Manage single messages: list, show, cancel, requeue, decide
    #[command(after_help = messages::EXAMPLES)]
    Messages(Box<ApiArgs<messages::Command>>),
    /// List, pause and resume queues
    #[command(after_help = queues::EXAMPLES)]
    Queues(Box<ApiArgs<queues::Command>>),
    /// List destinations with their pace; pause and resume them
    #[command(after_help = destinations::EXAMPLES)]
    Destinations(Box<ApiArgs<destinations::Command>>),
    /// List firing and resolved alerts
    Alerts(alerts::Args),
    /// Check boundary files for lost keys and duplicate effects
    Check(check::Args),
    /// Test an API's idempotency from outside; show a verdict per rule
    Probe(Box<probe::Args>),
    /// Find keys, and decide those with an unknown outcome
    #[command(after_help = keys::EXAMPLES)]
    Keys(Box<ApiArgs<keys::Command>>),
    /// Manage dead letters and parked messages: list, requeue, discard, edit, decide
    Dead(Box<dead::Args>),
    /// Run a mock broker with configurable faults, for tests
    MockBroker(mock_broker::Args),
    /// Judge articles with a language model, within its rate limit
    Judge(Box<judge::Args>),
    /// Seal the audit trail and detect tampering
    Audit(audit::Args),
    /// Create, list and revoke access tokens
    Token(token::Args),
    /// Create, show and check configuration files
    Config(config::Args),
    /// Check the database and the configuration, with help for each problem
    Doctor(doctor::Args),
    /// Check whether a server is ready, for container health checks
    Healthcheck(healthcheck::Args),
    /// Copy a live SQLite store into a new file
    Backup(backup::Args),
    /// Print a shell completion script
    Completions(completions::Args),
}

/// The log levels, from the quietest to the most verbose.
const LEVELS: [&str; 4] = ["error", "warn", "info", "debug"];

/// Parses the command line and runs the command.
pub(crate) fn run() -> ExitCode {
    let arguments = help::arguments(std::env::args_os());
    let command = match env_file::apply(with_help(Cli::command())) {
        Ok(command) => command,
        // Help and the version are shown whatever the file says.
        Err(_) if help::is_requested(&arguments) => with_help(Cli::command()),
        Err(faults) => return Exit::from(faults).report("cannot start"),
    };
    let matches = command.get_matches_from(arguments);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    out::set_view(cli.view);
    // These report faults themselves: the demo as part of its scenario, and judge beside its bar and in its result.
    let reports_itself = matches!(cli.command, Command::Demo(_) | Command::Judge(_));
    let usual = if reports_itself { LevelFilter::ERROR } else { LevelFilter::WARN };
    init_logging(cli.log.and_then(|level| level.parse().ok()).unwrap_or(usual));
    let ended = match cli.command {
        Command::Demo(args) => on_runtime(demo::run(args)),
        Command::Serve(args) => on_runtime(serve::run(args)),
        Command::Proxy(args) => on_runtime(proxy::run(*args)),
        Command::Worker(args) => on_runtime(worker::run(args)),
        Command::Send(args) => on_runtime(send::run(*args)),
        Command::Offline(args) => on_runtime(offline::run(args)),
        Command::Messages(args) => on_runtime(messages::run(*args)),
        Command::Queues(args) => on_runtime(queues::run(*args)),
        Command::Destinations(args) => on_runtime(destinations::run(*args)),
        Command::Alerts(args) => on_runtime(alerts::run(args)),
        Command::Check(args) => check::run(&args),
        Command::Probe(args) => on_runtime(probe::run(*args)),
        Command::Keys(args) => on_runtime(keys::run(*args)),
        Command::Dead(args) => on_runtime(dead::run(*args)),
        Command::MockBroker(args) => on_runtime(mock_broker::run(args)),
        Command::Judge(args) => on_runtime(judge::run(*args)),
        Command::Audit(args) => on_runtime(audit::run(args)),
        Command::Token(args) => on_runtime(token::run(args)),
        Command::Config(args) => config::run(&args),
        Command::Doctor(args) => on_runtime(doctor::run(args)),
        Command::Healthcheck(args) => on_runtime(healthcheck::run(args)),
        Command::Backup(args) => on_runtime(backup::run(args)),
        Command::Completions(args) => completions::run(&args, Cli::command()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(exit) => exit.report(&path(&matches)),
    }
}

/// Returns the full name of the command that was run, such as `dead list`.
fn path(mut matches: &ArgMatches) -> String {
    let mut names = Vec::new();
    while let Some((name, below)) = matches.subcommand() {
        names.push(name);
        matches = below;
    }
    names.join(" ")
}

/// Sets up the log on standard error and, if traces are exported, the trace layer.
fn init_logging(level: LevelFilter) {
    let is_log = filter_fn(|about| !traces::is_span_target(about.target()));
    let stderr = tracing_subscriber::fmt::layer().with_writer(|| LogWriter).with_filter(level.and(is_log));
    tracing_subscriber::registry().with(stderr).with(traces::layer()).init();
}

fn on_runtime(work: impl Future<Output = Result<(), Exit>>) -> Result<(), Exit> {
    // As one type, or the runtime would be compiled for each command.
    let work: std::pin::Pin<Box<dyn Future<Output = Result<(), Exit>> + '_>> = Box::pin(work);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Exit::Failed(format!("cannot start the async runtime: {error}")))?;
    let ended = runtime.block_on(async {
        let ended = work.await;
        store::close().await;
        ended
    });
    // Everything was asked to stop and had time to. A thread that hangs in a name lookup must not delay the exit.
    runtime.shutdown_background();
    ended
}

#[cfg(test)]
mod tests {
    use ichido_core::alert::AlertRule;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        with_help(Cli::command()).debug_assert();
    }

    /// Commands without `--json`: those that run until stopped, and `completions`.
    const NOT_FOR_PROGRAMS: [&str; 6] = ["demo", "serve", "proxy", "worker", "mock-broker", "completions"];

    #[test]
    fn every_command_with_a_result_has_json_output() {
        fn check(command: &clap::Command, path: &str) -> usize {
            let below: Vec<_> = command.get_subcommands().collect();
            if below.is_empty() {
                let has = command.get_arguments().any(|argument| argument.get_long() == Some("json"));
                assert!(has, "{path} has no --json");
                return 1;
            }
            below.iter().map(|below| check(below, &format!("{path} {}", below.get_name()))).sum()
        }
        let mut all = with_help(Cli::command());
        all.build();
        let commands =
            all.get_subcommands().filter(|command| !NOT_FOR_PROGRAMS.contains(&command.get_name()));
        let leaves: usize = commands.map(|command| check(command, command.get_name())).sum();
        assert!(25 < leaves, "{leaves} commands are too few to be all");
    }

    /// On-call operators must be able to copy commands from these pages.
    #[test]
    fn every_command_on_operator_pages_parses() {
        let pages =
            [include_str!("../../../docs/runbook.md"), include_str!("../../../docs/guides/run-a-server.md")];
        let lines = pages.iter().flat_map(|page| page.lines()).map(str::trim);
        let commands: Vec<&str> = lines.filter(|line| line.starts_with("ichido ")).collect();
        assert!(20 < commands.len(), "{} commands are too few to be all", commands.len());
        for command in commands {
            let plain = command.split(['#', '&', '|', '>']).next().unwrap_or_default();
            // Quoted text is one argument.
            let quoted = |(number, part): (usize, &str)| match number % 2 {
                0 => part.split_whitespace().map(str::to_owned).collect(),
                _ => vec![part.to_owned()],
            };
            let words = plain.split('"').enumerate().flat_map(quoted).map(|word| match &*word {
                "ID" => "01a1df2e-24dc-702a-8000-3798d20b2380".to_owned(),
                _ => word,
            });
            if let Err(error) = Cli::try_parse_from(words) {
                panic!("{command}: {error}");
            }
        }
    }

    #[test]
    fn runbook_covers_every_alert() {
        let runbook = include_str!("../../../docs/runbook.md");
        for rule in AlertRule::ALL {
            assert!(runbook.contains(&format!("`{}`", rule.as_str())), "{rule:?}");
        }
    }
}
