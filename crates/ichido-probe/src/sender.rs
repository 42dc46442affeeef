//! Sends requests on raw connections: cut where a rule says so, or released together.
//!
//! Each request has a connection of its own, so that what happens to one says nothing about another. Only those that are released
//! together share one, if the target speaks HTTP/2.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use ichido_http::client::{HttpClient, RawStream};
use ichido_http::guard::is_link_local;
use ichido_http::trust::{self, ClientConfig};
use ichido_http::url::HttpUrl;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep, timeout_at};

use crate::exchange::{Cut, Exchange, ProbeRequest, Received};
use crate::h2_race::H2Connection;
use crate::wire::{ResponseParser, request_bytes};

/// How long the sender waits until the target has read what it was sent so far.
const READ_BY_THEN: Duration = Duration::from_millis(50);
/// How long a response head may take from its first byte on.
const MAX_HEAD_TIME: Duration = Duration::from_secs(5);
/// What rustls says of a response that is not TLS.
const NOT_TLS: &str = "InvalidContentType";
/// How much of a response is read at once.
const READ_BYTES: usize = 16 * 1024;

/// A target's connections.
#[derive(Clone)]
pub(crate) struct ProbeSender {
    client: Arc<HttpClient<Full<Bytes>>>,
    /// For HTTP/2.
    h2: Option<Arc<HttpClient<Full<Bytes>>>>,
    url: HttpUrl,
    may_connect: fn(IpAddr) -> bool,
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
        Ok(Self {
            host: client.authority().to_string(),
            client: Arc::new(client),
            h2: None,
            url: url.clone(),
            may_connect,
            timeout,
        })
    }

    /// Finds out whether the target speaks HTTP/2; from then on simultaneous requests use it. Over TLS it is negotiated.
    pub(crate) async fn negotiate_http2(&mut self) -> Result<(), String> {
        let tls = if self.url.is_tls {
            let mut config = ClientConfig::clone(&*trust::https(None).map_err(|error| error.to_string())?);
            config.alpn_protocols = vec![b"h2".to_vec()];
            Some(Arc::new(config))
        } else {
            None
        };
        let client =
            HttpClient::new(&self.url, tls, self.may_connect).map_err(|error| format!("the URL {error}"))?;
        let client = Arc::new(client);
        let spoken = self.http2(&client).await.map(drop);
        spoken.map_err(|why| format!("the API does not speak HTTP/2: {why}"))?;
        self.h2 = Some(client);
        Ok(())
    }

    /// Whether simultaneous requests are sent over HTTP/2.
    pub(crate) const fn is_http2(&self) -> bool {
        self.h2.is_some()
    }

    async fn http2(&self, client: &HttpClient<Full<Bytes>>) -> Result<H2Connection<RawStream>, String> {
        H2Connection::start(client.raw(self.timeout).await.map_err(|error| error.why)?).await
    }

    /// Waits until the target listens.
    pub(crate) async fn listens(&self, patience: Duration) -> Result<(), String> {
        let deadline = Instant::now() + patience;
        loop {
            match self.connect().await {
                Ok(_) => return Ok(()),
                Err(why) if why.contains(NOT_TLS) => {
                    return Err(format!("{why}; the API may speak plain HTTP; try http://"));
                }
                Err(_) if Instant::now() + READ_BY_THEN < deadline => sleep(READ_BY_THEN).await,
                Err(why) => return Err(format!("{why}; is the API running?")),
            }
        }
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
            // A target may answer before it has read everything, and close.
            Cut::Never => match (read(&mut stream, deadline).await, written) {
                (Received::Closed(why), Err(error)) => Received::Closed(format!("{why} ({error})")),
                (Received::Nothing(why), Err(error)) => Received::Nothing(format!("{why} ({error})")),
                (received, _) => received,
            },
            // What was not sent cannot be lost.
            _ if written.is_err() => Received::Nothing(written.err().unwrap_or_default()),
            Cut::BeforeRequest | Cut::InRequest => {
                sleep(READ_BY_THEN).await;
                Received::Cut
            }
            // Not a moment later: a fast target would have responded.
            Cut::AfterRequest => {
                drop(stream);
                sleep(READ_BY_THEN).await;
                Received::Cut
            }
            Cut::InResponse => match timeout_at(deadline, stream.read(&mut [0; 1])).await {
                Ok(Ok(1)) => Received::Cut,
                _ => Received::Nothing("no byte of a response arrived".to_owned()),
            },
        })
    }

    async fn connect(&self) -> Result<RawStream, String> {
        self.client.raw(self.timeout).await.map_err(|error| error.why)
    }

    /// Sends requests so that the target has all but the last byte of each, and then gets all last bytes at once.
    pub(crate) async fn together(&self, requests: &[ProbeRequest]) -> Vec<Exchange> {
        let received = match &self.h2 {
            Some(client) => self.on_streams(requests, client).await,
            None => self.on_connections(requests).await,
        };
        let exchanges = requests.iter().zip(received).enumerate();
        let exchange = |(index, (request, received)): (usize, (&ProbeRequest, _))| Exchange {
            request: request.clone(),
            received,
            earlier: Vec::new(),
            is_with_previous: 0 < index,
        };
        exchanges.map(exchange).collect()
    }

    /// Sends simultaneous requests as streams of as few connections as the target allows.
    async fn on_streams(&self, requests: &[ProbeRequest], client: &HttpClient<Full<Bytes>>) -> Vec<Received> {
        let deadline = Instant::now() + self.timeout;
        let origin = format!("{}://{}", if self.url.is_tls { "https" } else { "http" }, self.host);
        let (mut races, mut rest) = (Vec::new(), requests);
        while !rest.is_empty() {
            let ready = async {
                let connection = self.http2(client).await?;
                let part = &rest[..connection.capacity(rest).min(rest.len())];
                Ok((part.len(), connection.ready(part, &origin).await?))
            };
            let ready = timeout_at(deadline, ready).await;
            match ready.unwrap_or_else(|_| Err("the requests were not taken in time".to_owned())) {
                Ok((count, race)) => {
                    races.push(Ok(race));
                    rest = &rest[count..];
                }
                Err(why) => {
                    races.push(Err((rest.len(), why)));
                    break;
                }
            }
        }
        let reading: Vec<_> = races.into_iter().map(|race| race.map(|race| race.release(deadline))).collect();
        let mut received = Vec::new();
        for part in reading {
            match part {
                Ok(tasks) => {
                    for task in tasks {
                        received
                            .push(task.await.unwrap_or_else(|error| Received::Nothing(error.to_string())));
                    }
                }
                Err((count, why)) => received.extend((0..count).map(|_| Received::NotConnected(why.clone()))),
            }
        }
        received
    }

    /// Sends simultaneous requests on connections of their own.
    async fn on_connections(&self, requests: &[ProbeRequest]) -> Vec<Received> {
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
                        match released {
                            Ok(()) => read(&mut stream, deadline).await,
                            Err(why) => Received::Nothing(why),
                        }
                    }))
                }
                Err(why) => Err(why),
            });
        }
        let mut all = Vec::new();
        for task in reading {
            all.push(match task {
                Ok(task) => task.await.unwrap_or_else(|error| Received::Nothing(error.to_string())),
                Err(not_ready) => not_ready,
            });
        }
        all
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

