// `tests/it/guide.rs` includes this file, which is why it does not open with `//!`.

use std::error::Error;
use std::io::ErrorKind;
use std::path::Path;

use http::Method;
use ichido_client::decision::RefusalReason;
use ichido_client::{
    Action, ActionError, Client, ClientConfigErrors, ClientSettings, Effect, IdempotencyKey, Outcome, new_key,
};

/// Sends one order twice, then a mistaken one. Returns the outcomes as text.
pub(crate) async fn run(url: &str, kept: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let client = client(url)?;
    let order = Order::pressed(kept, r#"{"symbol":"ACME","intent":"buy","qty":"10"}"#)?;
    let mut lines = Vec::new();
    for press in ["first press", "second press"] {
        let outcome = client.send(&order.action()?).await;
        lines.push(format!("{press}: {}", describe(&outcome)));
        if !matches!(outcome, Outcome::Done { .. }) {
            // The order stays in the file for the next run.
            return Ok(lines);
        }
    }
    let mistaken = Order { body: r#"{"symbol":"ACME","intent":"sell","qty":"9"}"#.to_owned(), ..order };
    lines.push(format!("different body: {}", describe(&client.send(&mistaken.action()?).await)));
    std::fs::remove_file(kept)?;
    Ok(lines)
}

fn client(url: &str) -> Result<Client, ClientConfigErrors> {
    ClientSettings::new(url).resolve()
}

/// A person's order and its permanent key.
struct Order {
    key: IdempotencyKey,
    body: String,
}

impl Order {
    /// The order that waits for its outcome since an earlier run, or a new one.
    fn pressed(kept: &Path, body: &str) -> Result<Self, Box<dyn Error>> {
        match std::fs::read_to_string(kept) {
            Ok(text) => {
                let (key, body) = text.split_once('\n').ok_or("the file has no key")?;
                Ok(Self { key: IdempotencyKey::parse(key)?, body: body.to_owned() })
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let order = Self { key: new_key()?, body: body.to_owned() };
                std::fs::write(kept, format!("{}\n{}", order.key.as_str(), order.body))?;
                Ok(order)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn action(&self) -> Result<Action, ActionError> {
        let (key, body) = (self.key.clone(), self.body.clone());
        Action::new(Method::POST, "/v1/queues/demo/messages", key, "application/json", body)
    }
}

fn describe(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done { answer, .. } if answer.is_replay() => {
            "already done; replayed the first response".to_owned()
        }
        Outcome::Done { attempts, .. } => format!("done on attempt {attempts}"),
        Outcome::Refused { reason: RefusalReason::KeyConflict, .. } => {
            "conflict: this key belongs to another order".to_owned()
        }
        Outcome::Refused { answer, reason, .. } => {
            let why = answer.problem().detail.unwrap_or_else(|| reason.to_string());
            format!("refused: {why}")
        }
        Outcome::GaveUp { effect: Effect::NotDone, why, .. } => format!("not sent: {why}"),
        Outcome::GaveUp { why, .. } => format!("outcome unknown: {why}"),
    }
}
