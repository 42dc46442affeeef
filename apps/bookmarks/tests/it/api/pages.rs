//! A page server scripted with raw bytes, so it can misbehave.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, mpsc};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// Returns the response to the nth request (from 1) of a path; nothing means silence.
type PageScript = dyn Fn(&str, usize) -> Vec<u8> + Send + Sync;

/// No response, and no end.
pub(crate) const SILENCE: Vec<u8> = Vec::new();

/// A server that runs until this is dropped.
pub(crate) struct Pages {
    pub(crate) address: SocketAddr,
    scheme: &'static str,
    requests: Arc<Mutex<HashMap<String, usize>>>,
    task: JoinHandle<()>,
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Pages {
    pub(crate) async fn start(script: impl Fn(&str, usize) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::start_as(None, script).await
    }

    /// The same, over TLS.
    pub(crate) async fn start_tls(
        acceptor: TlsAcceptor,
        script: impl Fn(&str, usize) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        Self::start_as(Some(acceptor), script).await
    }

    async fn start_as(
        tls: Option<TlsAcceptor>,
        script: impl Fn(&str, usize) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let (requests, script): (Arc<Mutex<HashMap<String, usize>>>, Arc<PageScript>) =
            (Arc::default(), Arc::new(script));
        let counted = Arc::clone(&requests);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (tls, counted, script) = (tls.clone(), Arc::clone(&counted), Arc::clone(&script));
                tokio::spawn(async move {
                    match tls {
                        None => answer(stream, counted, script).await,
                        // A client that does not trust us hangs up.
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                answer(stream, counted, script).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, scheme, requests, task }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// Returns how often a path was requested.
    pub(crate) fn requests(&self, path: &str) -> usize {
        self.requests.lock().unwrap().get(path).copied().unwrap_or(0)
    }
}

async fn answer(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    requests: Arc<Mutex<HashMap<String, usize>>>,
    script: Arc<PageScript>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap().to_owned();
    let count = {
        let mut requests = requests.lock().unwrap();
        let count = requests.entry(path.clone()).or_default();
        *count += 1;
        *count
    };
    // Only what a page names is scripted.
    let answer = match path.as_str() {
        "/favicon.ico" => http_response("404 Not Found", "", b""),
        path => script(path, count),
    };
    if answer.is_empty() {
        std::future::pending::<()>().await;
    }
    // A client that hangs up early has seen enough.
    drop(stream.write_all(&answer).await);
    drop(stream.shutdown().await);
}

/// Holds pages back until a case releases them, one by one.
pub(crate) struct PageGate(Mutex<mpsc::Receiver<()>>);

impl PageGate {
    pub(crate) fn shut() -> (mpsc::Sender<()>, Self) {
        let (open, opened) = mpsc::channel();
        (open, Self(Mutex::new(opened)))
    }

    /// A blocked runtime thread would hold up the tasks queued behind it.
    pub(crate) fn pass(&self) {
        tokio::task::block_in_place(|| self.0.lock().unwrap().recv()).unwrap();
    }
}

/// A response with a status, more header lines and a body.
pub(crate) fn http_response(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// A page.
pub(crate) fn html(body: &str) -> Vec<u8> {
    http_response("200 OK", "Content-Type: text/html; charset=utf-8\r\n", body.as_bytes())
}

/// A page with meaningful text.
pub(crate) fn story() -> Vec<u8> {
    html(STORY)
}

/// The same, without a head.
pub(crate) fn story_html() -> Vec<u8> {
    STORY.as_bytes().to_vec()
}

const STORY: &str = "<title>The fox</title><nav>Home</nav><p>The quick brown fox jumped over the lazy dog in the sun. The dog slept on and did not \
         mind it in the least. When the evening came they both went home.</p>";
