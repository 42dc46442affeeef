//! A service that keeps every rule of the profile ichido, unless a switch breaks one.
//!
//! It is small and slow on purpose, and shares no code with the product but the signature of webhooks.

mod message;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ichido_core::time::Timestamp;
use ichido_http::clock;
use ichido_http::signature::{Secret, fields};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use message::{Answer, Request};

pub(crate) const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
const LEASE: Duration = Duration::from_millis(400);
const WAIT: Duration = Duration::from_millis(300);
const SLOW: Duration = Duration::from_millis(900);
const COUNTED_AFTER: Duration = Duration::from_millis(400);

/// A running service.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    /// The id of the rule that is broken; none if it is empty.
    broken: &'static str,
    mood: Mood,
    state: Arc<Mutex<State>>,
}

/// How an honest service may behave on a bad day.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Usual,
    /// It turns away every third request.
    Busy,
    /// It closes every fifth connection after the effect, without a response.
    Silent,
    /// An effect is counted some time after it.
    CountsLate,
    /// It knows no caller.
    Refuses,
    /// Others use it: each count is one more than the last.
    CountsOthers,
    /// Somebody deletes what it counts: each count is one less.
    Forgets,
    /// It closes a connection that is not the only one.
    ServesOne,
    /// It fails every order.
    Fails,
    /// It closes every connection without a response.
    Mute,
    /// Its list has at most 20 entries, of all markers.
    CountsUpTo20,
    /// It knows one caller.
    KnowsAnnOnly,
    /// A key alone makes the same request.
    ComparesNothing,
    /// A conflict has a header with the id of what is stored.
    RevealsInHeaders,
    /// A retry takes effect again, but only once others have come since.
    RepeatsLate,
}

#[derive(Default)]
struct State {
    records: HashMap<String, Record>,
    effects: HashMap<String, Vec<Instant>>,
    /// All requests over HTTP/1.1.
    arrived: usize,
    over_http2: usize,
    counts: usize,
    orders: usize,
    /// How often the effects of one rule were counted since there are any.
    counts_of_p06: usize,
    events: HashMap<String, i64>,
    latest: HashMap<String, i64>,
    number: i64,
    crashes: usize,
    is_store_down: bool,
    is_dead: bool,
    /// Connections whose request has not ended.
    connections: usize,
}

struct Record {
    fingerprint: String,
    phase: Phase,
    /// Replays to clients that came one after the other.
    replays: usize,
    /// What is stored once the client has it.
    pending: Option<Answer>,
}

#[derive(Clone)]
enum Phase {
    InFlight(Instant),
    Unknown,
    Done(Answer),
}

impl Service {
    pub(crate) async fn start(broken: &'static str) -> Self {
        Self::start_in(Mood::Usual, broken).await
    }

