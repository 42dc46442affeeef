//! A proxy between us and the server that misbehaves on demand.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The most bytes forwarded at once. More than any publish of the tests, so each is seen whole.
const CHUNK_BYTES: usize = 1 << 16;

/// What the proxy does with traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Forwards it.
    Pass,
    /// Drops a publish and cuts the connection.
    CutPublish,
    /// Drops an acknowledgement and cuts the connection.
    CutAnswer,
    /// Forwards nothing from the server.
    Silence,
}

#[derive(Clone)]
pub(crate) struct NatsProxy {
    pub(crate) address: SocketAddr,
    mode: Arc<watch::Sender<Mode>>,
    server: Arc<watch::Sender<SocketAddr>>,
    connections: Arc<AtomicUsize>,
}

impl NatsProxy {
    pub(crate) async fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let proxy = Self {
            address: listener.local_addr().expect("it listens"),
            mode: Arc::new(watch::Sender::new(Mode::Pass)),
            server: Arc::new(watch::Sender::new(server)),
            connections: Arc::default(),
        };
        tokio::spawn(proxy.clone().serve(listener));
        proxy
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    /// Directs new connections there.
    pub(crate) fn lead_to(&self, server: SocketAddr) {
        self.server.send_replace(server);
    }

    /// Returns how many connections were made.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    async fn serve(self, listener: TcpListener) {
        while let Ok((near, _)) = listener.accept().await {
            let server = *self.server.borrow();
            let Ok(far) = TcpStream::connect(server).await else {
                continue; // Closes the near one.
            };
            self.connections.fetch_add(1, Ordering::SeqCst);
            let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
            let (there, back) = (self.clone(), self.clone());
            tokio::spawn(async move {
                // Whichever ends first ends the other, and both connections.
                tokio::select! {
                    () = there.carry(near_in, far_out, Mode::CutPublish, b"HPUB ") => (),
                    () = back.carry(far_in, near_out, Mode::CutAnswer, b"\"seq\":") => (),
                }
            });
        }
    }

    /// Forwards bytes until the mode is `cut` and they contain `sign`.
    async fn carry(&self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf, cut: Mode, sign: &[u8]) {
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let Ok(count @ 1..) = from.read(&mut chunk).await else {
                return;
            };
            let (mode, bytes) = (*self.mode.borrow(), &chunk[..count]);
            if mode == cut && bytes.windows(sign.len()).any(|window| window == sign) {
                return;
            }
            if mode == Mode::Silence && cut == Mode::CutAnswer {
                continue;
            }
            if to.write_all(bytes).await.is_err() {
                return;
            }
        }
    }
}
