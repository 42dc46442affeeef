//! Requests and responses as the service reads and writes them.

use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

#[derive(Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) fields: Vec<(&'static str, String)>,
    pub(super) body: String,
}

pub(super) struct Request {
    pub(super) line: String,
    pub(super) fields: Vec<(String, Vec<u8>)>,
    pub(super) body: Vec<u8>,
    pub(super) is_whole: bool,
}

impl Answer {
    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self { status, fields: vec![("content-type", "application/json".to_owned())], body: body.to_string() }
    }

    pub(super) fn problem(status: u16, title: &str) -> Self {
        let body = json!({ "title": title, "status": status }).to_string();
        Self { status, fields: vec![("content-type", "application/problem+json".to_owned())], body }
    }

    pub(super) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.fields.push((name, value.to_owned()));
        self
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let fields: Vec<String> =
            self.fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let fields = fields.concat();
        let length = self.body.len();
        format!("HTTP/1.1 {} X\r\n{fields}content-length: {length}\r\n\r\n{}", self.status, self.body)
            .into_bytes()
    }
}

impl Request {
    pub(super) async fn read(stream: &mut TcpStream) -> Option<Self> {
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break end;
            }
            if stream.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
        };
        let mut lines = bytes[..end].split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let line = String::from_utf8_lossy(lines.next()?).into_owned();
        let field = |line: &[u8]| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let name = String::from_utf8_lossy(&line[..colon]).to_ascii_lowercase();
            Some((name, line[colon + 1..].trim_ascii().to_vec()))
        };
        let fields: Vec<(String, Vec<u8>)> = lines.filter_map(field).collect();
        let length = fields.iter().find(|(name, _)| name == "content-length");
        let length: usize = length.map_or(0, |(_, value)| String::from_utf8_lossy(value).parse().unwrap());
        let mut is_whole = true;
        while bytes.len() < end + 4 + length {
            if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                is_whole = false;
                break;
            }
        }
        Some(Self { line, fields, body: bytes.split_off(end + 4), is_whole })
    }

    pub(super) fn text(&self, name: &str) -> &str {
        let found = self.fields.iter().find(|(found, _)| found == name);
        found.and_then(|(_, value)| std::str::from_utf8(value).ok()).unwrap_or_default()
    }
}
