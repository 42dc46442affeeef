//! A relay to PostgreSQL that can cut at one message, and can go silent.

use std::str::FromStr as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use sqlx::postgres::PgConnectOptions;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// When a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Before the message arrives.
    Before,
    /// After the server responded, and before the response arrives.
    After,
}

/// The relay; clones share it.
#[derive(Clone)]
pub(crate) struct Relay {
    port: u16,
    shared: Arc<RelayState>,
}

struct RelayState {
    armed: Mutex<Option<(&'static str, Cut)>>,
    is_silent: watch::Sender<bool>,
    asked: AtomicUsize,
}

impl Relay {
    pub(crate) async fn before(url: &str) -> Self {
        let options = PgConnectOptions::from_str(url).unwrap();
        let server = format!("{}:{}", options.get_host(), options.get_port());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(RelayState {
            armed: Mutex::default(),
            is_silent: watch::Sender::new(false),
            asked: AtomicUsize::new(0),
        });
        let relayed = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(relay(client, server, Arc::clone(&relayed)));
            }
        });
        Self { port, shared }
    }

    /// Cuts the next message that contains this text.
    pub(crate) fn arm(&self, text: &'static str, cut: Cut) {
        *self.shared.armed.lock().unwrap() = Some((text, cut));
    }

    pub(crate) fn has_cut(&self) -> bool {
        self.shared.armed.lock().unwrap().is_none()
    }

    /// Stops forwarding without breaking connections.
    pub(crate) fn fall_silent(&self) {
        self.shared.is_silent.send_replace(true);
    }

    /// Resumes, and forwards what was held back.
    pub(crate) fn speak(&self) {
        self.shared.is_silent.send_replace(false);
    }

    /// How many messages went to the server, or fewer if several were combined.
    pub(crate) fn asked(&self) -> usize {
        self.shared.asked.load(Ordering::SeqCst)
    }

    pub(crate) fn options(&self, url: &str) -> PgConnectOptions {
        PgConnectOptions::from_str(url).unwrap().host("127.0.0.1").port(self.port)
    }

    /// The address of the same database through this relay.
    pub(crate) fn url(&self, url: &str) -> String {
        let port = PgConnectOptions::from_str(url).unwrap().get_port();
        let relayed = url.replace(&format!(":{port}/"), &format!(":{}/", self.port));
        assert_ne!(relayed, url, "the address contains the port");
        relayed
    }
}

/// Forwards bytes both ways until it cuts.
async fn relay(mut client: TcpStream, mut server: TcpStream, shared: Arc<RelayState>) {
    let (mut asked, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut is_silent = shared.is_silent.subscribe();
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let Ok(count @ 1..) = read else { return };
                is_silent.wait_for(|silent| !silent).await.unwrap();
                shared.asked.fetch_add(1, Ordering::SeqCst);
                let holds = |text: &str| asked[..count].windows(text.len()).any(|part| part == text.as_bytes());
                let cut = {
                    let mut armed = shared.armed.lock().unwrap();
                    armed.take_if(|(text, _)| holds(text)).map(|(_, cut)| cut)
                };
                if cut == Some(Cut::Before) || server.write_all(&asked[..count]).await.is_err() {
                    return;
                }
                if cut == Some(Cut::After) {
                    drop(server.read(&mut answered).await);
                    return;
                }
            }
            read = server.read(&mut answered) => {
                let Ok(count @ 1..) = read else { return };
                is_silent.wait_for(|silent| !silent).await.unwrap();
                if client.write_all(&answered[..count]).await.is_err() {
                    return;
                }
            }
        }
    }
}