    pub(crate) async fn start_in(mood: Mood, broken: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let service = Self { address: listener.local_addr().unwrap(), broken, mood, state: Arc::default() };
        let serving = service.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                if serving.state().is_dead {
                    return;
                }
                let serving = serving.clone();
                serving.state().connections += 1;
                tokio::spawn(async move {
                    serving.handle(&mut stream).await;
                    serving.state().connections -= 1;
                });
            }
        });
        service
    }

    /// How many requests came over HTTP/2.
    pub(crate) fn over_http2(&self) -> usize {
        self.state().over_http2
    }

    /// How many orders and deliveries arrived.
    pub(crate) fn orders(&self) -> usize {
        self.state().orders
    }

    /// How many requests came over HTTP/1.1.
    pub(crate) fn arrived(&self) -> usize {
        self.state().arrived
    }

    pub(crate) fn is_store_down(&self) -> bool {
        self.state().is_store_down
    }

    /// Forgets all that was sent to it.
    pub(crate) fn forget(&self) {
        let mut state = self.state();
        *state = State { connections: state.connections, ..State::default() };
    }

    async fn handle(&self, stream: &mut TcpStream) {
        let mut start = [0; 3];
        if stream.peek(&mut start).await.is_ok_and(|count| count == 3) && start == *b"PRI" {
            return self.handle_http2(stream).await;
        }
        let Some(request) = Request::read(stream).await else { return };
        let crashes = self.state().crashes;
        if self.is_turned_away(&request) {
            drop(stream.write_all(&Answer::problem(503, "busy").bytes()).await);
            return;
        }
        let is_control = request.line.contains(" /control/");
        self.state().orders += usize::from(!is_control && request.line.starts_with("POST "));
        if self.mood == Mood::Refuses && !is_control && request.line.starts_with("POST ") {
            drop(stream.write_all(&Answer::problem(401, "who are you?").bytes()).await);
            return;
        }
        let is_order = !is_control && request.line.starts_with("POST ");
        if is_order && self.mood == Mood::Fails {
            drop(stream.write_all(&Answer::problem(500, "failed").bytes()).await);
            return;
        }
        if is_order && self.mood == Mood::KnowsAnnOnly && request.text("x-user") == "eve" {
            drop(stream.write_all(&Answer::problem(401, "who are you?").bytes()).await);
            return;
        }
        if is_order && self.mood == Mood::Mute {
            return;
        }
        if self.mood == Mood::ServesOne && !is_control && 1 < self.state().connections {
            return;
        }
        let Some(answer) = self.answer(&request, Some(stream)).await else { return };
        if self.mood == Mood::Silent && answer.status == 201 && self.state().arrived.is_multiple_of(5) {
            return;
        }
        // The command's own connection survives.
        if crashes != self.state().crashes && !is_control {
            return;
        }
        let bytes = answer.bytes();
        let mut half = 0;
        if self.breaks("ICH-P19") && answer.status == 201 {
            // It stores only what was written, unless the client left before that.
            let mut is_lost = false;
            if !self.has_left(stream).await {
                half = bytes.len() / 2;
                drop(stream.write_all(&bytes[..half]).await);
                is_lost = self.has_left(stream).await;
            }
            self.settle_pending(&request, is_lost);
        }
        // The client may have gone.
        drop(stream.write_all(&bytes[half..]).await);
    }

    async fn handle_http2(&self, stream: &mut TcpStream) {
        let mut connection = h2::server::handshake(stream).await.unwrap();
        let mut handling = JoinSet::new();
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            let service = self.clone();
            handling.spawn(async move {
                let (head, mut incoming) = request.into_parts();
                let mut body = Vec::new();
                while let Some(part) = incoming.data().await {
                    let part = part.unwrap();
                    incoming.flow_control().release_capacity(part.len()).unwrap();
                    body.extend_from_slice(&part);
                }
                let line = format!("{} {} HTTP/2", head.method, head.uri.path_and_query().unwrap());
                let field = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
                    (name.to_string(), value.as_bytes().to_vec())
                };
                let fields = head.headers.iter().map(field).collect();
                service.state().over_http2 += 1;
                let answer =
                    service.answer(&Request { line, fields, body, is_whole: true }, None).await.unwrap();
                let mut response = http::Response::builder().status(answer.status);
                for (name, value) in &answer.fields {
                    response = response.header(*name, value);
                }
                let mut send = respond.send_response(response.body(()).unwrap(), false).unwrap();
                send.send_data(answer.body.into(), true).unwrap();
            });
        }
    }

    /// Whether a busy service turns the request away. It does not where a test provokes something else.
    fn is_turned_away(&self, request: &Request) -> bool {
        let is_spared = request.line.contains(" /control/")
            || matches!(request.text("x-test"), "fail" | "limit")
            || self.state().is_store_down;
        self.state().arrived += 1;
        self.mood == Mood::Busy && !is_spared && self.state().arrived.is_multiple_of(3)
    }

    fn breaks(&self, rule: &str) -> bool {
        self.broken == rule
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Whether the client closes its connection soon.
    async fn has_left(&self, stream: &TcpStream) -> bool {
        sleep(Duration::from_millis(150)).await;
        !matches!(stream.try_read(&mut [0; 1]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    }

    fn settle_pending(&self, request: &Request, is_lost: bool) {
        let Ok(Some(key)) = self.key(request) else { return };
        let mut state = self.state();
        state.records.retain(|name, record| !(is_lost && name.ends_with(&key) && record.pending.is_some()));
        for record in state.records.values_mut() {
            if let Some(answer) = record.pending.take() {
                record.phase = Phase::Done(answer);
            }
        }
    }

    async fn answer(&self, request: &Request, stream: Option<&TcpStream>) -> Option<Answer> {
        let mut words = request.line.split(' ');
        let (method, target) = (words.next()?, words.next()?);
        match (method, target.split_once('?').map_or(target, |(path, _)| path)) {
            ("GET", _) => {
                let of = target.split("ref=").nth(1).unwrap_or_default();
                let late = if self.mood == Mood::CountsLate { COUNTED_AFTER } else { Duration::ZERO };
                let counted =
                    |effects: &Vec<Instant>| effects.iter().filter(|at| late <= at.elapsed()).count();
                let total = self.state().effects.get(of).map_or(0, counted);
                self.state().counts += 1;
                let total = match self.mood {
                    Mood::CountsOthers => total + self.state().counts,
                    Mood::Forgets => 1_000_000 - 1_000 * self.state().counts,
                    Mood::CountsUpTo20 => self.state().effects.values().map(Vec::len).sum::<usize>().min(20),
                    // All counts but the first ones of a marker come at the end of the run.
                    Mood::RepeatsLate if of.ends_with("-p06") && total == 1 => {
                        let mut state = self.state();
                        state.counts_of_p06 += 1;
                        if state.counts_of_p06 == 1 { 1 } else { 2 }
                    }
                    _ => total,
                };
                Some(Answer::json(200, &json!({ "total": total })))
            }
            ("POST", "/control/crash") => Some(self.crash()),
            ("POST", "/control/die") => {
                self.state().is_dead = true;
                Some(self.crash())
            }
            ("POST", "/control/expire") => {
                if !self.breaks("ICH-P28") {
                    self.state().records.clear();
                }
                Some(Answer::json(200, &Value::Null))
            }
            ("POST", "/control/outage" | "/control/recover") => {
                self.state().is_store_down = target.ends_with("outage");
                Some(Answer::json(200, &Value::Null))
            }
            ("POST", "/hook") => Some(self.deliver(request).await),
            (_, path) => self.order(request, path, stream).await,
        }
    }

    fn crash(&self) -> Answer {
        let is_broken = self.breaks("ICH-P25");
        let mut state = self.state();
        state.crashes += 1;
        state.records.retain(|_, record| !(is_broken && matches!(record.phase, Phase::InFlight(_))));
        for record in state.records.values_mut() {
            if matches!(record.phase, Phase::InFlight(_)) {
                record.phase = Phase::Unknown;
            }
        }
        Answer::json(200, &Value::Null)
    }

    /// Returns the key; `Err` if it must be refused.
    fn key(&self, request: &Request) -> Result<Option<String>, ()> {
        let lines: Vec<_> = request.fields.iter().filter(|(name, _)| name == "idempotency-key").collect();
        if 1 < lines.len() && !self.breaks("ICH-P04") {
            return Err(());
        }
        let Some((_, value)) = lines.first() else { return Ok(None) };
        let text = std::str::from_utf8(value).map_err(drop)?;
        let key = match text.strip_prefix('"') {
            Some(rest) => {
                let (key, parameters) = rest.split_once('"').ok_or(())?;
                match () {
                    () if self.breaks("ICH-P05") => format!("{key}{parameters}"),
                    () if self.breaks("ICH-P03") && parameters.is_empty() => format!("\"{key}\""),
                    () => key.to_owned(),
                }
            }
            None => text.to_owned(),
        };
        let is_short = key.len() <= 255 || self.breaks("ICH-P02");
        let is_valid = !key.is_empty() && is_short && key.bytes().all(|byte| byte.is_ascii_graphic());
        if is_valid { Ok(Some(key)) } else { Err(()) }
    }

    async fn order(&self, request: &Request, path: &str, stream: Option<&TcpStream>) -> Option<Answer> {
        let user = request.text("x-user");
        let user = match () {
            () if self.breaks("ICH-P16") => "",
            () if self.breaks("ICH-P17") => user,
            () => user.split('-').next().unwrap_or_default(),
        };
        let key = match self.key(request) {
            Err(()) => return Some(Answer::problem(400, "the key is not valid")),
            Ok(None) if self.breaks("ICH-P01") => return self.run(request).await,
            Ok(None) => return Some(Answer::problem(400, "the key is missing")),
            Ok(Some(key)) => key,
        };
        let operation = if self.breaks("ICH-P12") { "" } else { path };
        let name = format!("{operation} {user} {key}");
        if !request.is_whole {
            if self.breaks("ICH-P21") {
                self.claim(&name, "");
            }
            return None;
        }
        if request.text("x-test") == "limit" {
            let limited = Answer::problem(429, "too many requests");
            if self.breaks("ICH-P24") {
                let fingerprint = self.fingerprint(request)?;
                self.settle(&name, fingerprint, Phase::Done(limited.clone()));
            }
            return Some(limited);
        }
        if self.state().is_store_down {
            let is_open = self.breaks("ICH-P27");
            return if is_open { self.run(request).await } else { Some(Answer::problem(503, "no store")) };
        }
        let Some(fingerprint) = self.fingerprint(request) else {
            let refused = Answer::problem(400, "the body is not JSON");
            if self.breaks("ICH-P22") {
                self.settle(&name, "any".to_owned(), Phase::Done(refused.clone()));
            }
            return Some(refused);
        };
        let name = self.alike(&name, &fingerprint).unwrap_or(name);
        self.admit(request, stream, &name, &fingerprint).await
    }

    /// Returns another key's record of the same content, if that counts as the same request.
    fn alike(&self, name: &str, fingerprint: &str) -> Option<String> {
        let state = self.state();
        let is_alike = |(of, record): &(&String, &Record)| {
            let is_done = matches!(record.phase, Phase::Done(_));
            is_done
                && record.fingerprint == fingerprint
                && of.rsplit_once(' ').map(|(scope, _)| scope)
                    == name.rsplit_once(' ').map(|(scope, _)| scope)
        };
        let is_new = self.breaks("ICH-P15") && !state.records.contains_key(name);
        is_new.then(|| state.records.iter().find(is_alike)).flatten().map(|(name, _)| name.clone())
    }

    /// What is compared: the canonical JSON.
    fn fingerprint(&self, request: &Request) -> Option<String> {
        let mut value: Value = serde_json::from_slice(&request.body).ok()?;
        if self.breaks("ICH-P14")
            && let Some(number) = value["qty"].as_f64()
        {
            value["qty"] = number.into();
        }
        // 1.0 is 1.
        if value["qty"].is_f64() && value["qty"].as_f64() == Some(1.0) {
            value["qty"] = 1.into();
        }
        Some(match self.broken {
            "ICH-P13" => String::from_utf8_lossy(&request.body).into_owned(),
            _ => value.to_string(),
        })
    }

    fn is_same(&self, record: &Record, fingerprint: &str) -> bool {
        let without_note = |text: &str| {
            let mut value: Value = serde_json::from_str(text).unwrap_or_default();
            if value["note"].is_string() {
                value["note"] = Value::Null;
            }
            value
        };
        let is_done = matches!(record.phase, Phase::Done(_));
        record.fingerprint == fingerprint
            || self.mood == Mood::ComparesNothing
            || record.fingerprint == "any"
            || (is_done
                && self.breaks("ICH-P10")
                && without_note(&record.fingerprint) == without_note(fingerprint))
    }

    async fn admit(
        &self,
        request: &Request,
        stream: Option<&TcpStream>,
        name: &str,
        fingerprint: &str,
    ) -> Option<Answer> {
        let deadline = Instant::now() + WAIT;
        loop {
            let is_free = {
                let mut state = self.state();
                let is_alone = state.connections == 1;
                let outlasts = request.text("x-test") == "outlast";
                match state.records.get_mut(name) {
                    None => true,
                    Some(record) => {
                        match self.found(record, fingerprint, deadline <= Instant::now(), outlasts) {
                            Found::Replay(answer) => {
                                record.replays += usize::from(is_alone);
                                return Some(answer);
                            }
                            Found::Answer(answer) => return Some(answer),
                            Found::Run => {
                                state.records.remove(name);
                                true
                            }
                            Found::Wait => false,
                        }
                    }
                }
            };
            if !is_free {
                sleep(Duration::from_millis(10)).await;
                continue;
            }
            // Another task may have claimed it since; only the broken service does not look again.
            if self.breaks("ICH-P08") {
                sleep(Duration::from_millis(20)).await;
            }
            if self.claim(name, fingerprint) || self.breaks("ICH-P08") {
                return self.run_under(request, stream, name, fingerprint).await;
            }
        }
    }

    fn found(&self, record: &Record, fingerprint: &str, has_waited: bool, outlasts: bool) -> Found {
        let is_same = self.is_same(record, fingerprint);
        let in_flight = || {
            let report = Answer::problem(202, "in flight").with("idempotency-status", "processing");
            report.with("retry-after", "1")
        };
        let conflict = |stored: &str| {
            let problem = Answer::problem(409, "the key was used for a different request");
            let id =
                serde_json::from_str(stored).map(|stored: Value| stored["id"].clone()).unwrap_or_default();
            if self.mood == Mood::RevealsInHeaders {
                return Found::Answer(problem.with("x-order", id.as_str().unwrap_or_default()));
            }
            if !self.breaks("ICH-P30") {
                return Found::Answer(problem);
            }
            let body = json!({ "title": "conflict", "status": 409, "stored": stored }).to_string();
            Found::Answer(Answer { body, ..problem })
        };
        match record.phase.clone() {
            Phase::Unknown => {
                Found::Answer(Answer::problem(409, "unknown").with("idempotency-status", "unknown"))
            }
            Phase::InFlight(_) if !is_same && self.breaks("ICH-P11") => Found::Answer(in_flight()),
            Phase::InFlight(_) if !is_same => conflict(""),
            Phase::InFlight(since) if outlasts && self.breaks("ICH-P26") && LEASE < since.elapsed() => {
                Found::Run
            }
            Phase::InFlight(_) if self.breaks("ICH-P09") => Found::Answer(Answer::json(200, &json!({}))),
            Phase::InFlight(_) if has_waited => Found::Answer(in_flight()),
            Phase::InFlight(_) => Found::Wait,
            Phase::Done(answer) if !is_same => conflict(&answer.body),
            Phase::Done(_) if self.breaks("ICH-P07") && 20 < record.replays => Found::Run,
            Phase::Done(mut answer) => {
                answer.fields.retain(|(name, _)| *name != "location" || !self.breaks("ICH-P18"));
                let is_marked = !self.breaks("ICH-P06");
                Found::Replay(if is_marked { answer.with("idempotency-replayed", "true") } else { answer })
            }
        }
    }

    /// Claims a key; `false` if another task has it.
    fn claim(&self, name: &str, fingerprint: &str) -> bool {
        let mut state = self.state();
        if state.records.contains_key(name) {
            return false;
        }
        let phase = Phase::InFlight(Instant::now());
        let fingerprint = fingerprint.to_owned();
        state.records.insert(name.to_owned(), Record { fingerprint, phase, replays: 0, pending: None });
        true
    }

    fn settle(&self, name: &str, fingerprint: String, phase: Phase) {
        let is_late = self.breaks("ICH-P19");
        let (phase, pending) = match phase {
            Phase::Done(answer) if is_late && answer.status == 201 => {
                (Phase::InFlight(Instant::now()), Some(answer))
            }
            phase => (phase, None),
        };
        self.state().records.insert(name.to_owned(), Record { fingerprint, phase, replays: 0, pending });
    }

    async fn run_under(
        &self,
        request: &Request,
        stream: Option<&TcpStream>,
        name: &str,
        fingerprint: &str,
    ) -> Option<Answer> {
        let crashes = self.state().crashes;
        let answer = self.run(request).await?;
        if crashes != self.state().crashes {
            return None;
        }
        let is_left = match stream {
            Some(stream) if self.breaks("ICH-P20") => self.has_left(stream).await,
            _ => false,
        };
        let is_dropped = is_left
            || (self.breaks("ICH-P23") && answer.status == 500)
            || (self.breaks("ICH-P29") && request.text("x-test") == "large");
        if is_dropped {
            self.state().records.remove(name);
            return Some(answer);
        }
        let phase = match (request.text("x-test"), answer.status) {
            (_, 500) => Phase::Unknown,
            ("large", _) => Phase::Done(Answer::problem(409, "the response is not stored")),
            _ => Phase::Done(answer.clone()),
        };
        self.settle(name, fingerprint.to_owned(), phase);
        Some(answer)
    }

    /// Takes effect.
    async fn run(&self, request: &Request) -> Option<Answer> {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let number = {
            let mut state = self.state();
            let of = body["ref"].as_str().unwrap_or_default().to_owned();
            state.effects.entry(of).or_default().push(Instant::now());
            state.number += 1;
            state.number
        };
        match request.text("x-test") {
            "slow" | "outlast" => sleep(SLOW).await,
            "fail" => return Some(Answer::problem(500, "failed")),
            _ => (),
        }
        let id = format!("order-{number:08}");
        let filler = if request.text("x-test") == "large" { "x".repeat(100_000) } else { String::new() };
        Some(
            Answer::json(201, &json!({ "id": id, "filler": filler }))
                .with("location", &format!("/orders/{id}")),
        )
    }

    async fn deliver(&self, request: &Request) -> Answer {
        let (id, sent) = (request.text("webhook-id"), request.text("webhook-timestamp"));
        let secs: i64 = sent.parse().unwrap_or(0);
        let secret = Secret::parse(SECRET).unwrap();
        let expected = fields(&[secret], id, Timestamp::from_secs(secs), &request.body);
        let is_signed = expected.iter().any(|(_, value)| value == request.text("webhook-signature"));
        if self.breaks("ICH-W01") || !(is_signed || self.breaks("ICH-W02")) {
            return Answer::problem(401, "the signature is not valid");
        }
        let age = clock::now().as_millis() / 1_000 - secs;
        if 300 < age.abs() && !self.breaks("ICH-W03") {
            return Answer::problem(400, "the delivery is out of time");
        }
        let event: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let of = event["ref"].as_str().unwrap_or_default().to_owned();
        if self.breaks("ICH-W06") {
            let mut state = self.state();
            let latest = state.latest.entry(of.clone()).or_default();
            if secs < *latest {
                return Answer::problem(409, "older than the last");
            }
            *latest = secs;
        }
        let id = if self.breaks("ICH-W04") { format!("{id}{sent}") } else { id.to_owned() };
        let is_known = self.state().events.contains_key(&id);
        if self.breaks("ICH-W05") {
            sleep(Duration::from_millis(20)).await;
        }
        let mut state = self.state();
        if !is_known && (state.events.insert(id, 1).is_none() || self.breaks("ICH-W05")) {
            state.effects.entry(of).or_default().push(Instant::now());
        }
        Answer::json(200, &json!({}))
    }
}

/// What a record means for a request.
enum Found {
    Answer(Answer),
    Replay(Answer),
    Run,
    Wait,
}
