//! Sends one request for a page and reads its response.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONNECTION, HOST, USER_AGENT};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use ichido::verdict::NetworkFault;
use ichido_http::client::{HttpClient, NetworkError};
use ichido_http::url::HttpUrl;
use tokio::time::Instant;
use url::{Position, Url};

use super::Fetcher;
use crate::job_error::{JobErrorCode, JobFailure};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const USER_AGENT_NAME: &str = concat!("bookmarks/", env!("CARGO_PKG_VERSION"));

fn unreachable(why: impl std::fmt::Display) -> JobFailure {
    JobFailure::new(JobErrorCode::PageUnreachable, why.to_string())
}

fn failed(error: NetworkError) -> JobFailure {
    let job_error = match error.kind {
        NetworkFault::NotSent => {
            return JobFailure::new(
                JobErrorCode::AddressRefused,
                "its address is not on the public Internet",
            );
        }
        NetworkFault::ConnectTimeout | NetworkFault::Timeout => JobErrorCode::PageTooSlow,
        // An untrusted certificate is still untrusted at the next attempt.
        _ if error.is_untrusted => JobErrorCode::PageUntrusted,
        _ => JobErrorCode::PageUnreachable,
    };
    JobFailure::new(job_error, error.why)
}

impl Fetcher {
    /// Sends one request to the server of a URL, if its address may be reached.
    pub(super) async fn ask(&self, url: &Url) -> Result<Response<Incoming>, JobFailure> {
        let is_plain = url.scheme() == "http";
        if !is_plain && self.tls.is_none() {
            return Err(unreachable("the system has no trusted certificates, so https cannot be used"));
        }
        let address = format!(
            "{}://{}{}",
            url.scheme(),
            &url[Position::BeforeHost..Position::AfterPort],
            &url[Position::BeforePath..Position::AfterQuery]
        );
        let url = HttpUrl::parse(&address).map_err(unreachable)?;
        let client = HttpClient::new(&url, self.tls.clone(), self.may_reach).map_err(unreachable)?;
        let request = Request::get(url.target.as_str())
            .header(HOST, client.host_field())
            .header(USER_AGENT, USER_AGENT_NAME)
            .header(ACCEPT, "text/html, application/xhtml+xml, text/plain;q=0.8, */*;q=0.1")
            .header(ACCEPT_ENCODING, "identity")
            .header(CONNECTION, "close")
            .body(Empty::<Bytes>::new())
            .map_err(unreachable)?;
        let deadline = Instant::now() + self.within;
        client.send(request, CONNECT_TIMEOUT, deadline, std::future::pending).await.map_err(failed)
    }
}

/// Reads the beginning of a body.
pub(super) async fn read(answer: Response<Incoming>, max_bytes: usize) -> Result<Bytes, JobFailure> {
    let mut incoming = answer.into_body();
    let mut body = BytesMut::new();
    while body.len() < max_bytes
        && let Some(frame) = incoming.frame().await
    {
        let Ok(data) = frame.map_err(unreachable)?.into_data() else { continue };
        body.extend_from_slice(&data[..data.len().min(max_bytes - body.len())]);
    }
    Ok(body.freeze())
}
