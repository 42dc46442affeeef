//! Shell commands that act on the test itself.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The longest request of our own command.
const MAX_REQUEST_BYTES: usize = 4096;

/// Runs code of the test when a program runs a command that it was given. It ends with the test's runtime.
pub struct CommandServer {
    address: SocketAddr,
}

impl CommandServer {
    /// Starts a server that passes the word of each command to `act`, and prints what it returns.
    pub async fn start<F, A>(act: F) -> Self
    where
        F: Fn(String) -> A + Send + Sync + 'static,
        A: Future<Output = String> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let address = listener.local_addr().expect("an address");
        let act = Arc::new(act);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let act = Arc::clone(&act);
                // If the test's code fails, the connection ends, and so does the command.
                tokio::spawn(async move { answer(stream, |word| act(word)).await });
            }
        });
        Self { address }
    }

    /// Returns the command for a word. It fails if the test's code does.
    pub fn command(&self, word: &str) -> String {
        format!("curl -sS -f http://{}/{word}", self.address)
    }
}

async fn answer<A: Future<Output = String>>(mut stream: TcpStream, act: impl FnOnce(String) -> A) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") && request.len() < MAX_REQUEST_BYTES {
        if stream.read_buf(&mut request).await.expect("a request") == 0 {
            return;
        }
    }
    let request = String::from_utf8_lossy(&request);
    let word = request.split(' ').nth(1).and_then(|path| path.strip_prefix('/')).expect("a path");
    let printed = act(word.to_owned()).await;
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", printed.len());
    stream.write_all((head + &printed).as_bytes()).await.expect("the command waits");
}
