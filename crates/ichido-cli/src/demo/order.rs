//! What is sent: orders, payments and faxes, made up by dice.

use serde_json::json;

/// What is traded.
const SYMBOLS: [&str; 6] = ["ACME", "OSAKA", "TANGO", "BIRCH", "COBALT", "LUNA"];

ichido_core::words! {
    /// Where something is put in.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum DemoQueue {
        /// To a broker that honours keys.
        Orders = "orders",
        /// To an office that honours none, and can be asked.
        Payments = "payments",
        /// To an office that honours none, and cannot be asked.
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

/// One thing to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DemoOrder {
    pub(super) queue: DemoQueue,
    pub(super) key: String,
    /// What is traded, or who gets it.
    symbol: &'static str,
    intent: &'static str,
    qty: u32,
}

impl DemoOrder {
    /// The n-th of its queue.
    pub(super) fn new(queue: DemoQueue, number: u32, dice: &mut fastrand::Rng) -> Self {
        Self {
            queue,
            key: format!("{}-{number}", queue.item_name()),
            symbol: SYMBOLS[dice.usize(..SYMBOLS.len())],
            intent: if dice.bool() { "buy" } else { "sell" },
            qty: dice.u32(1..100),
        }
    }

    /// Another request under the same key, as somebody sends it who made a mistake.
    pub(super) fn with_other_body(&self) -> Self {
        Self { qty: self.qty + 1, ..self.clone() }
    }

    /// The request; of an order, in the form of SPEC D18.
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

    /// In a few words.
    pub(super) fn describe(&self) -> String {
        let Self { key, symbol, intent, qty, .. } = self;
        match self.queue {
            DemoQueue::Orders => format!("{key}: {intent} {qty} {symbol}"),
            DemoQueue::Payments => format!("{key}: {qty} EUR to {symbol}"),
            DemoQueue::Faxes => format!("{key}: {qty} pages to {symbol}"),
        }
    }
}
