// `tests/it/guide.rs` includes this file, which is why it does not open with `//!`.

use std::error::Error;
use std::io::ErrorKind;
use std::path::Path;

use http::Method;
use ichido_client::next::Refusal;
use ichido_client::{Action, ActionError, Client, ClientSettings, Outcome, Problems, fresh_key};
use ichido_core::key::IdempotencyKey;
use ichido_core::verdict::Effect;

/// One order, pressed twice, and then a mistake; and what came of each.
pub(crate) async fn run(url: &str, kept: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let client = client(url)?;
    let order = Order::pressed(kept, r#"{"symbol":"ACME","intent":"buy","qty":"10"}"#)?;
    let mut lines = Vec::new();
    for press in ["first press", "second press"] {
        let outcome = client.send(&order.action()?).await;
        lines.push(format!("{press}: {}", told(&outcome)));
        if !matches!(outcome, Outcome::Done { .. }) {
            // It stays in the file, for the next run to go on with.
            return Ok(lines);
        }
    }
    let mistaken = Order { body: r#"{"symbol":"ACME","intent":"sell","qty":"9"}"#.to_owned(), ..order };
    lines.push(format!("another body: {}", told(&client.send(&mistaken.action()?).await)));
    std::fs::remove_file(kept)?;
    Ok(lines)
}

fn client(url: &str) -> Result<Client, Problems> {
    ClientSettings::new(url).resolve()
}

/// What a person asked for, and the key that it has for good.
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
                let order = Self { key: fresh_key()?, body: body.to_owned() };
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

fn told(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done { answer, .. } if answer.is_replay() => "done before; the same answer again".to_owned(),
        Outcome::Done { tries, .. } => format!("done, at try {tries}"),
        Outcome::Refused { reason: Refusal::KeyConflict, .. } => {
            "our mistake: this key belongs to another order".to_owned()
        }
        Outcome::Refused { answer, reason, .. } => {
            let why = answer.problem().detail.unwrap_or_else(|| reason.to_string());
            format!("refused: {why}")
        }
        Outcome::GaveUp { effect: Effect::NotDone, why, .. } => format!("not sent: {why}"),
        Outcome::GaveUp { why, .. } => format!("perhaps done, perhaps not: {why}"),
    }
}
