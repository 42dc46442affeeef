//! What is sent: random orders, payments and faxes.

use serde_json::json;

/// The symbols that are traded.
const SYMBOLS: [&str; 6] = ["ACME", "OSAKA", "TANGO", "BIRCH", "COBALT", "LUNA"];

ichido_core::words! {
    /// The queue of an order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum DemoQueue {
        /// To a broker that deduplicates by key.
        Orders = "orders",
        /// To an office that ignores keys but can be asked for the outcome.
        Payments = "payments",
        /// To an office that ignores keys and cannot be asked.
        Faxes = "faxes",
    }
}

impl DemoQueue {
    const fn item_name(self) -> &'static str {
        match self {
            Self::Orders => "order",
            Self::Payments => "payment",
            Self::Faxes => "fax",
        }
    }
}

/// An order, payment or fax to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DemoOrder {
    pub(super) queue: DemoQueue,
    pub(super) key: String,
    /// The traded symbol, or the recipient.
    symbol: &'static str,
    intent: &'static str,
    qty: u32,
}

impl DemoOrder {
    /// Creates the order with this number in its queue.
    pub(super) fn new(queue: DemoQueue, number: u32, dice: &mut fastrand::Rng) -> Self {
        Self {
            queue,
            key: format!("{}-{number}", queue.item_name()),
            symbol: SYMBOLS[dice.usize(..SYMBOLS.len())],
            intent: if dice.bool() { "buy" } else { "sell" },
            qty: dice.u32(1..100),
        }
    }

    /// Returns a different request under the same key, like a caller's mistake.
    pub(super) fn with_other_body(&self) -> Self {
        Self { qty: self.qty + 1, ..self.clone() }
    }

    /// Returns the request body.
    // Orders have the form of spec D18.
    pub(super) fn body(&self) -> String {
        let Self { key, symbol, intent, qty, .. } = self;
        let body = match self.queue {
            DemoQueue::Orders => {
                json!({ "idempotency_key": key, "symbol": symbol, "intent": intent, "qty": qty.to_string() })
            }
            DemoQueue::Payments => {
                json!({ "idempotency_key": key, "to": symbol, "amount": format!("{qty} EUR") })
            }
            DemoQueue::Faxes => json!({ "idempotency_key": key, "to": symbol, "pages": qty }),
        };
        body.to_string()
    }

    /// Describes the order in a few words.
    pub(super) fn describe(&self) -> String {
        let Self { key, symbol, intent, qty, .. } = self;
        match self.queue {
            DemoQueue::Orders => format!("{key}: {intent} {qty} {symbol}"),
            DemoQueue::Payments => format!("{key}: {qty} EUR to {symbol}"),
            DemoQueue::Faxes => format!("{key}: {qty} pages to {symbol}"),
        }
    }
}
