//! The flags of `ichido mock-broker`, before validation.

/// Arguments of the mock broker.
#[expect(clippy::doc_markdown, reason = "the help is read in a terminal, where backticks are noise")]
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Listen address; port 0 is any free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8090")]
    pub(crate) listen: String,

    /// Deduplicate orders by key
    #[arg(long, value_name = "true|false", default_value_t = true, action = clap::ArgAction::Set)]
    pub(crate) deduplicates: bool,

    /// Refuse a call whose Ichido-Fence is older than the last
    #[arg(long)]
    pub(crate) refuses_old_fences: bool,

    /// Delay of every response
    #[arg(long, value_name = "TIME", default_value = "0ms")]
    pub(crate) latency: String,

    /// Fault and its rate, such as reset_after=0.05; repeatable
    #[arg(long, value_name = "KIND=RATE", long_help = ichido_mock_broker::help())]
    pub(crate) fault: Vec<String>,

    /// Fail only calls with this text in the body [default: all]
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) fault_text: String,

    /// Additional delay of a slow response
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub(crate) slow: String,

    /// Retry-After of a 429 response, in whole seconds
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) retry_after: String,

    /// Random seed, to reproduce the same faults [default: random]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
}
