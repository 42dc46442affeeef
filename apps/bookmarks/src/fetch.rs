//! Fetches a page that an untrusted person may have chosen.
//!
//! Guarantee: no connection is made to an address that the guard refuses. The address that is checked is the one that
//! is connected to, and each redirect is checked again. Time, bytes, header fields and redirects are bounded, and only
//! text is read.

pub(crate) mod guard;
mod wire;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderName, StatusCode};
use ichido_core::time::Timestamp;
use ichido_core::verdict::retry_after;
use ichido_http::trust;
use rustls::ClientConfig;
use tokio::time::timeout;
use url::Url;

use crate::job_error::{JobErrorCode, JobFailure};
use crate::settings::{Settings, limits};

/// The media types that are read as text.
const MEDIA: [&str; 3] = ["text/html", "application/xhtml+xml", "text/plain"];

/// A page as it was received.
pub(crate) struct Fetched {
    /// The media type, in lowercase.
    pub(crate) media: String,
    /// The encoding that the server names.
    pub(crate) charset: Option<String>,
    pub(crate) body: Bytes,
}

/// Fetches pages.
pub(crate) struct Fetcher {
    may_reach: fn(IpAddr) -> bool,
    within: Duration,
    tls: Option<Arc<ClientConfig>>,
}

impl Fetcher {
    pub(crate) fn new(settings: &Settings) -> Self {
        let tls = trust::https(None).ok();
        if tls.is_none() {
            tracing::warn!("no trusted certificates found; https pages not fetched");
        }
        Self { may_reach: settings.may_reach, within: settings.page_within, tls }
    }

    /// Fetches a page. `now` is for a `Retry-After` with a date.
    pub(crate) async fn get(&self, url: &str, now: Timestamp) -> Result<Fetched, JobFailure> {
        let url =
            Url::parse(url).map_err(|_| JobFailure::new(JobErrorCode::AddressRefused, "it is not a URL"))?;
        let late = |_| {
            JobFailure::new(
                JobErrorCode::PageTooSlow,
                format!("it was not received within {:?}", self.within),
            )
        };
        timeout(self.within, self.follow(url, now)).await.map_err(late)?
    }

    async fn follow(&self, mut url: Url, now: Timestamp) -> Result<Fetched, JobFailure> {
        for _ in 0..=limits::MAX_REDIRECTS {
            let answer = self.ask(&url).await?;
            let Some(location) = moved(answer.status(), answer.headers()) else {
                judge(answer.status(), answer.headers(), now)?;
                let (media, charset) = media(answer.headers())?;
                let body = wire::read(answer).await?;
                return Ok(Fetched { media, charset, body });
            };
            let next = url.join(location).ok().filter(|next| matches!(next.scheme(), "http" | "https"));
            url = next.ok_or_else(|| {
                JobFailure::new(JobErrorCode::AddressRefused, "it redirects to a URL that is not a page")
            })?;
        }
        let detail = format!("it redirects more than {} times", limits::MAX_REDIRECTS);
        Err(JobFailure::new(JobErrorCode::PageFailing, detail))
    }
}

/// Returns the target of a redirect.
fn moved(status: StatusCode, headers: &HeaderMap) -> Option<&str> {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308).then(|| text(headers, &LOCATION))?
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Returns whether the response is the page, or what is wrong.
fn judge(status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Result<(), JobFailure> {
    let job_error = match status.as_u16() {
        200..=299 => return Ok(()),
        404 | 410 => JobErrorCode::PageNotFound,
        408 | 425 => JobErrorCode::PageTooSlow,
        429 => JobErrorCode::PageBusy,
        400..=499 => JobErrorCode::PageRefused,
        _ => JobErrorCode::PageFailing,
    };
    let wait = text(headers, &RETRY_AFTER).and_then(|value| retry_after(value, now));
    let wait = wait.map(|wait| wait.min(limits::MAX_PAGE_RETRY_AFTER));
    Err(JobFailure { wait, ..JobFailure::new(job_error, format!("the site returned {}", status.as_u16())) })
}

/// Returns the media type and encoding, if it is text.
fn media(headers: &HeaderMap) -> Result<(String, Option<String>), JobFailure> {
    let not_text = |what: String| JobFailure::new(JobErrorCode::PageNotText, what);
    if let Some(coding) = headers.get_all(&CONTENT_ENCODING).iter().find(|coding| *coding != "identity") {
        return Err(not_text(format!("it has the content encoding {coding:?}, which was not requested")));
    }
    // A response without a media type is usually a page.
    let mut parts = text(headers, &CONTENT_TYPE).unwrap_or(MEDIA[0]).split(';').map(str::trim);
    let media = parts.next().unwrap_or_default().to_ascii_lowercase();
    if !MEDIA.contains(&media.as_str()) {
        return Err(not_text(format!("its media type is {media:?}")));
    }
    let charset =
        parts.filter_map(|part| part.split_once('=')).find(|(name, _)| name.eq_ignore_ascii_case("charset"));
    Ok((media, charset.map(|(_, value)| value.trim_matches(['"', '\'']).to_owned())))
}
