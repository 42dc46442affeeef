//! The exchanges of a rule as a shell script that somebody else can run.
//!
//! Credentials become shell variables: a transcript is made to be passed on.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::exchange::{Cut, EffectCount, Exchange, ProbeRequest, Received, Step};
use crate::seen::shown;

/// Header fields whose values are credentials.
const SECRET: [&str; 6] =
    ["authorization", "cookie", "proxy-authorization", "x-api-key", "api-key", "x-auth-token"];

/// Returns the commands that repeat these exchanges, with what came back as comments.
pub fn transcript(origin: &str, exchanges: &[Exchange], effects: &EffectCount) -> String {
    let mut text = String::new();
    let mut secrets: Vec<(String, Vec<u8>)> = Vec::new();
    let mut groups = exchanges.chunk_by(|one, next| one.request == next.request).enumerate().peekable();
    while let Some((index, group)) = groups.next() {
        let Some(first) = group.first() else { continue };
        let request = &first.request;
        let is_with_next =
            groups.peek().is_some_and(|(_, next)| next.first().is_some_and(|one| one.is_with_previous));
        let is_together = group.iter().skip(1).any(|one| one.is_with_previous);
        let note = if first.is_with_previous { ", while that is in flight" } else { cut_note(request.cut) };
        let purpose = format!("# {}. {}{note}", index + 1, request.purpose);
        let command = curl(origin, request, &mut secrets);
        let command = match group.len() {
            1 if is_with_next => format!("{purpose}\n{command} &"),
            1 => format!("{purpose}\n{command}"),
            count if is_together => {
                format!("{purpose} ({count} at once)\nfor n in $(seq {count}); do\n{command} &\ndone\nwait")
            }
            count => format!("{purpose} ({count} times)\nfor n in $(seq {count}); do\n{command}\ndone"),
        };
        // A `String` takes whatever is written to it.
        _ = writeln!(text, "{command}");
        for outcome in outcomes(group) {
            _ = writeln!(text, "# -> {outcome}");
        }
    }
    match effects {
        EffectCount::Counted(count) => _ = writeln!(text, "# effects: {count}"),
        EffectCount::Failed(why) => _ = writeln!(text, "# effects: not counted, {why}"),
        EffectCount::NotCounted => (),
    }
    let variables = secrets
        .iter()
        .enumerate()
        .map(|(index, (name, _))| format!(": \"${{{}:?the value of {name}}}\"\n", variable(index)));
    variables.collect::<String>() + &text
}

/// Returns what came back, one line for each status, with its first response.
fn outcomes(group: &[Exchange]) -> Vec<String> {
    let mut lines: Vec<String> = group.iter().filter_map(repeats).collect();
    let by_status = |exchange: &&Exchange| match &exchange.received {
        Received::Response(response) => Some(response.status),
        Received::Cut | Received::Closed(_) | Received::Nothing(_) | Received::NotConnected(_) => None,
    };
    let mut seen = Vec::new();
    for first in group {
        let status = by_status(&first);
        if seen.contains(&status) {
            continue;
        }
        seen.push(status);
        let alike: Vec<&Exchange> = group.iter().filter(|one| by_status(one) == status).collect();
        let outcome = match &first.received {
            Received::Response(response) => shown(response),
            Received::Cut => "the probe cut the connection".to_owned(),
            Received::Closed(why) | Received::Nothing(why) => format!("no response: {why}"),
            Received::NotConnected(why) => format!("not sent: {why}"),
        };
        let bodies: HashSet<&[u8]> = alike
            .iter()
            .filter_map(|one| match &one.received {
                Received::Response(response) => Some(&*response.body),
                _ => None,
            })
            .collect();
        lines.push(match (alike.len(), bodies.len()) {
            (1, _) => outcome,
            (count, 0 | 1) => format!("{count} times {outcome}"),
            (count, bodies) => format!("{count} times {outcome} ({bodies} different bodies)"),
        });
    }
    lines
}

/// Returns what came back before the response that counts.
fn repeats(exchange: &Exchange) -> Option<String> {
    let last = exchange.earlier.last()?;
    let what = last.map_or_else(|| "no response".to_owned(), |status| status.to_string());
    Some(match exchange.earlier.len() {
        1 => format!("{what}, so it is sent again"),
        count => format!("at last {what}, {count} times, so it is sent again"),
    })
}

/// Returns the commands that steps would run, without running them.
pub fn planned(origin: &str, steps: &[Step]) -> String {
    let mut text = String::new();
    let mut secrets = Vec::new();
    for step in steps {
        planned_step(origin, step, "", &mut text, &mut secrets);
    }
    text
}