/// Reads the response to a request, however slow or large the target makes it.
async fn read(stream: &mut (impl AsyncRead + Unpin), deadline: Instant) -> Received {
    let mut parser = ResponseParser::default();
    let mut head_deadline = None;
    loop {
        if !parser.is_in_head() {
            head_deadline = None;
        } else if head_deadline.is_none() {
            head_deadline = Some(Instant::now() + MAX_HEAD_TIME);
        }
        let until = head_deadline.map_or(deadline, |head| deadline.min(head));
        parser.bytes.reserve(READ_BYTES);
        let Ok(count) = timeout_at(until, stream.read_buf(&mut parser.bytes)).await else {
            return Received::Nothing(if until < deadline {
                format!("the response head took more than {} s", MAX_HEAD_TIME.as_secs())
            } else {
                "no complete response in time".to_owned()
            });
        };
        // A reset after a complete response is its end.
        let is_end = !matches!(count, Ok(count) if 0 < count);
        match parser.advance(is_end) {
            Ok(Some(response)) => return Received::Response(response),
            Ok(None) => (),
            Err(why) if is_end => return Received::Closed(why),
            Err(why) => return Received::Nothing(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::DuplexStream;

    use super::*;

    async fn read_in(
        deadline: Duration,
        send: impl AsyncFn(&mut DuplexStream) + 'static,
    ) -> (Received, Duration) {
        let (mut ours, mut theirs) = tokio::io::duplex(64);
        let start = Instant::now();
        let received = tokio::select! {
            received = read(&mut ours, start + deadline) => received,
            () = async { loop { send(&mut theirs).await } } => unreachable!("it sends for ever"),
        };
        (received, start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_trickles_is_cut() {
        let trickle = async |target: &mut DuplexStream| {
            target.write_all(b"H").await.unwrap();
            sleep(Duration::from_secs(1)).await;
        };
        let (received, took) = read_in(Duration::from_mins(10), trickle).await;
        assert_eq!(received, Received::Nothing("the response head took more than 5 s".to_owned()));
        assert_eq!(took, MAX_HEAD_TIME);
    }

    #[tokio::test(start_paused = true)]
    async fn interim_responses_do_not_go_on_for_ever() {
        let slow = async |target: &mut DuplexStream| {
            target.write_all(b"HTTP/1.1 102 Processing\r\n\r\n").await.unwrap();
            sleep(Duration::from_secs(4)).await;
        };
        let (received, _) = read_in(Duration::from_mins(10), slow).await;
        assert_eq!(received, Received::Nothing("more than 16 interim responses, such as 102".to_owned()));
        let (received, took) = read_in(Duration::from_secs(15), slow).await;
        assert_eq!(received, Received::Nothing("no complete response in time".to_owned()));
        assert_eq!(took, Duration::from_secs(15));
    }
}
