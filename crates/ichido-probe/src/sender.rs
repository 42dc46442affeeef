//! Sends requests on raw connections: cut where a rule says so, or released together.
//!
//! Each request has a connection of its own, so that what happens to one says nothing about another.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use ichido_http::client::{HttpClient, RawStream};
use ichido_http::guard::is_link_local;
use ichido_http::trust;
use ichido_http::url::HttpUrl;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep, timeout_at};

use crate::exchange::{Cut, Exchange, ProbeRequest, Received};
use crate::wire::{Parsed, parse, request_bytes};

/// How long the sender waits until the target has read what it was sent so far.
const READ_BY_THEN: Duration = Duration::from_millis(50);

/// A target's connections.
#[derive(Clone)]
pub(crate) struct ProbeSender {
    client: Arc<HttpClient<Full<Bytes>>>,
    host: String,
    timeout: Duration,
}

impl ProbeSender {
    /// Creates the sender. Unless it may leave this machine, it connects to loopback addresses only.
    pub(crate) fn new(url: &HttpUrl, may_leave: bool, timeout: Duration) -> Result<Self, String> {
        let tls =
            if url.is_tls { Some(trust::https(None).map_err(|error| error.to_string())?) } else { None };
        let may_connect: fn(IpAddr) -> bool =
            if may_leave { |address| !is_link_local(address) } else { |address| address.is_loopback() };
        let client = HttpClient::new(url, tls, may_connect).map_err(|error| format!("the URL {error}"))?;
        Ok(Self { host: client.authority().to_string(), client: Arc::new(client), timeout })
    }

    /// Sends a request; `is_patient` connects again while the target does not listen.
    pub(crate) async fn send(&self, request: &ProbeRequest, is_patient: bool) -> Received {
        let deadline = Instant::now() + self.timeout;
        loop {
            match self.exchange(request, deadline).await {
                Err(_) if is_patient && Instant::now() + READ_BY_THEN < deadline => sleep(READ_BY_THEN).await,
                Err(why) => return Received::NotConnected(why),
                Ok(received) => return received,
            }
        }
    }

    /// Fails only if there is no connection.
    async fn exchange(&self, request: &ProbeRequest, deadline: Instant) -> Result<Received, String> {
        let mut stream = self.connect().await?;
        let bytes = request_bytes(request, &self.host);
        let part = match request.cut {
            Cut::BeforeRequest => 0,
            Cut::InRequest => bytes.len() - request.body.len().div_ceil(2),
            Cut::Never | Cut::AfterRequest | Cut::InResponse => bytes.len(),
        };
        let written = write(&mut stream, &bytes[..part], deadline).await;
        Ok(match request.cut {
            Cut::BeforeRequest | Cut::InRequest | Cut::AfterRequest => {
                sleep(READ_BY_THEN).await;
                Received::Cut
            }
            Cut::InResponse => {
                let first = timeout_at(deadline, stream.read(&mut [0; 1])).await;
                match first {
                    Ok(Ok(1)) => Received::Cut,
                    _ => Received::Nothing("no byte of a response arrived".to_owned()),
                }
            }
            // A target may answer before it has read everything, and close.
            Cut::Never => read(&mut stream, deadline).await.unwrap_or_else(|why| {
                Received::Nothing(written.err().map_or(why.clone(), |error| format!("{why} ({error})")))
            }),
        })
    }

    async fn connect(&self) -> Result<RawStream, String> {
        self.client.raw(self.timeout).await.map_err(|error| error.why)
    }

    /// Sends requests so that the target has all but the last byte of each, and then gets all last bytes at once.
    pub(crate) async fn together(&self, requests: &[ProbeRequest]) -> Vec<Exchange> {
        let deadline = Instant::now() + self.timeout;
        let mut ready = Vec::new();
        for request in requests {
            ready.push(self.ready(request, deadline).await);
        }
        sleep(READ_BY_THEN).await;
        let mut reading = Vec::new();
        for one in ready {
            reading.push(match one {
                Ok((mut stream, last)) => {
                    let released = write(&mut stream, &[last], deadline).await;
                    Ok(tokio::spawn(async move {
                        released?;
                        read(&mut stream, deadline).await
                    }))
                }
                Err(why) => Err(why),
            });
        }
        let mut exchanges = Vec::new();
        for (index, (request, task)) in requests.iter().zip(reading).enumerate() {
            let received = match task {
                Ok(task) => task.await.unwrap_or_else(|error| Err(error.to_string())),
                Err(not_ready) => Ok(not_ready),
            };
            let received = received.unwrap_or_else(Received::Nothing);
            exchanges.push(Exchange { request: request.clone(), received, is_with_previous: 0 < index });
        }
        exchanges
    }

    /// Writes all but the last byte of a request.
    async fn ready(&self, request: &ProbeRequest, deadline: Instant) -> Result<(RawStream, u8), Received> {
        let mut stream = self.connect().await.map_err(Received::NotConnected)?;
        let bytes = request_bytes(request, &self.host);
        let nothing = |why: &str| Received::Nothing(why.to_owned());
        let (last, start) = bytes.split_last().ok_or_else(|| nothing("the request is empty"))?;
        write(&mut stream, start, deadline).await.map_err(|why| nothing(&why))?;
        Ok((stream, *last))
    }
}

async fn write(stream: &mut RawStream, bytes: &[u8], deadline: Instant) -> Result<(), String> {
    let written = async {
        stream.write_all(bytes).await?;
        stream.flush().await
    };
    let written =
        timeout_at(deadline, written).await.map_err(|_| "the request was not taken in time".to_owned())?;
    written.map_err(|error| error.to_string())
}

async fn read(stream: &mut RawStream, deadline: Instant) -> Result<Received, String> {
    let mut bytes = Vec::new();
    loop {
        let count = timeout_at(deadline, stream.read_buf(&mut bytes)).await;
        let count = count.map_err(|_| "no complete response in time".to_owned())?;
        // A reset after a complete response is its end.
        let is_end = !matches!(count, Ok(count) if 0 < count);
        match parse(&bytes, is_end)? {
            Parsed::Whole(response) => return Ok(Received::Response(response)),
            Parsed::Partial if is_end => return Err("the response is not complete".to_owned()),
            Parsed::Partial => (),
        }
    }
}