fn planned_step(
    origin: &str,
    step: &Step,
    when: &str,
    text: &mut String,
    secrets: &mut Vec<(String, Vec<u8>)>,
) {
    let mut request = |request: &ProbeRequest, text: &mut String, how: &str| {
        let command = curl(origin, request, secrets);
        // A `String` takes whatever is written to it.
        _ = writeln!(text, "# {}{}{how}{when}\n{command}", request.purpose, cut_note(request.cut));
    };
    match step {
        Step::Send(one) => request(one, text, ""),
        Step::Together(all) => {
            if let Some(one) = all.first() {
                request(one, text, &format!(" ({} at once)", all.len()));
            }
        }
        Step::During(one, inner) => {
            request(one, text, "");
            for step in inner {
                planned_step(origin, step, " (while that is in flight)", text, secrets);
            }
        }
        Step::Run(line) => _ = writeln!(text, "# a command{when}\n{line}"),
    }
}

const fn cut_note(cut: Cut) -> &'static str {
    match cut {
        Cut::Never => "",
        Cut::BeforeRequest => " (the probe closed the connection before it)",
        Cut::InRequest => " (the probe sent half of the body and closed the connection)",
        Cut::AfterRequest => " (the probe closed the connection before the response)",
        Cut::InResponse => " (the probe closed the connection after the first byte of the response)",
    }
}

fn variable(index: usize) -> String {
    format!("PROBE_SECRET_{}", index + 1)
}

fn curl(origin: &str, request: &ProbeRequest, secrets: &mut Vec<(String, Vec<u8>)>) -> String {
    let mut line = format!(
        "curl -sS -i -X {} {}",
        request.method,
        quoted(format!("{origin}{}", request.target).as_bytes())
    );
    for (name, value) in &request.headers {
        if SECRET.contains(&&*name.to_ascii_lowercase()) {
            let known = secrets.iter().position(|secret| *secret == (name.clone(), value.clone()));
            let index = known.unwrap_or(secrets.len());
            if known.is_none() {
                secrets.push((name.clone(), value.clone()));
            }
            _ = write!(line, " \\\n  -H \"{name}: ${}\"", variable(index));
        } else if value.is_empty() {
            // curl sends an empty field only like this.
            _ = write!(line, " \\\n  -H {}", quoted(format!("{name};").as_bytes()));
        } else {
            _ = write!(line, " \\\n  -H {}", quoted(&[name.as_bytes(), b": ", value].concat()));
        }
    }
    if request.cut == Cut::AfterRequest {
        line.push_str(" \\\n  --max-time 0.05");
    }
    if !request.body.is_empty() {
        _ = write!(line, " \\\n  --data-binary {}", quoted(&request.body));
    }
    line
}

/// Quotes bytes for a shell.
fn quoted(bytes: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
    if bytes.iter().all(is_plain) {
        return format!("'{}'", String::from_utf8_lossy(bytes).replace('\'', "'\\''"));
    }
    let mut text = String::from("$'");
    for byte in bytes {
        match byte {
            b'\'' | b'\\' => _ = write!(text, "\\{}", char::from(*byte)),
            byte if is_plain(byte) => text.push(char::from(*byte)),
            byte => _ = write!(text, "\\x{byte:02x}"),
        }
    }
    text.push('\'');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{Patience, ProbeResponse};

    fn request(headers: &[(&str, &str)], body: &str) -> ProbeRequest {
        let line = |(name, value): &(&str, &str)| ((*name).to_owned(), value.as_bytes().to_vec());
        ProbeRequest {
            purpose: "the first request",
            method: "POST".to_owned(),
            target: "/orders".to_owned(),
            headers: headers.iter().map(line).collect(),
            body: body.into(),
            cut: Cut::Never,
            patience: Patience::Once,
        }
    }

    #[test]
    fn transcript_replays_and_hides_credentials() {
        let exchange = Exchange {
            request: request(&[("Authorization", "Bearer s3cret"), ("Idempotency-Key", "k")], "it's"),
            received: Received::Response(ProbeResponse {
                status: 201,
                headers: Vec::new(),
                body: b"ok\n".to_vec(),
            }),
            earlier: Vec::new(),
            is_with_previous: false,
        };
        let together = Exchange { is_with_previous: true, ..exchange.clone() };
        let text = transcript("http://127.0.0.1:1", &[exchange, together], &EffectCount::Counted(2));
        assert!(!text.contains("s3cret"), "{text}");
        let expected = ": \"${PROBE_SECRET_1:?the value of Authorization}\"\n\
            # 1. the first request (2 at once)\nfor n in $(seq 2); do\n\
            curl -sS -i -X POST 'http://127.0.0.1:1/orders' \\\n  -H \"Authorization: $PROBE_SECRET_1\" \\\n  \
            -H 'Idempotency-Key: k' \\\n  --data-binary 'it'\\''s' &\ndone\nwait\n# -> 2 times 201 ok\n# effects: 2\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn invalid_bytes_are_written_for_the_shell() {
        assert_eq!(quoted(b"a\x01'b"), r"$'a\x01\'b'");
    }
}
