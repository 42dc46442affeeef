//! Finds what was done under a key, or under a hash from a log.

use form_urlencoded::Serializer;
use ichido_core::key::{IdempotencyKey, KeyHash, KeySyntax};
use ichido_core::settings::ConfigErrors;
use ichido_core::text::table::Column;
use ichido_core::text::visible;
use ichido_server::serve::views::{KeyEvent, KeyRecord, KeysFound};

use crate::api_client::{ApiClient, ConnectArgs};
use crate::exit::Exit;
use crate::out;

#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(group(clap::ArgGroup::new("subject").args(["key", "hash"]).required(true)))]
pub(crate) struct Args {
    /// Idempotency key
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Hash of a key, as in logs
    #[arg(long, value_name = "HASH")]
    hash: Option<String>,
    /// Find only requests of this operation
    #[arg(long, value_name = "NAME", conflicts_with = "queue")]
    operation: Option<String>,
    /// Find only messages in this queue
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// Find only what belongs to this identity
    #[arg(long, value_name = "NAME")]
    identity: Option<String>,
}

pub(super) async fn run(args: Args, connect: ConnectArgs) -> Result<(), Exit> {
    args.check()?;
    let mut query = Serializer::new(String::new());
    let Args { key, hash, operation, queue, identity } = args;
    for (name, value) in
        [("key", key), ("hash", hash), ("operation", operation), ("queue", queue), ("identity", identity)]
    {
        query.extend_pairs(value.map(|value| (name, value)));
    }
    let api = ApiClient::open(connect).await?;
    let answer = api.get(&format!("/v1/keys?{}", query.finish())).await?;
    api.print(&answer, |found: KeysFound| render(&found))
}

impl Args {
    /// Reports all errors in the flags at once, before anything is opened.
    fn check(&self) -> Result<(), ConfigErrors> {
        let mut faults = ConfigErrors::default();
        if let Some(key) = &self.key {
            faults.check("--key", IdempotencyKey::parse_as(key, KeySyntax::AnyString));
        }
        if let Some(hash) = &self.hash {
            let what = "is not a hash from a log; write its 16 hex digits";
            faults.check("--hash", KeyHash::parse(hash).ok_or(what));
        }
        faults.or(Some(()))
    }
}

fn render(found: &KeysFound) -> String {
    let mut parts: Vec<String> = found.keys.iter().map(render_key).collect();
    if parts.is_empty() {
        parts.push("no request or message has this key".to_owned());
    }
    match &found.searched {
        Some(searched) if !found.is_complete => parts.push(format!(
            "searched the newest {} messages, since {}; for older ones use --key",
            searched.messages,
            visible(searched.since.as_deref().unwrap_or("now"))
        )),
        None if !found.is_complete => {
            parts.push("there may be more; name the operation or the queue, and the identity".to_owned());
        }
        _ => (),
    }
    parts.join("\n")
}

fn render_key(key: &KeyRecord) -> String {
    let facts = out::view().fields([
        (Column::text("kind"), Some(key.kind.clone())),
        (Column::text("key"), Some(key.idempotency_key.clone())),
        (Column::text("hash"), Some(key.key_hash.clone())),
        (Column::text("operation"), key.operation.clone()),
        (Column::text("queue"), key.queue.clone()),
        (Column::text("identity"), Some(key.identity.clone())),
        (Column::state("state"), Some(key.state.clone())),
        (Column::text("request"), Some(key.request_digest.clone())),
        (Column::text("result"), key.result_digest.clone()),
        (Column::past("created"), Some(key.created_at.clone())),
        (Column::past("completed"), key.completed_at.clone()),
        (Column::next("expires"), key.expires_at.clone()),
        (Column::text("sent again"), key.replays.as_ref().map(|replays| format!("{}×", replays.count))),
        (Column::text("message"), key.message.clone()),
        (Column::text("hops"), key.hops.clone()),
        (Column::text("trace"), key.trace.clone()),
    ]);
    facts + &out::view().fields(key.history.iter().map(|event| (Column::text(""), Some(render_event(event)))))
}

fn render_event(event: &KeyEvent) -> String {
    let by = event.actor.as_ref().map(|actor| format!(" by {actor}")).unwrap_or_default();
    format!("{} {} → {} ({}{by})", event.at, event.from, event.to, event.kind)
}
