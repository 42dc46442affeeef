//! The table of the outbox: rates, latencies and memory, each beside its floor and its peer.

use std::fmt::Write as _;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetricUnit {
    /// Higher is better.
    PerSecond,
    /// Lower is better.
    Seconds,
    /// Lower is better, and the target is a maximum in megabytes.
    Kilobytes,
}

/// One row.
pub(super) struct Row {
    pub(super) work: String,
    pub(super) ours: f64,
    pub(super) floor: Option<f64>,
    pub(super) peer: Option<f64>,
    pub(super) unit: MetricUnit,
    /// The target of the ratio to the peer, or a maximum.
    pub(super) target: f64,
}

impl Row {
    fn text(&self) -> String {
        let show = |number: Option<f64>| number.map(|number| self.unit.text(number)).unwrap_or_default();
        let ratio = |to: Option<f64>| to.map(|to| format!("{:.2}", self.ours / to)).unwrap_or_default();
        let mark = if self.is_missed() { " (missed)" } else { "" };
        format!(
            "| {} | {} | {} | {} | {} | {}{mark} | {} |",
            self.work,
            show(Some(self.ours)),
            show(self.floor),
            ratio(self.floor),
            show(self.peer),
            ratio(self.peer),
            self.target(),
        )
    }

    fn is_missed(&self) -> bool {
        match (self.unit, self.peer) {
            (MetricUnit::Kilobytes, _) => self.target <= self.ours / 1_024.0,
            (MetricUnit::PerSecond, Some(peer)) => self.ours / peer < self.target,
            (MetricUnit::Seconds, Some(peer)) => self.target < self.ours / peer,
            (_, None) => false,
        }
    }

    fn target(&self) -> String {
        match (self.unit, self.peer) {
            (MetricUnit::Kilobytes, _) => format!("< {:.0} MB", self.target),
            (MetricUnit::PerSecond, Some(_)) => format!("≥ {:.2} × peer", self.target),
            (MetricUnit::Seconds, Some(_)) => format!("≤ {:.2} × peer", self.target),
            (_, None) => String::new(),
        }
    }
}

impl MetricUnit {
    fn text(self, number: f64) -> String {
        match self {
            Self::PerSecond => format!("{number:.0}/s"),
            Self::Seconds => format!("{:.2} ms", number * 1_000.0),
            Self::Kilobytes => format!("{:.0} MB", number / 1_024.0),
        }
    }
}

pub(super) fn print(rows: &[Row], peer: Option<&str>) {
    let peer = peer.unwrap_or("peer");
    let mut text = format!(
        "| work | ours | floor | to floor | {peer} | to peer | target |\n|---|---:|---:|---:|---:|---:|---:|\n"
    );
    for row in rows {
        writeln!(text, "{}", row.text()).expect("writing to a string cannot fail");
    }
    print!("{text}");
}
