//! `ichido audit`: seals the audit trail and detects tampering.
//!
//! Guarantee: `verify` exits with 0 only if nothing differs from what was sealed and every entry follows the rules.
//! It names each entry that does not, and states what it could not prove. The key is read from a file and never
//! shown.
// Spec: F5.

mod report;

use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use ichido_core::audit::AuditKey;
use ichido_core::audit::seal::Head;
use ichido_core::settings::ConfigErrors;
use ichido_server::admin::{self, Sealed};
use serde_json::json;

use crate::exit::Exit;
use crate::out;
use crate::store::{open_existing, resolve_url};

const AFTER_HELP: &str = "\
Entries are sealed in spans, each seal chained to the one before it. Make a key by `openssl rand -hex 32`, keep it where who
can write the database cannot read it, and keep the line of `ichido audit head` somewhere else as well: a head shows when the
last seals were cut off.

Every entry, sealed or not, must follow by the rules from the one before it, have a fence that was issued, and agree with the row
that holds its message now. `seal` seals an entry that does not follow as such: `verify` names it from then on. What the rules
allow cannot be told from the truth before it is sealed, so seal often.

Exit code: 0 when nothing was tampered with, 1 when there are findings, 2 when the trail cannot be read, and 3 when its store
was not reached.

Examples:
  ichido audit seal   --store sqlite:ichido.db --key-file audit.key
  ichido audit head   --store sqlite:ichido.db > head.txt
  ichido audit verify --store sqlite:ichido.db --key-file audit.key --head \"$(cat head.txt)\"";

/// What `ichido audit` is told.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    /// Where messages are kept: sqlite:FILE or postgres://… [default: as the configuration says, else sqlite:ichido.db]
    #[arg(long, global = true, value_name = "URL", env = "ICHIDO_STORE", hide_env_values = true)]
    store: Option<String>,
    /// The configuration that names the store [default: ichido.toml, if it is there]
    #[arg(long, global = true, value_name = "FILE", env = "ICHIDO_CONFIG")]
    config: Option<PathBuf>,
    /// The file that holds the key of the seals, at least 32 bytes
    #[arg(long, global = true, value_name = "FILE", env = "ICHIDO_AUDIT_KEY_FILE")]
    key_file: Option<PathBuf>,
    /// How to show it
    #[arg(long, global = true, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// The same as --format json
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Find entries that were changed, removed, inserted or made up
    Verify {
        /// A line of `ichido audit head` that was kept: that seal must be in the chain
        #[arg(long, value_name = "EXPORTED")]
        head: Option<String>,
    },
    /// Show the last seal, to be kept elsewhere
    Head,
    /// Seal what is not sealed yet
    Seal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Human,
    /// One JSON object
    Json,
}

/// Runs the command.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let mut faults = ConfigErrors::default();
    let url = resolve_url(args.store, args.config).map_err(|found| faults.join(found)).ok();
    let key = args.key_file.as_deref().and_then(|path| read_key(path, &mut faults));
    let head = match &args.command {
        Command::Verify { head: Some(text) } => parse_head(text, &mut faults),
        _ => None,
    };
    let store = open_existing(&faults.or(url)?).await.map_err(unreadable)?;
    let (key, format) = (key.as_ref(), if args.json { Format::Json } else { args.format });
    match args.command {
        Command::Verify { .. } => {
            let report = admin::verify(&store, key, head).await;
            let report = report.map_err(|error| unreadable(error.into()))?;
            match format {
                Format::Human => out::print(&report::render_text(&report, head.is_some()))?,
                Format::Json => out::print_line(report::render_json(&report))?,
            }
            if report.is_whole() { Ok(()) } else { Err(Exit::Findings) }
        }
        Command::Head => match (admin::head(&store).await?, format) {
            (Some(head), Format::Human) => out::print_line(head),
            (Some(head), Format::Json) => out::print_line(report::render_head(&head)),
            (None, _) => Err(Exit::Failed("nothing is sealed yet; `ichido audit seal` does it".to_owned())),
        },
        Command::Seal => report_sealed(admin::seal(&store, key).await?, key.is_some(), format),
    }
}

/// Reads the key from a file. Errors do not repeat its contents.
fn read_key(path: &Path, faults: &mut ConfigErrors) -> Option<AuditKey> {
    let flag = format!("--key-file {}", path.display());
    let bytes = std::fs::read(path).map_err(|error| format!("it cannot be read: {error}"));
    let key = bytes.and_then(|bytes| AuditKey::parse(&bytes).map_err(|error| error.to_string()));
    faults.check(&flag, key)
}

fn parse_head(text: &str, faults: &mut ConfigErrors) -> Option<Head> {
    let head = Head::parse(text);
    if head.is_none() {
        faults.add(
            "--head",
            "this is no head: give the line that `ichido audit head` printed, as in ichido-audit-1:…",
        );
    }
    head
}

/// Maps an unreadable trail to code 2: it is neither intact nor tampered with.
fn unreadable(exit: Exit) -> Exit {
    match exit {
        Exit::Failed(why) => Exit::invalid("--store", why),
        exit => exit,
    }
}

fn report_sealed(sealed: Sealed, keyed: bool, format: Format) -> Result<(), Exit> {
    let Sealed { seals, entries, misfits } = sealed;
    match format {
        Format::Human => {
            let unkeyed = if keyed {
                ""
            } else {
                ", without a key: who can write the database can make such seals anew (--key-file)"
            };
            out::print_line(format_args!("sealed {entries} entries in {seals} seals{unkeyed}"))?;
            if 0 < misfits {
                out::print_line(format_args!(
                    "{misfits} of these entries do not follow by the rules, and were sealed as such; `ichido audit verify` names them"
                ))?;
            }
        }
        Format::Json => {
            let object =
                json!({ "seals": seals, "entries": entries, "do_not_follow": misfits, "keyed": keyed });
            out::print_line(object)?;
        }
    }
    if 0 < misfits { Err(Exit::Findings) } else { Ok(()) }
}
