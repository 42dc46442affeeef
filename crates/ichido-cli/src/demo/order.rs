//! What is sent: orders, payments and faxes, made up by dice.

use serde_json::json;

/// What is traded.
const SYMBOLS: [&str; 6] = ["ACME", "OSAKA", "TANGO", "BIRCH", "COBALT", "LUNA"];

ichido_core::words! {
    /// Where something is put in.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Queue {
        /// To a broker that honours keys.
        Orders = "orders",
        /// To an office that honours none, and can be asked.
        Payments = "payments",
        /// To an office that honours none, and cannot be asked.
        Faxes = "faxes",
    }
}

impl Queue {
    const fn each(self) -> &'static str {
        match self {
            Self::Orders => "order",
            Self::Payments => "payment",
            Self::Faxes => "fax",
        }
    }
}

/// One thing to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) queue: Queue,
    pub(super) key: String,
    /// What is traded, or who gets it.
    symbol: &'static str,
    intent: &'static str,
    qty: u32,
}

impl Order {
    /// The n-th of its queue.
    pub(super) fn new(queue: Queue, number: u32, dice: &mut fastrand::Rng) -> Self {
        Self {
            queue,
            key: format!("{}-{number}", queue.each()),
            symbol: SYMBOLS[dice.usize(..SYMBOLS.len())],
            intent: if dice.bool() { "buy" } else { "sell" },
            qty: dice.u32(1..100),
        }
    }

    /// Another request under the same key, as somebody sends it who made a mistake.
    pub(super) fn other(&self) -> Self {
        Self { qty: self.qty + 1, ..self.clone() }
    }

    /// The request; of an order, in the form of SPEC D18.
    pub(super) fn body(&self) -> String {
        let Self { key, symbol, intent, qty, .. } = self;
        let body = match self.queue {
            Queue::Orders => {
                json!({ "idempotency_key": key, "symbol": symbol, "intent": intent, "qty": qty.to_string() })
            }
            Queue::Payments => {
                json!({ "idempotency_key": key, "to": symbol, "amount": format!("{qty} EUR") })
            }
            Queue::Faxes => json!({ "idempotency_key": key, "to": symbol, "pages": qty }),
        };
        body.to_string()
    }

    /// In a few words.
    pub(super) fn told(&self) -> String {
        let Self { key, symbol, intent, qty, .. } = self;
        match self.queue {
            Queue::Orders => format!("{key}: {intent} {qty} {symbol}"),
            Queue::Payments => format!("{key}: {qty} EUR to {symbol}"),
            Queue::Faxes => format!("{key}: {qty} pages to {symbol}"),
        }
    }
}
