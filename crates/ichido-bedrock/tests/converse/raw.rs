//! A server that reads whole requests and answers each with the same bytes, valid or not.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

pub(crate) struct Raw {
    address: SocketAddr,
    requests: Arc<AtomicU32>,
}

/// What the server does after its response.
#[derive(Clone, Copy)]
pub(crate) enum AfterAnswer {
    Close,
    /// Nothing, for as long as the caller waits.
    Wait,
}

impl Raw {
    pub(crate) async fn start(answer: Vec<u8>, then: AfterAnswer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let raw = Self { address: listener.local_addr().unwrap(), requests: Arc::default() };
        let (answer, requests) = (Arc::new(answer), Arc::clone(&raw.requests));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&answer), then, Arc::clone(&requests)));
            }
        });
        raw
    }

    /// Starts a server that sends a complete response.
    pub(crate) async fn answering(status: u16, fields: &str, body: &str) -> Self {
        let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n", body.len());
        Self::start(format!("{head}{fields}\r\n{body}").into_bytes(), AfterAnswer::Close).await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn requests(&self) -> u32 {
        self.requests.load(Ordering::SeqCst)
    }
}

async fn serve(mut stream: TcpStream, answer: Arc<Vec<u8>>, then: AfterAnswer, requests: Arc<AtomicU32>) {
    if !read_request(&mut stream).await {
        return;
    }
    requests.fetch_add(1, Ordering::SeqCst);
    // The caller may have gone.
    if stream.write_all(&answer).await.is_ok()
        && let AfterAnswer::Wait = then
    {
        std::future::pending::<()>().await;
    }
}

/// Reads a request to its end; returns `false` if none came.
async fn read_request(stream: &mut TcpStream) -> bool {
    let mut read = Vec::new();
    loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&read[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
            if end + 4 + length <= read.len() {
                return true;
            }
        }
        match stream.read_buf(&mut read).await {
            Ok(0) | Err(_) => return false,
            Ok(_) => (),
        }
    }
}
