//! The steps of a rule as a shell script that somebody else can run.
//!
//! Guarantee: the commands run as they are, in bash, and send what the probe sent. Credentials, and the commands of the
//! user, are shell variables that the script asks for: a transcript is made to be passed on.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::exchange::{Cut, EffectCount, Exchange, ProbeRequest, Received, Step};
use crate::rules::RulePlan;
use crate::secrets::{Piece, Secrets};
use crate::seen::shown;
use crate::target::{Counter, Target};

/// Returns the commands that repeat a rule's steps, with what came back as comments.
pub(crate) fn transcript(
    target: &Target,
    secrets: &Secrets,
    plan: &RulePlan,
    exchanges: &[Exchange],
    effects: &EffectCount,
) -> String {
    let mut script = Script::new(target, secrets);
    script.steps(&plan.steps, &mut Some(exchanges.iter()), "");
    if *effects != EffectCount::NotCounted {
        script.count(plan.count.as_ref());
        let counted = match effects {
            EffectCount::Counted(count) => format!("{count} more than before the first request"),
            EffectCount::Failed(why) => format!("not counted: {why}"),
            EffectCount::NotCounted => String::new(),
        };
        script.comment(&format!("-> {counted}"));
    }
    script.finish(&plan.marker)
}

/// Returns the commands that a rule would run, without running them.
pub fn planned(target: &Target, secrets: &Secrets, plan: &RulePlan) -> String {
    let mut script = Script::new(target, secrets);
    script.steps(&plan.steps, &mut None, "");
    script.finish(&plan.marker)
}

/// A script that is being written.
struct Script<'a> {
    target: &'a Target,
    secrets: &'a Secrets,
    origin: String,
    text: String,
    /// The variables that it needs, with their meanings.
    needed: Vec<(String, String)>,
    runs_commands: bool,
    number: usize,
}

/// What came back, in the order of the steps; `None` if nothing was sent.
type Outcomes<'a> = Option<std::slice::Iter<'a, Exchange>>;

impl<'a> Script<'a> {
    fn new(target: &'a Target, secrets: &'a Secrets) -> Self {
        Self {
            target,
            secrets,
            origin: target.origin(),
            text: String::new(),
            needed: Vec::new(),
            runs_commands: false,
            number: 0,
        }
    }

    fn finish(self, marker: &str) -> String {
        let variable =
            |(name, meaning): &(String, String)| format!(": \"${{{name}:?set it to {meaning}}}\"\n");
        let mut text: String = self.needed.iter().map(variable).collect();
        if self.runs_commands {
            // A `String` takes whatever is written to it.
            _ = writeln!(text, "export PROBE_MARKER={}", quoted(marker.as_bytes()));
        }
        text + &self.text
    }

    fn comment(&mut self, text: &str) {
        let text = self.secrets.redacted(text);
        _ = writeln!(self.text, "# {text}");
    }

    fn steps(&mut self, steps: &[Step], outcomes: &mut Outcomes<'_>, when: &str) {
        for group in steps.chunk_by(|one, next| one == next) {
            match &group[0] {
                Step::Send(request) => self.send(request, group.len(), outcomes, when),
                Step::Together(all) => self.together(all, outcomes, when),
                Step::During(slow, inner) => {
                    self.one(slow, outcomes, when, " &");
                    _ = writeln!(self.text, "sleep 0.3");
                    self.steps(inner, outcomes, ", while that is in flight");
                    _ = writeln!(self.text, "wait");
                }
                Step::Run(command, _) => self.run(command.as_str(), when),
            }
        }
    }

    fn send(&mut self, request: &ProbeRequest, count: usize, outcomes: &mut Outcomes<'_>, when: &str) {
        if count == 1 {
            self.one(request, outcomes, when, "");
        } else {
            self.many(request, outcomes, count, &format!("{when} ({count} times)"), "");
        }
    }

    fn together(&mut self, all: &[ProbeRequest], outcomes: &mut Outcomes<'_>, when: &str) {
        for group in all.chunk_by(|one, next| one == next) {
            let note =
                format!("{when} ({} at once), whose last bytes the probe releases together", all.len());
            self.many(&group[0], outcomes, group.len(), &note, " &");
        }
        _ = writeln!(self.text, "wait");
    }

