//! A TCP link to the database that can be cut, silenced, restored and redirected.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkState {
    Open,
    /// Connections stay open and nothing arrives, as in a network partition. Data arrives after the link is restored.
    Silent,
    /// Connections are closed, and so are new ones.
    Cut,
}

/// The state of the link, shared by its connections.
#[derive(Clone, Copy, Debug)]
struct LinkSetup {
    state: LinkState,
    server: SocketAddr,
    /// Incremented to close all existing connections.
    age: u64,
}

/// It ends with the test's runtime.
pub(crate) struct FaultyLink {
    /// The URL of the database through this link.
    pub(crate) url: String,
    setup: Arc<watch::Sender<LinkSetup>>,
    ports: Ports,
}

/// The ports of the connections, as the server sees them.
type Ports = Arc<Mutex<BTreeSet<u16>>>;

impl FaultyLink {
    /// Creates a link to the database of a URL, whose host it replaces.
    pub(crate) async fn to(url: &str) -> Self {
        let (before, rest) = url.split_once('@').expect("a user");
        let (server, after) = rest.split_once('/').expect("a database");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("{before}@{}/{after}", listener.local_addr().unwrap());
        let server = server.parse().expect("an address");
        let setup = Arc::new(watch::Sender::new(LinkSetup { state: LinkState::Open, server, age: 0 }));
        let (setup_sender, ports) = (Arc::clone(&setup), Ports::default());
        let listed = Arc::clone(&ports);
        tokio::spawn(async move {
            loop {
                let (near, _) = listener.accept().await.unwrap();
                // However a connection ends, both sides see it.
                tokio::spawn(forward_connection(near, setup_sender.subscribe(), Arc::clone(&listed)));
            }
        });
        Self { url, setup, ports }
    }

    /// Returns the ports of the connections, as the server sees them.
    pub(crate) fn ports(&self) -> Vec<i32> {
        self.ports.lock().unwrap().iter().copied().map(i32::from).collect()
    }

    pub(crate) fn silence(&self) {
        self.setup.send_modify(|setup| setup.state = LinkState::Silent);
    }

    pub(crate) fn cut(&self) {
        self.setup.send_modify(|setup| (setup.state, setup.age) = (LinkState::Cut, setup.age + 1));
    }

    /// Redirects to another server and closes existing connections.
    pub(crate) fn redirect_to(&self, port: u16) {
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        self.setup
            .send_modify(|setup| *setup = LinkSetup { state: LinkState::Open, server, age: setup.age + 1 });
    }

    pub(crate) fn restore(&self) {
        self.setup.send_modify(|setup| setup.state = LinkState::Open);
    }
}

async fn forward_connection(
    near: TcpStream,
    mut setup: watch::Receiver<LinkSetup>,
    ports: Ports,
) -> io::Result<()> {
    let now = until_delivered(&mut setup).await;
    if now.state == LinkState::Cut {
        return Ok(());
    }
    let far = TcpStream::connect(now.server).await?;
    let port = far.local_addr()?.port();
    ports.lock().unwrap().insert(port);
    let (near_reads, near_writes) = near.into_split();
    let (far_reads, far_writes) = far.into_split();
    let (to_far, to_near) = (setup.clone(), setup.clone());
    // The first side to end closes both.
    let ended = tokio::select! {
        ended = forward(near_reads, far_writes, to_far) => ended,
        ended = forward(far_reads, near_writes, to_near) => ended,
        _ = setup.wait_for(|setup| setup.age != now.age) => Ok(()),
    };
    ports.lock().unwrap().remove(&port);
    ended
}

async fn forward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut setup: watch::Receiver<LinkSetup>,
) -> io::Result<()> {
    let mut bytes = vec![0; 1 << 16];
    loop {
        let count = from.read(&mut bytes).await?;
        if count == 0 {
            return Ok(());
        }
        until_delivered(&mut setup).await;
        to.write_all(&bytes[..count]).await?;
    }
}

/// Waits until data would be delivered, or is known to be lost.
async fn until_delivered(setup: &mut watch::Receiver<LinkSetup>) -> LinkSetup {
    *setup.wait_for(|setup| setup.state != LinkState::Silent).await.expect("the way is there")
}
