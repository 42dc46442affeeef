//! The flags of `ichido proxy` as typed. [`super::settings`] resolves them and reports all errors at once.

use std::path::PathBuf;

use clap::ValueEnum;
use ichido_boundary::Party;

use ichido_http::server::bounds::ConnectionLimits;

/// Arguments of `ichido proxy`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Role: bff and gateway forward keys, adapter deduplicates requests
    #[arg(long, value_enum)]
    pub role: Role,

    /// URL of the upstream service, http:// or https://
    #[arg(long, value_name = "URL")]
    pub upstream: String,

    /// Root certificates for an https:// upstream, in PEM [default: the system's]
    #[arg(long, value_name = "FILE")]
    pub trusted_roots: Option<PathBuf>,

    /// Listen address; port 0: any free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub listen: String,

    /// Address for /livez, /readyz and /metrics [default: 127.0.0.1:9465 (bff), 9466 (gateway), 9467 (adapter)]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub admin: Option<String>,

    /// Boundary file; may be repeated; flags override it
    #[arg(long, value_name = "FILE")]
    pub boundary: Vec<PathBuf>,

    /// Name in the Ichido-Hops header [default: the role]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// What is forwarded.
    #[command(flatten)]
    pub passing: ForwardArgs,
    /// The arguments of an adapter.
    #[command(flatten)]
    pub adapter: AdapterArgs,
    /// The limits and timeouts.
    #[command(flatten)]
    pub bounds: ConnectionLimits,

    /// Timeout for connecting to the upstream
    #[arg(long, value_name = "TIME", default_value = "3s", help_heading = "Limits")]
    pub connect_timeout: String,
}

/// The position of a proxy in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    Bff,
    Gateway,
    Adapter,
}

impl Role {
    /// Returns the default port of `--admin`: one of each role can run on one machine.
    pub(crate) const fn admin_port(self) -> u16 {
        match self {
            Self::Bff => 9465,
            Self::Gateway => 9466,
            Self::Adapter => 9467,
        }
    }

    pub const fn party(self) -> Party {
        match self {
            Self::Bff => Party::Bff,
            Self::Gateway => Party::Gateway,
            Self::Adapter => Party::Adapter,
        }
    }
}

/// What is forwarded, and with how many attempts.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Forwarding")]
pub struct ForwardArgs {
    /// Methods that need a key [default: POST,PATCH]
    #[arg(long, value_name = "METHODS", value_delimiter = ',')]
    pub key_on: Option<Vec<String>>,

    /// Request headers to forward, besides key, hops and request id [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub allow_headers: Option<Vec<String>>,

    /// Request headers to drop; unusual names are always dropped
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub drop_headers: Option<Vec<String>>,

    /// Response headers to forward, besides those about the key [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub allow_response_headers: Option<Vec<String>>,

    /// Timeout of one attempt, until its response begins [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub attempt_timeout: Option<String>,

    /// bff, gateway: timeout for all attempts together [default: 30s]
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<String>,

    /// bff, gateway: attempts of a keyed POST [default: 1]
    #[arg(long, value_name = "COUNT")]
    pub attempts: Option<String>,

    /// bff, gateway: maximum backoff before attempt 2, 3, … [default: 100ms,200ms,400ms]
    #[arg(long, value_name = "TIMES", value_delimiter = ',')]
    pub backoff: Option<Vec<String>>,
}

/// The arguments of an adapter.
#[expect(clippy::doc_markdown, reason = "the help is read in a terminal, where backticks are noise")]
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Adapter")]
pub struct AdapterArgs {
    /// Store of the ledger: sqlite:FILE or postgres://…
    #[arg(long, value_name = "URL", env = "ICHIDO_STORE", hide_env_values = true)]
    pub store: Option<String>,

    /// Operation to deduplicate, such as "POST /v1/orders/{id}"; repeatable
    #[arg(long, value_name = "PATTERN")]
    pub operation: Vec<String>,

    /// idempotent: repeats are harmless; keyed: the service deduplicates by key; none [default: none]
    #[arg(long, value_name = "MODE")]
    pub guarantee: Option<String>,

    /// Class: mutate, irreversible, external_effect or billing [default: external_effect]
    #[arg(long, value_name = "CLASS")]
    pub class: Option<String>,

    /// How long to keep an outcome [default: 72h]
    #[arg(long, value_name = "TIME")]
    pub ttl: Option<String>,

    /// Reason for a --ttl of less than 24 hours
    #[arg(long, value_name = "REASON")]
    pub short_ttl_reason: Option<String>,

    /// keyed: how long the service keeps keys [default: 24h]
    #[arg(long, value_name = "TIME")]
    pub keeps_keys_for: Option<String>,

    /// Key for the service: client, or derived (with identity) [default: derived if keyed, not single]
    #[arg(long, value_name = "WHICH")]
    pub service_key: Option<String>,

    /// How long a key stays locked after a crash [default: 30s]
    #[arg(long, value_name = "TIME")]
    pub lease: Option<String>,

    /// Response status profile: ichido, ietf, stripe or acp [default: ichido]
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,

    /// Caller identity: header:NAME, jwt:CLAIM, jwt:TENANT,SUB, api-key:HEADER or single:NAME
    #[arg(long, value_name = "SOURCE")]
    pub identity: Option<String>,

    /// jwt: required algorithm, HS256, RS256 or ES256
    #[arg(long, value_name = "ALGORITHM")]
    pub jwt_algorithm: Option<String>,

    /// jwt: secret (HS256) or public key in PEM
    #[arg(long, value_name = "FILE")]
    pub jwt_key: Option<PathBuf>,

    /// jwt: required audience
    #[arg(long, value_name = "AUDIENCE")]
    pub jwt_audience: Option<String>,

    /// api-key: file with lines of `sha256:HEX IDENTITY`
    #[arg(long, value_name = "FILE")]
    pub api_keys: Option<PathBuf>,
}
