//! The flags of `ichido probe`.

use std::path::PathBuf;

const AFTER_HELP: &str = "\
Each rule of docs/probe gets a verdict: pass, fail, not applicable, or unverified. Effects are counted by --count or --count-command; without \
a counter no rule about effects passes. In the path, the body, the headers and --count, {marker} stands for a text of each rule's own, and \
{unique} for one of each key's own, for an API that deduplicates by content as well.

Some rules need help of the API: --second-identity for leaks, --crash to kill and restart it, and --provoke CONDITION='HEADER: VALUE' for a \
test build that behaves in a certain way: slow, fail, limit, outlast (longer than a lease) or large.

--webhook tests a consumer of Standard Webhooks instead. Its secret is read from --secret-file.

Nothing is sent that was not shown; --dry-run shows all of it. Beyond this machine, and for each operation of --openapi, the command asks \
first, unless --yes is given.

Exit code: 0 if no rule of severity error is broken, 1 if one is, nothing could be tested or the run is incomplete, 2 for a usage or \
configuration error, and 3 if it was stopped; the API is then recovered first.

Examples:
  ichido probe http://127.0.0.1:8080/orders --body '{\"item\":\"tea\",\"ref\":\"{marker}\"}' --count 'GET /orders?ref={marker}' --at /total
  ichido probe --profile ietf --baseline probe.json --junit probe.xml -- curl -X POST -d item=tea http://127.0.0.1:8080/orders
  ichido probe --webhook http://127.0.0.1:8080/hooks --secret-file secret --body '{\"id\":\"{marker}\"}'";

/// Arguments of `ichido probe`.
#[expect(clippy::doc_markdown, reason = "the help is read in a terminal, where backticks are noise")]
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// URL of the operation; with --openapi, of the API [default: its server]
    #[arg(value_name = "URL", required_unless_present_any = ["webhook", "curl", "openapi"])]
    pub(super) url: Option<String>,

    /// URL of a webhook's consumer to test instead
    #[arg(long, value_name = "URL", conflicts_with_all = ["url", "openapi", "curl"], requires = "secret_file")]
    pub(super) webhook: Option<String>,

    /// File with the consumer's signing secret
    #[arg(long, value_name = "FILE", requires = "webhook")]
    pub(super) secret_file: Option<PathBuf>,

    /// Method of the operation [default: POST]
    #[arg(long, value_name = "METHOD")]
    pub(super) method: Option<String>,

    /// Body of the operation; @FILE reads a file
    #[arg(long, value_name = "TEXT")]
    pub(super) body: Option<String>,

    /// Header of each request; repeatable
    #[arg(long = "header", value_name = "HEADER: VALUE")]
    pub(super) headers: Vec<String>,

    /// Expected convention: ichido, ietf, stripe or acp
    #[arg(long, value_name = "PROFILE", default_value = "ichido")]
    pub(super) profile: String,

    /// Request that counts effects, such as 'GET /orders?ref={marker}'
    #[arg(long, value_name = "GET PATH", conflicts_with = "count_command")]
    pub(super) count: Option<String>,

    /// Pointer to the number or list in that response [default: the whole]
    #[arg(long, value_name = "POINTER", requires = "count")]
    pub(super) at: Option<String>,

    /// Command that prints the number of effects of $PROBE_MARKER
    #[arg(long, value_name = "COMMAND")]
    pub(super) count_command: Option<String>,

    /// Pointer to the member that makes another body [default: chosen]
    #[arg(long, value_name = "POINTER")]
    pub(super) vary: Option<String>,

    /// Header of another caller, to look for leaks
    #[arg(long, value_name = "HEADER: VALUE")]
    pub(super) second_identity: Option<String>,

    /// Header of the same caller with another credential
    #[arg(long, value_name = "HEADER: VALUE")]
    pub(super) fresh_credential: Option<String>,

    /// Another operation that takes the same body
    #[arg(long, value_name = "METHOD PATH")]
    pub(super) other_operation: Option<String>,

    /// Header that provokes slow, fail, limit, outlast or large; repeatable
    #[arg(long, value_name = "CONDITION=HEADER: VALUE")]
    pub(super) provoke: Vec<String>,

    /// Command that kills and restarts the API
    #[arg(long, value_name = "COMMAND")]
    pub(super) crash: Option<String>,

    /// Command that makes all stored keys expire
    #[arg(long, value_name = "COMMAND")]
    pub(super) expire: Option<String>,

    /// Command that stops the store of keys
    #[arg(long, value_name = "COMMAND", requires = "recover")]
    pub(super) outage: Option<String>,

    /// Command that starts the store of keys again
    #[arg(long, value_name = "COMMAND", requires = "outage")]
    pub(super) recover: Option<String>,

    /// OpenAPI document (JSON); tests its state-changing operations
    #[arg(long, value_name = "FILE", conflicts_with_all = ["method", "body", "curl"])]
    pub(super) openapi: Option<PathBuf>,

    /// File of accepted deviations, rule by rule with a reason
    #[arg(long, value_name = "FILE")]
    pub(super) baseline: Option<PathBuf>,

    /// Send races over HTTP/2; with https:// it is negotiated
    #[arg(long)]
    pub(super) http2: bool,

    /// Show what would be sent, and send nothing
    #[arg(long)]
    pub(super) dry_run: bool,

    /// Maximum number of requests to one operation
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    pub(super) max_requests: usize,

    /// Maximum duration of the test of one operation
    #[arg(long, value_name = "TIME", default_value = "5m")]
    pub(super) max_time: String,

    /// Timeout of a request and of a command
    #[arg(long, value_name = "TIME", default_value = "15s")]
    pub(super) timeout: String,

    /// Do not ask before requests are sent
    #[arg(long)]
    pub(super) yes: bool,

    /// Print JSON, with a transcript for each rule
    #[arg(long)]
    pub(super) json: bool,

    /// Also write the verdicts as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(super) junit: Option<PathBuf>,

    /// Also write the broken rules as SARIF
    #[arg(long, value_name = "FILE")]
    pub(super) sarif: Option<PathBuf>,

    /// The operation as a curl command, after --
    #[arg(last = true, value_name = "curl …", conflicts_with_all = ["url", "method", "body"])]
    pub(super) curl: Vec<String>,
}
