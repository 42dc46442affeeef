//! The flags of `ichido proxy` as typed. [`super::settings`] resolves them and reports all errors at once.

use std::path::PathBuf;

use clap::ValueEnum;
use ichido_boundary::Party;

use ichido_http::server::bounds::Bounds;

/// What `ichido proxy` is told.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where in the chain it stands: bff and gateway check the key and pass it on; adapter completes idempotency
    #[arg(long, value_enum)]
    pub role: Role,

    /// Where requests go
    #[arg(long, value_name = "http://HOST:PORT")]
    pub upstream: String,

    /// Where to listen; port 0 takes a free one, an address beyond loopback opens it to others
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub listen: String,

    /// A boundary file in which the role receives or sends; give both to follow both. Flags win over it
    #[arg(long, value_name = "FILE")]
    pub boundary: Vec<PathBuf>,

    /// Its name in the header Ichido-Hops [default: the role]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// What may pass.
    #[command(flatten)]
    pub passing: ForwardArgs,
    /// What only an adapter is told.
    #[command(flatten)]
    pub adapter: AdapterArgs,
    /// How much it takes in, and how long it waits.
    #[command(flatten)]
    pub bounds: Bounds,

    /// How long connecting to the upstream may take
    #[arg(long, value_name = "TIME", default_value = "3s", help_heading = "Limits")]
    pub connect_timeout: String,
}

/// Where in the chain a proxy stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    Bff,
    Gateway,
    Adapter,
}

impl Role {
    pub const fn party(self) -> Party {
        match self {
            Self::Bff => Party::Bff,
            Self::Gateway => Party::Gateway,
            Self::Adapter => Party::Adapter,
        }
    }
}

/// What passes, and how often it is tried.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Passing on")]
pub struct ForwardArgs {
    /// The methods that need a key [default: POST,PATCH]
    #[arg(long, value_name = "METHODS", value_delimiter = ',')]
    pub key_on: Option<Vec<String>>,

    /// The request headers that pass, besides the key, hops and request id [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub allow_headers: Option<Vec<String>>,

    /// Request headers that never pass, such as x-user-id from a browser; names with _ or other signs never do
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub drop_headers: Option<Vec<String>>,

    /// The answers' headers that pass, besides those about the key [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub allow_answer_headers: Option<Vec<String>>,

    /// How long one try may take until its answer begins [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub try_timeout: Option<String>,

    /// bff, gateway: how long all tries may take [default: 30s]
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<String>,

    /// bff, gateway: tries of a POST with a key, after a network error or a 502, 503, 504 [default: 1]
    #[arg(long, value_name = "COUNT")]
    pub attempts: Option<String>,

    /// bff, gateway: the longest waits before the second, third … try [default: 100ms,200ms,400ms]
    #[arg(long, value_name = "TIMES", value_delimiter = ',')]
    pub backoff: Option<Vec<String>>,
}

/// What only the adapter needs.
#[expect(clippy::doc_markdown, reason = "the help is read in a terminal, where backticks are noise")]
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Adapter")]
pub struct AdapterArgs {
    /// Where outcomes are kept: sqlite:FILE or postgres://…
    #[arg(long, value_name = "URL", env = "ICHIDO_STORE", hide_env_values = true)]
    pub store: Option<String>,

    /// A request that takes effect, such as "POST /v1/orders/{id}"; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub operation: Vec<String>,

    /// Whether the service honours the key (keyed) or not (opaque) [default: opaque]
    #[arg(long, value_name = "MODE")]
    pub effect: Option<String>,

    /// mutate, irreversible, external_effect or billing [default: external_effect]
    #[arg(long, value_name = "CLASS")]
    pub class: Option<String>,

    /// How long an outcome is kept [default: 72h]
    #[arg(long, value_name = "TIME")]
    pub ttl: Option<String>,

    /// Why an outcome may be kept for less than 24 hours
    #[arg(long, value_name = "REASON")]
    pub short_ttl_reason: Option<String>,

    /// How long the service remembers a key, where it honours keys [default: 24h]
    #[arg(long, value_name = "TIME")]
    pub service_keeps_keys: Option<String>,

    /// The key that the service gets: client, or derived from it and who asks [default: derived where keyed and not single]
    #[arg(long, value_name = "WHICH")]
    pub service_key: Option<String>,

    /// How long a key stays blocked after a crash [default: 30s]
    #[arg(long, value_name = "TIME")]
    pub lease: Option<String>,

    /// Whose statuses to answer with: ichido, ietf or stripe [default: ichido]
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,

    /// Who asks: header:NAME, jwt:CLAIM or jwt:TENANT,SUB, api-key:HEADER, or single:NAME for one caller
    #[arg(long, value_name = "SOURCE")]
    pub identity: Option<String>,

    /// jwt: HS256, RS256 or ES256; no other is taken
    #[arg(long, value_name = "ALGORITHM")]
    pub jwt_algorithm: Option<String>,

    /// jwt: the secret (HS256) or the public key in PEM
    #[arg(long, value_name = "FILE")]
    pub jwt_key: Option<PathBuf>,

    /// jwt: the audience that tokens must be for
    #[arg(long, value_name = "AUDIENCE")]
    pub jwt_audience: Option<String>,

    /// api-key: lines of `sha256:HEX IDENTITY`
    #[arg(long, value_name = "FILE")]
    pub api_keys: Option<PathBuf>,
}
