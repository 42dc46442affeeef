//! Draws the hops: which party requires, passes, retries and owns.
//!
//! A broken link is red and shows its rules' ids.

use std::fmt::Write as _;

use crate::{Boundary, BoundaryRule, Finding, HopChain, Mode, Name, Party, Severity, hop_chains};

/// Returns a Mermaid flowchart of every hop chain, with the findings of the files on their links.
pub fn mermaid(files: &[Boundary], findings: &[Finding]) -> String {
    let mut drawing =
        Drawing { chart: String::from("flowchart LR\n"), links: 0, broken: Vec::new(), findings };
    for (index, chain) in hop_chains(files).iter().enumerate() {
        drawing.draw(chain, index);
    }
    for link in drawing.broken {
        // Writing to a `String` cannot fail.
        _ = writeln!(drawing.chart, "    linkStyle {link} stroke:#c00,stroke-width:3px,color:#c00");
    }
    drawing.chart
}

struct Drawing<'a> {
    chart: String,
    /// The number of links: Mermaid identifies them by their order.
    links: usize,
    /// The links that are red.
    broken: Vec<usize>,
    findings: &'a [Finding],
}

impl Drawing<'_> {
    fn draw(&mut self, chain: &HopChain<'_>, index: usize) {
        let id = |party: Party| format!("{}{index}", party.as_str());
        for party in Party::ALL {
            let is_met =
                chain.files().any(|file| file.name().sender() == party || file.name().receiver() == party);
            if is_met {
                _ = writeln!(self.chart, "    {}[\"{}\"]", id(party), role(chain, party));
            }
        }
        for name in Name::ALL {
            let (sender, receiver) = (id(name.sender()), id(name.receiver()));
            for file in chain.files().filter(|file| file.name() == name) {
                self.link(file, &sender, &receiver);
            }
            let is_between =
                chain.files().any(|file| file.name() < name) && chain.files().any(|file| name < file.name());
            if is_between && chain.file(name).is_none() {
                _ = writeln!(self.chart, "    {sender} -.->|\"no file\"| {receiver}");
                self.links += 1;
            }
        }
    }

    fn link(&mut self, file: &Boundary, sender: &str, receiver: &str) {
        let inside = self.findings.iter().filter(|finding| finding.place.file == file.file());
        let mut rules: Vec<&BoundaryRule> = inside.map(|finding| finding.rule).collect();
        rules.sort_by_key(|rule| rule.id);
        rules.dedup();
        if rules.iter().any(|rule| rule.severity == Severity::Error) {
            self.broken.push(self.links);
        }
        let ids = rules.iter().map(|rule| rule.id.to_owned());
        let label: Vec<String> = std::iter::once(describe_attempts(file)).chain(ids).collect();
        _ = writeln!(self.chart, "    {sender} -->|\"{}\"| {receiver}", label.join("<br/>"));
        self.links += 1;
    }
}

/// Describes what a party does about the key.
fn role(chain: &HopChain<'_>, party: Party) -> String {
    let receives = chain.files().find(|file| file.name().receiver() == party);
    let owner = chain.owner().map(Boundary::name);
    let does = match party {
        Party::Browser => "creates the key",
        Party::Service => "does the work",
        Party::Adapter if matches!(owner, Some(Name::GatewayToAdapter | Name::Adapter)) => "owns the outcome",
        Party::Bff | Party::Gateway | Party::Adapter => match receives {
            Some(file) if file.http.idempotency.mode == Some(Mode::Enabled) => "owns the outcome",
            Some(file) if file.http.idempotency.requires_key() => "requires and passes the key",
            Some(_) => "does not require the key",
            None => "passes the key",
        },
    };
    format!("{}<br/>{does}", party.as_str())
}

/// Describes the attempts of this file's sender.
fn describe_attempts(file: &Boundary) -> String {
    let attempt = file
        .http
        .timeouts
        .attempt_timeout()
        .map_or("no timeout".to_owned(), |time| format!("{} ms", time.as_millis()));
    match file.http.retry.plan() {
        // Methods are the file's own text: only letters are drawn.
        Some(plan) => {
            let methods =
                plan.methods.iter().map(|method| method.chars().filter(char::is_ascii_alphabetic).collect());
            let methods: Vec<String> = methods.collect();
            format!("{} attempts of {}, {attempt} each", plan.attempts, methods.join(" "))
        }
        None => format!("one attempt, {attempt}"),
    }
}