    fn many(
        &mut self,
        request: &ProbeRequest,
        outcomes: &mut Outcomes<'_>,
        count: usize,
        note: &str,
        end: &str,
    ) {
        self.number += 1;
        self.comment(&format!("{}. {}{note}", self.number, request.purpose));
        let command = self.curl(request);
        _ = writeln!(self.text, "for n in $(seq {count}); do\n{command}{end}\ndone");
        self.outcomes(outcomes, count);
    }

    fn one(&mut self, request: &ProbeRequest, outcomes: &mut Outcomes<'_>, when: &str, end: &str) {
        self.number += 1;
        self.comment(&format!("{}. {}{when}{}", self.number, request.purpose, cut_note(request.cut)));
        let command = self.curl(request);
        _ = writeln!(self.text, "{command}{end}");
        self.outcomes(outcomes, 1);
    }

    fn outcomes(&mut self, outcomes: &mut Outcomes<'_>, count: usize) {
        let Some(outcomes) = outcomes else { return };
        let group = &outcomes.as_slice()[..count.min(outcomes.len())];
        *outcomes = outcomes.as_slice()[group.len()..].iter();
        for line in lines(group) {
            self.comment(&format!("-> {line}"));
        }
    }

    /// Runs a command of the user, which may hold credentials that the probe does not know.
    fn run(&mut self, flag: &str, when: &str) {
        self.runs_commands = true;
        let variable = format!("PROBE_{}", flag.to_ascii_uppercase().replace('-', "_"));
        self.comment(&format!("the command of --{flag}{when}"));
        _ = writeln!(self.text, "sh -c \"${variable}\"");
        if self.needed.iter().all(|(name, _)| *name != variable) {
            self.needed.push((variable, format!("the command of --{flag}")));
        }
    }

    fn count(&mut self, request: Option<&ProbeRequest>) {
        match (request, &self.target.counter) {
            (Some(request), _) => {
                self.comment("count the effects");
                let command = self.curl(request);
                _ = writeln!(self.text, "{command}");
            }
            (None, Some(Counter::Command(_))) => self.run("count-command", ""),
            (None, _) => (),
        }
    }

    /// Returns bytes as one word of a shell, with variables for credentials.
    fn word(&mut self, bytes: &[u8], is_sent: bool) -> String {
        let secrets = self.secrets;
        self.joined(secrets.pieces(bytes, is_sent))
    }

    fn joined(&mut self, pieces: Vec<Piece<'_>>) -> String {
        if pieces.is_empty() {
            return "''".to_owned();
        }
        let mut word = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => word.push_str(&quoted(text)),
                Piece::Variable(name) => {
                    _ = write!(word, "\"${name}\"");
                    if self.needed.iter().all(|(known, _)| known != name) {
                        self.needed.push((name.to_owned(), self.secrets.meaning(name).to_owned()));
                    }
                }
            }
        }
        word
    }

    fn curl(&mut self, request: &ProbeRequest) -> String {
        if request.cut == Cut::BeforeRequest {
            return ": # curl cannot do this".to_owned();
        }
        let url = format!("{}{}", self.origin, request.target);
        let secrets = self.secrets;
        let url = self.joined(secrets.url_pieces(url.as_bytes()));
        let mut line = format!("curl -sS -i -X {} {url}", request.method);
        if request.target.contains(['{', '[', '}', ']']) {
            line.push_str(" -g");
        }
        if request.target.contains("/.") {
            line.push_str(" --path-as-is");
        }
        let mut lines = Vec::new();
        for (name, value) in &request.headers {
            lines.push(if value.is_empty() {
                // curl sends an empty field only like this.
                format!("-H {}", quoted(format!("{name};").as_bytes()))
            } else {
                let start = quoted(format!("{name}: ").as_bytes());
                format!("-H {}", joined(&start, &self.word(value, true)))
            });
        }
        let has_body = !request.body.is_empty() || request.method != "GET";
        let has_type = request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        if has_body && !has_type {
            // curl would send one of its own.
            lines.push("-H 'Content-Type:'".to_owned());
        }
        let mut body = &request.body[..];
        match request.cut {
            Cut::InRequest => {
                lines.push(format!("-H 'Content-Length: {}' --max-time 0.2", body.len()));
                body = &body[..body.len() / 2];
            }
            Cut::AfterRequest => lines.push("--max-time 0.05".to_owned()),
            Cut::Never | Cut::BeforeRequest | Cut::InResponse => (),
        }
        if body.contains(&0) {
            // An argument cannot hold this byte.
            let mut octal = String::new();
            for byte in body {
                _ = write!(octal, "\\{byte:03o}");
            }
            lines.push(format!("--data-binary @<(printf '{octal}')"));
        } else if has_body {
            lines.push(format!("--data-raw {}", self.word(body, false)));
        }
        for one in lines {
            _ = write!(line, " \\\n  {one}");
        }
        if request.cut == Cut::InResponse {
            line.push_str(" | head -c 1");
        }
        line
    }
}

