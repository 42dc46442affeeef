//! Lists messages.

use clap::builder::PossibleValuesParser;
use ichido_core::lifecycle::StateName;
use ichido_core::settings::ConfigErrors;
use ichido_core::text::table::Column;
use ichido_http::clock;
use ichido_server::serve::views::MessageFacts;

use crate::api_client::{ApiClient, List, format};
use crate::dead::moment;
use crate::exit::Exit;

/// The maximum number of messages in a list.
const MAX_LIMIT: u32 = 100_000;
/// The API's limit on the messages of one page.
const MAX_PAGE: u32 = 200;

/// Selects messages; all given filters must match.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// In this queue
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// In this state
    #[arg(long, value_parser = PossibleValuesParser::new(StateName::ALL.map(StateName::as_str)))]
    state: Option<String>,
    /// With this idempotency key
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// From this identity
    #[arg(long, value_name = "NAME")]
    identity: Option<String>,
    /// With this trace id in the request
    #[arg(long, value_name = "ID")]
    trace_id: Option<String>,
    /// With this last error code, such as `BROKER_5XX`
    #[arg(long, value_name = "CODE")]
    error: Option<String>,
    /// Created since: a time, or an age such as 2h
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Created before: a time, or an age
    #[arg(long, value_name = "TIME")]
    before: Option<String>,
    /// JSON pointer in the request to compare with --value
    #[arg(long, value_name = "POINTER", requires = "value")]
    field: Option<String>,
    /// Value at --field: JSON, or the bare text of a string
    #[arg(long, value_name = "VALUE", requires = "field")]
    value: Option<String>,
    /// Maximum number of messages
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_LIMIT)))]
    limit: u32,
    /// Cursor printed after the previous page
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
}

impl Args {
    /// Returns the query for the API, without paging.
    pub(super) fn query(&self) -> Result<Vec<(&'static str, String)>, ConfigErrors> {
        let mut faults = ConfigErrors::default();
        let now = clock::now();
        let mut time = |flag: &str, text: &Option<String>| {
            let moment = text.as_deref().and_then(|text| faults.check(flag, moment(text, now)));
            moment.map(|moment| moment.to_string())
        };
        let from = time("--from", &self.from);
        let before = time("--before", &self.before);
        let all = [
            ("queue", self.queue.clone()),
            ("state", self.state.clone()),
            ("key", self.key.clone()),
            ("identity", self.identity.clone()),
            ("trace_id", self.trace_id.clone()),
            ("code", self.error.clone()),
            ("created_from", from),
            ("created_before", before),
            ("field", self.field.clone()),
            ("value", self.value.clone()),
        ];
        let given = all.into_iter().filter_map(|(name, value)| Some((name, value?)));
        faults.or(Some(given.collect()))
    }
}

const HEAD: [Column; 11] = [
    Column::past("CREATED"),
    Column::id("ID"),
    Column::text("QUEUE"),
    Column::free("IDENTITY").spare(),
    Column::free("ITEM").spare(),
    Column::free("KEY"),
    Column::state("STATE"),
    Column::next("NEXT"),
    Column::text("ATTEMPTS").spare(),
    Column::text("EFFECT").spare(),
    Column::free("ERROR"),
];

pub(super) async fn run(api: &ApiClient, query: Vec<(&'static str, String)>, args: Args) -> Result<(), Exit> {
    let list = List {
        query,
        max_page: Some(MAX_PAGE),
        limit: args.limit,
        after: args.after,
        has_after: true,
        none: "no matching messages",
        ..List::new("/v1/messages", "messages", HEAD)
    };
    api.list(list, row).await
}

fn row(message: MessageFacts) -> [String; 11] {
    // What a sent message failed with before is in its history.
    let error = message.last_error.as_ref().filter(|_| message.status != StateName::Sent.as_str());
    let error = format::last_error(error).unwrap_or_default();
    [
        message.created_at,
        message.id.to_string(),
        message.queue,
        message.identity,
        message.item.unwrap_or_default(),
        message.idempotency_key,
        message.status,
        message.next_attempt_at.unwrap_or_default(),
        format!("{}/{}", message.attempts, message.max_attempts),
        format::effect(&message.effect),
        error,
    ]
}
