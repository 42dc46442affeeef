//! Exports all bookmarks as a file: `GET /v1/export`.
//!
//! The file is written while it is sent, a page of rows at a time, so its size does not matter.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::Uri;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use hyper::body::{Body as HttpBody, Frame};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::access::AuthenticatedCaller;
use crate::app::App;
use crate::bookmarks;
use crate::problem::{Code, Problem};
use crate::settings::limits::EXPORTED_AT_ONCE;
use crate::transfer::{Link, json, netscape};

#[derive(Clone, Copy)]
enum FileFormat {
    Html,
    Json,
}

pub(super) async fn export(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<AuthenticatedCaller>,
    uri: Uri,
) -> Result<Response, Problem> {
    let (format, media, name) = match uri.query() {
        Some("format=html") => {
            (FileFormat::Html, "text/html; charset=utf-8", "attachment; filename=\"bookmarks.html\"")
        }
        Some("format=json") => {
            (FileFormat::Json, "application/json", "attachment; filename=\"bookmarks.json\"")
        }
        _ => return Err(Problem::new(Code::ParameterInvalid, "`format` must be html or json")),
    };
    let (sender, parts) = mpsc::channel(1);
    tokio::spawn(write(app, caller.person.id, format, sender));
    let headers = [(CONTENT_TYPE, media), (CONTENT_DISPOSITION, name), (CACHE_CONTROL, "no-store")];
    Ok((headers, Body::new(FileBody(parts))).into_response())
}

/// The parts of the file, as they come.
struct FileBody(mpsc::Receiver<Result<Bytes, sqlx::Error>>);

impl HttpBody for FileBody {
    type Data = Bytes;
    type Error = sqlx::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, sqlx::Error>>> {
        self.0.poll_recv(context).map(|part| part.map(|data| data.map(Frame::data)))
    }
}

/// Writes the file until its end, or until nobody reads it. A failure breaks the connection, so half a file is not taken
/// for a whole one.
async fn write(
    app: Arc<App>,
    person: Uuid,
    format: FileFormat,
    sender: mpsc::Sender<Result<Bytes, sqlx::Error>>,
) {
    let (head, tail) = match format {
        FileFormat::Html => (netscape::HEAD, netscape::TAIL),
        FileFormat::Json => (json::HEAD, json::TAIL),
    };
    let mut text = head.to_owned();
    let mut before = Uuid::max();
    let mut gap = "";
    loop {
        let page = match page(&app, person, before).await {
            Ok(page) => page,
            Err(error) => {
                tracing::error!(%error, "export failed");
                // Nobody reads it any more, or they see it.
                drop(sender.send(Err(error)).await);
                return;
            }
        };
        let is_last = page.len() < EXPORTED_AT_ONCE as usize;
        for (id, link) in page {
            before = id;
            match format {
                FileFormat::Html => text.push_str(&netscape::write(&link)),
                FileFormat::Json => {
                    text.push_str(gap);
                    text.push_str(&json::write(link));
                    gap = ",\n";
                }
            }
        }
        if is_last {
            text.push_str(tail);
        }
        if sender.send(Ok(Bytes::from(std::mem::take(&mut text)))).await.is_err() || is_last {
            return;
        }
    }
}

async fn page(app: &App, person: Uuid, before: Uuid) -> Result<Vec<(Uuid, Link)>, sqlx::Error> {
    let mut pooled = app.database.connect().await?;
    bookmarks::links(&mut pooled.connection(), person, before, EXPORTED_AT_ONCE).await
}