/// Joins two quoted words.
fn joined(one: &str, other: &str) -> String {
    match (one.strip_suffix('\''), other.strip_prefix('\'')) {
        (Some(one), Some(other)) => format!("{one}{other}"),
        _ => format!("{one}{other}"),
    }
}

/// Returns what came back, one line for each status, with its first response.
fn lines(group: &[Exchange]) -> Vec<String> {
    if group.is_empty() {
        return vec!["not sent".to_owned()];
    }
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

const fn cut_note(cut: Cut) -> &'static str {
    match cut {
        Cut::Never => "",
        Cut::BeforeRequest => " (the probe closed the connection before it)",
        Cut::InRequest => " (the probe sent half of the body and closed the connection)",
        Cut::AfterRequest => " (the probe closed the connection before the response)",
        Cut::InResponse => " (the probe closed the connection after the first byte of the response)",
    }
}

/// Quotes bytes for bash.
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
    use ichido_core::ledger::Profile;
    use ichido_http::url::HttpUrl;

    use super::*;
    use crate::exchange::{Patience, ProbeResponse};
    use crate::target::Command;

    fn target(headers: &[(&str, &str)]) -> Target {
        let line = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Target {
            url: HttpUrl::parse("http://127.0.0.1:1/").unwrap(),
            is_http2: false,
            profile: Profile::Ichido,
            method: "POST".to_owned(),
            path: "/orders".to_owned(),
            headers: headers.iter().map(line).collect(),
            body: String::new(),
            vary: None,
            counter: Some(Counter::Command("psql postgres://ann:pw@db".to_owned())),
            second_identity: None,
            fresh_credential: None,
            other_operation: None,
            provoke: Vec::new(),
            commands: Vec::new(),
            webhook: None,
        }
    }

    fn request(headers: &[(&str, &str)], body: &[u8]) -> ProbeRequest {
        let line = |(name, value): &(&str, &str)| ((*name).to_owned(), value.as_bytes().to_vec());
        ProbeRequest {
            purpose: "the first request",
            method: "POST".to_owned(),
            target: "/orders".to_owned(),
            headers: headers.iter().map(line).collect(),
            body: body.to_vec(),
            cut: Cut::Never,
            patience: Patience::Once,
        }
    }

    fn plan(steps: Vec<Step>) -> RulePlan {
        RulePlan { steps, count: None, marker: "probe-1".to_owned() }
    }

    fn answered(request: &ProbeRequest) -> Exchange {
        let response = ProbeResponse { status: 201, headers: Vec::new(), body: b"ok, s3cret\n".to_vec() };
        Exchange {
            request: request.clone(),
            received: Received::Response(response),
            earlier: Vec::new(),
            is_with_previous: false,
        }
    }

    #[test]
    fn transcript_replays_and_hides_credentials() {
        let headers = [("Authorization", "Bearer s3cret"), ("Idempotency-Key", "k")];
        let (target, request) = (target(&headers), request(&headers, b"it's"));
        let steps = vec![Step::Together(vec![request.clone(); 2])];
        let exchanges = [answered(&request), answered(&request)];
        let secrets = Secrets::of(&target);
        let text = transcript(&target, &secrets, &plan(steps), &exchanges, &EffectCount::Counted(2));
        let expected = r#": "${PROBE_AUTHORIZATION:?set it to the value of the header Authorization, without its scheme}"
: "${PROBE_COUNT_COMMAND:?set it to the command of --count-command}"
export PROBE_MARKER='probe-1'
# 1. the first request (2 at once), whose last bytes the probe releases together
for n in $(seq 2); do
curl -sS -i -X POST 'http://127.0.0.1:1/orders' \
  -H 'Authorization: Bearer '"$PROBE_AUTHORIZATION" \
  -H 'Idempotency-Key: k' \
  -H 'Content-Type:' \
  --data-raw 'it'\''s' &
done
# -> 2 times 201 ok, $PROBE_AUTHORIZATION
wait
# the command of --count-command
sh -c "$PROBE_COUNT_COMMAND"
# -> 2 more than before the first request
"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn what_happens_during_a_request_is_awaited() {
        let (target, request) = (target(&[]), request(&[], b""));
        let crash = Step::Run(Command::Crash, "kill 1".to_owned());
        let steps = vec![Step::During(request.clone(), vec![crash])];
        let secrets = Secrets::of(&target);
        let text =
            transcript(&target, &secrets, &plan(steps), &[answered(&request)], &EffectCount::NotCounted);
        let expected = "export PROBE_MARKER='probe-1'\n# 1. the first request\n\
            curl -sS -i -X POST 'http://127.0.0.1:1/orders' \\\n  -H 'Content-Type:' \\\n  --data-raw '' &\n\
            # -> 201 ok, s3cret\nsleep 0.3\n# the command of --crash, while that is in flight\n\
            sh -c \"$PROBE_CRASH\"\nwait\n";
        assert!(text.ends_with(expected), "{text}");
    }

    /// Runs one curl of a transcript against a socket, and returns what it sent.
    fn sent(request: &ProbeRequest) -> Vec<u8> {
        use std::io::{Read as _, Write as _};

        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let target = Target { url: HttpUrl::parse(&url).unwrap(), counter: None, ..target(&[]) };
        let text = planned(&target, &Secrets::default(), &plan(vec![Step::Send(request.clone())]));
        let curl = std::thread::spawn(move || {
            std::process::Command::new("bash").args(["-c", &text]).env("HOME", "/nowhere").output().unwrap()
        });
        let (mut stream, _) = listener.accept().unwrap();
        let (mut all, mut part) = (Vec::new(), [0; 4096]);
        let body_begins = |all: &[u8]| all.windows(4).position(|four| four == b"\r\n\r\n").map(|end| end + 4);
        while body_begins(&all).is_none_or(|begin| all.len() < begin + request.body.len()) {
            let count = stream.read(&mut part).unwrap();
            assert!(0 < count, "{}", String::from_utf8_lossy(&all));
            all.extend_from_slice(&part[..count]);
        }
        stream.write_all(b"HTTP/1.1 204 No\r\nconnection: close\r\n\r\n").unwrap();
        let output = curl.join().unwrap();
        assert!(output.status.success(), "{output:?}");
        all
    }

    #[test]
    fn curl_sends_what_the_probe_sent() {
        let bodies: [&[u8]; 6] = [
            b"",
            b"it's \"1\"\n$HOME `id` \\n",
            b"@/etc/hostname",
            b"\xff\x00\x01%s",
            "\u{e9}\r\n".as_bytes(),
            b"%00",
        ];
        for body in bodies {
            let headers = [("X-Quote", "it's $HOME \\ \u{e9}"), ("Idempotency-Key", ""), ("X-Quote", "two")];
            let mut request = request(&headers, body);
            request.target = "/orders/./{a}?b=[1-2]&c=$HOME'".to_owned();
            let all = sent(&request);
            let head = String::from_utf8_lossy(&all);
            assert!(head.starts_with("POST /orders/./{a}?b=[1-2]&c=$HOME' HTTP/1.1\r\n"), "{head}");
            for line in ["X-Quote: it's $HOME \\ \u{e9}\r\n", "Idempotency-Key:\r\n", "X-Quote: two\r\n"] {
                assert!(head.contains(line), "{line}: {head}");
            }
            assert!(!head.to_ascii_lowercase().contains("content-type"), "{head}");
            assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
            assert!(all.ends_with(body), "{head}");
        }
    }
}
