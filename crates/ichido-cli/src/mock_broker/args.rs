//! The flags of `ichido paper`, before validation.

/// What `ichido paper` is told.
#[expect(clippy::doc_markdown, reason = "the help is read in a terminal, where backticks are noise")]
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to listen; port 0 takes a free one, an address beyond loopback opens it to others
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8090")]
    pub(crate) listen: String,

    /// Whether a key takes effect once, however often it comes
    #[arg(long, value_name = "true|false", default_value_t = true, action = clap::ArgAction::Set)]
    pub(crate) honours_keys: bool,

    /// Refuse a call whose Ichido-Fence is lower than the highest one seen for its key
    #[arg(long)]
    pub(crate) refuses_old_fences: bool,

    /// How long every order waits for its answer
    #[arg(long, value_name = "TIME", default_value = "0ms")]
    pub(crate) latency: String,

    /// A way to fail, and for how much of the calls, such as reset_after=0.05; may be repeated
    #[arg(long, value_name = "KIND=RATE", long_help = ichido_mock_broker::help())]
    pub(crate) fault: Vec<String>,

    /// Fail only calls that have this text in their body; the others are answered well [default: any]
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) fault_text: String,

    /// How much longer than the others a slow answer takes
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub(crate) slow: String,

    /// What Retry-After says with a 429, in whole seconds
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) retry_after: String,

    /// What the dice begin with, so that the same faults come again [default: any]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
}
