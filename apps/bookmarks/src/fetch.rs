//! Fetches a page that an untrusted person may have chosen.
//!
//! Guarantee: no connection is made to an address that the guard refuses. The address that is checked is the one that
//! is connected to, and each redirect is checked again. Time, bytes, header fields and redirects are bounded: of a
//! larger page the beginning is read.

pub(crate) mod guard;
mod inflate;
mod wire;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderName, StatusCode};
use ichido::time::Timestamp;
use ichido::verdict::retry_after;
use ichido_http::trust;
use rustls::ClientConfig;
use tokio::time::timeout;
use url::Url;

use self::inflate::Coding;
use crate::icons;
use crate::job_error::{JobErrorCode, JobFailure};
use crate::settings::{Settings, limits};

/// A page as it was received.
pub(crate) struct Fetched {
    /// Where it came from, after redirects.
    pub(crate) url: Url,
    /// The media type, in lowercase.
    pub(crate) media: String,
    /// The encoding that the server names.
    pub(crate) charset: Option<String>,
    pub(crate) coding: Option<Coding>,
    /// The beginning of the body, as it was sent.
    pub(crate) body: Bytes,
}

impl Fetched {
    /// Returns the beginning of the body, inflated.
    pub(crate) fn inflated(&self, max_bytes: usize) -> Bytes {
        self.coding.map_or_else(|| self.body.clone(), |coding| coding.inflate(&self.body, max_bytes).into())
    }
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
        self.get_within(self.within, url, now, limits::MAX_PAGE_BYTES).await
    }

    /// Fetches the icon of a site: its media type and its bytes. Without a usable one there is no icon.
    pub(crate) async fn icon(&self, url: Url, now: Timestamp) -> Option<(&'static str, Bytes)> {
        // One byte more tells that it is too large.
        let max_bytes = limits::MAX_ICON_BYTES + 1;
        let within = self.within.min(limits::ICON_WITHIN);
        let fetched = self.get_within(within, url, now, max_bytes).await.ok()?;
        let icon = fetched.inflated(max_bytes);
        let media = icons::media(&icon).filter(|_| icon.len() < max_bytes)?;
        Some((media, icon))
    }

    async fn get_within(
        &self,
        within: Duration,
        url: Url,
        now: Timestamp,
        max_bytes: usize,
    ) -> Result<Fetched, JobFailure> {
        let late =
            |_| JobFailure::new(JobErrorCode::PageTooSlow, format!("it was not received within {within:?}"));
        timeout(within, self.follow(url, now, max_bytes)).await.map_err(late)?
    }

    async fn follow(&self, mut url: Url, now: Timestamp, max_bytes: usize) -> Result<Fetched, JobFailure> {
        for _ in 0..=limits::MAX_REDIRECTS {
            let answer = self.ask(&url).await?;
            let Some(location) = moved(answer.status(), answer.headers()) else {
                judge(answer.status(), answer.headers(), now)?;
                let (media, charset) = media(answer.headers());
                let coding = Coding::parse(answer.headers()).map_err(|codings| {
                    let detail = format!("it has the content encoding {codings:?}, which was not requested");
                    JobFailure::new(JobErrorCode::PageNotText, detail)
                })?;
                let body = wire::read(answer, max_bytes).await?;
                return Ok(Fetched { url, media, charset, coding, body });
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

/// Returns the media type and encoding. A response without a media type is usually a page.
fn media(headers: &HeaderMap) -> (String, Option<String>) {
    let mut parts = text(headers, &CONTENT_TYPE).unwrap_or("text/html").split(';').map(str::trim);
    let media = parts.next().unwrap_or_default().to_ascii_lowercase();
    let charset =
        parts.filter_map(|part| part.split_once('=')).find(|(name, _)| name.eq_ignore_ascii_case("charset"));
    (media, charset.map(|(_, value)| value.trim_matches(['"', '\'']).to_owned()))
}
