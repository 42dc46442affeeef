//! `ichido audit`: seals the audit trail and detects tampering.
//!
//! Guarantee: `verify` exits with 0 only if nothing differs from what was sealed and every entry follows the rules.
//! It names each entry that does not, and states what it could not prove. The key is read from a file and never
//! shown.
// Spec: F5.

use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use ichido_core::audit::AuditKey;
use ichido_core::audit::seal::SealHead;
use ichido_core::settings::ConfigErrors;
use ichido_http::small_file;
use ichido_server::admin::{self, Sealed, audit_report};
use serde_json::json;

use crate::exit::Exit;
use crate::out;
use crate::store::open_existing;
use crate::target::StoreArgs;

const AFTER_HELP: &str = "\
Entries are sealed in batches, and each seal is chained to the previous one. Create a key with `openssl rand -hex 32` and store it
where users with write access to the database cannot read it. Save the output of `ichido audit head` elsewhere too: a saved head
reveals that the last seals were cut off.

Every entry, sealed or not, must be a valid successor of the previous one, have a fence that was issued, and match the current row
of its message. `seal` marks an invalid entry as such, and `verify` reports it from then on. A forged entry that is valid can only
be detected after the original was sealed, so seal often.

Settled key records are sealed too. Until a record expires, `verify` reports if it was changed or removed, with its operation,
identity and the hash of its key.

Exit code: 0 if the trail is intact, 1 for findings, 2 if the trail cannot be read, and 3 if the store cannot be reached.

Examples:
  ichido audit seal   --key-file audit.key
  ichido audit head   > head.txt
  ichido audit verify --key-file audit.key --head \"$(cat head.txt)\"";

/// Arguments of `ichido audit`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    store: StoreArgs,
    /// File with the seal key, at least 32 bytes
    #[arg(long, global = true, value_name = "FILE", env = "ICHIDO_AUDIT_KEY_FILE")]
    key_file: Option<PathBuf>,
    /// Output format
    #[arg(long, global = true, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Same as --format json
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Find changed, removed, inserted or forged entries, and changed or removed key records
    Verify {
        /// Saved output of `ichido audit head`; the chain must contain it
        #[arg(long, value_name = "EXPORTED")]
        head: Option<String>,
    },
    /// Print the last seal, to save elsewhere
    Head,
    /// Seal all unsealed entries and settled key records
    Seal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text for people
    Human,
    /// One JSON object
    Json,
}

/// Runs the command.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let mut faults = ConfigErrors::default();
    let found = args.store.find().map_err(|more| faults.join(more)).ok();
    let key = args.key_file.as_deref().and_then(|path| read_key(path, &mut faults));
    let head = match &args.command {
        Command::Verify { head: Some(text) } => parse_head(text, &mut faults),
        _ => None,
    };
    let store = open_existing(&faults.or(found)?).await.map_err(unreadable)?;
    let (key, format) = (key.as_ref(), if args.json { Format::Json } else { args.format });
    match args.command {
        Command::Verify { .. } => {
            let report = admin::verify(&store, key, head).await;
            let report = report.map_err(|error| unreadable(error.into()))?;
            match format {
                Format::Human => out::print(&audit_report::render_text(&report, head.is_some()))?,
                Format::Json => out::print_line(audit_report::render_json(&report))?,
            }
            if report.is_whole() { Ok(()) } else { Err(Exit::Findings) }
        }
        Command::Head => match (admin::head(&store).await?, format) {
            (Some(head), Format::Human) => out::print_line(head),
            (Some(head), Format::Json) => out::print_line(audit_report::render_head(&head)),
            (None, _) => Err(Exit::Failed("there are no seals yet; run `ichido audit seal`".to_owned())),
        },
        Command::Seal => report_sealed(admin::seal(&store, key).await?, key.is_some(), format),
    }
}

/// Reads the key from a file. Errors do not repeat its contents.
fn read_key(path: &Path, faults: &mut ConfigErrors) -> Option<AuditKey> {
    let flag = format!("--key-file {}", path.display());
    let bytes = small_file::read(path).map_err(|error| format!("cannot read it: {error}"));
    let key = bytes.and_then(|bytes| AuditKey::parse(&bytes).map_err(|error| error.to_string()));
    faults.check(&flag, key)
}

fn parse_head(text: &str, faults: &mut ConfigErrors) -> Option<SealHead> {
    let head = SealHead::parse(text);
    if head.is_none() {
        faults.add(
            "--head",
            "is not a head; pass the line that `ichido audit head` printed, such as ichido-audit-1:…",
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
    let Sealed { seals, entries, misfits, key_records } = sealed;
    match format {
        Format::Human => {
            let unkeyed = if keyed {
                ""
            } else {
                ", without a key: anyone with write access to the database can recreate them; pass --key-file"
            };
            out::print_line(format_args!("sealed {entries} entries in {seals} seals{unkeyed}"))?;
            if 0 < key_records {
                out::print_line(format_args!("sealed {key_records} key records, proven by these entries"))?;
            }
            if 0 < misfits {
                out::print_line(format_args!(
                    "{misfits} of these entries are invalid and were sealed as such; run `ichido audit verify` to list them"
                ))?;
            }
        }
        Format::Json => {
            let object = json!({
                "seals": seals, "entries": entries, "invalid": misfits, "key_records": key_records, "keyed": keyed,
            });
            out::print_line(object)?;
        }
    }
    if 0 < misfits { Err(Exit::Findings) } else { Ok(()) }
}
