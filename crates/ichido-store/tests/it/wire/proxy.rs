//! A proxy to PostgreSQL that injects faults: at a certain word, or at once.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WireSender {
    Client,
    Server,
}

/// What happens to the connection at the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WireFault {
    /// The word is lost with the connection.
    Cut,
    /// The word arrives, and the sender's connection is closed; the other side does not notice.
    HangUp,
    /// The word arrives, and nothing after it, though the connection stays open.
    Dead,
    /// The word arrives, and its answer is held until it is released.
    Hold,
}

struct FaultRule {
    sender: WireSender,
    word: &'static str,
    fault: WireFault,
    always: bool,
}

/// How often a rule matched, and how many dead connections were closed.
#[derive(Default)]
struct FaultCounts {
    /// How often a rule matched.
    met: watch::Sender<usize>,
    /// How many dead connections the client has closed.
    closed: watch::Sender<usize>,
}

#[derive(Default)]
struct WireState {
    rule: Mutex<Option<FaultRule>>,
    counts: FaultCounts,
    /// Raised when all current connections go dead.
    silenced: watch::Sender<usize>,
    /// Raised when held answers are released.
    release_held: watch::Sender<usize>,
}

impl WireState {
    fn meets(&self, sender: WireSender, said: &[u8]) -> Option<WireFault> {
        let holds =
            |word: &str| said.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word.as_bytes()));
        let mut rule = self.rule.lock().unwrap();
        let fault = rule.as_ref().filter(|rule| rule.sender == sender && holds(rule.word))?.fault;
        rule.take_if(|rule| !rule.always);
        self.counts.met.send_modify(|met| *met += 1);
        Some(fault)
    }
}

pub(crate) struct FaultProxy {
    pub(crate) url: String,
    wire: Arc<WireState>,
}

impl FaultProxy {
    /// Starts a proxy to the server of this URL, and replaces the address in it.
    pub(crate) async fn to(url: &str) -> Self {
        let (before, database) = url.rsplit_once('/').unwrap();
        let at = before.rfind(['@', '/']).unwrap() + 1;
        let (before, server) = (&before[..at], before[at..].to_owned());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{before}{}/{database}", listener.local_addr().unwrap());
        let wire = Arc::<WireState>::default();
        let shared = Arc::clone(&wire);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(carry(client, server, Arc::clone(&shared)));
            }
        });
        Self { url, wire }
    }

    /// The next time the server sends this, it is lost with the connection.
    pub(crate) fn cut_at(&self, word: &'static str) {
        self.arm(WireSender::Server, word, WireFault::Cut);
    }

    /// The same every time.
    pub(crate) fn cut_always_at(&self, word: &'static str) {
        *self.wire.rule.lock().unwrap() =
            Some(FaultRule { sender: WireSender::Server, word, fault: WireFault::Cut, always: true });
    }

    /// The next time a client sends this, it arrives, and the client's connection is closed; the server continues.
    pub(crate) fn hang_up_after(&self, word: &'static str) {
        self.arm(WireSender::Client, word, WireFault::HangUp);
    }

    /// The next time the server sends this, it arrives, and the connection is dead from then on.
    pub(crate) fn die_after(&self, word: &'static str) {
        self.arm(WireSender::Server, word, WireFault::Dead);
    }

    /// The next time a client sends this, it arrives, and the answer is held until it is released.
    pub(crate) fn hold_after(&self, word: &'static str) {
        self.arm(WireSender::Client, word, WireFault::Hold);
    }

    fn arm(&self, sender: WireSender, word: &'static str, fault: WireFault) {
        *self.wire.rule.lock().unwrap() = Some(FaultRule { sender, word, fault, always: false });
    }

    /// Releases held answers.
    pub(crate) fn release_held(&self) {
        self.wire.release_held.send_modify(|count| *count += 1);
    }

    /// Makes all current connections go dead; new connections work.
    pub(crate) fn silence(&self) {
        self.wire.silenced.send_modify(|count| *count += 1);
    }

    /// Returns how often a rule matched.
    pub(crate) fn met(&self) -> usize {
        *self.wire.counts.met.borrow()
    }

    /// Waits until a rule has matched this often.
    pub(crate) async fn has_met(&self, count: usize) {
        self.wire.counts.met.subscribe().wait_for(|met| count <= *met).await.unwrap();
    }

    /// Waits until the client has closed this many dead connections.
    pub(crate) async fn has_closed(&self, count: usize) {
        self.wire.counts.closed.subscribe().wait_for(|closed| count <= *closed).await.unwrap();
    }
}

async fn carry(mut client: TcpStream, mut server: TcpStream, wire: Arc<WireState>) {
    let (mut from_client, mut from_server) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let (mut silenced, mut release_held) = (wire.silenced.subscribe(), wire.release_held.subscribe());
    loop {
        let fault = tokio::select! {
            _ = silenced.changed() => Some(WireFault::Dead),
            read = client.read(&mut from_client) => {
                let Ok(count @ 1..) = read else { return };
                let fault = wire.meets(WireSender::Client, &from_client[..count]);
                if server.write_all(&from_client[..count]).await.is_err() { return }
                fault
            }
            read = server.read(&mut from_server) => {
                let Ok(count @ 1..) = read else { return };
                let fault = wire.meets(WireSender::Server, &from_server[..count]);
                if fault == Some(WireFault::Cut) || client.write_all(&from_server[..count]).await.is_err() { return }
                fault
            }
        };
        match fault {
            None => (),
            Some(WireFault::Cut) => return,
            Some(WireFault::HangUp) => {
                drop(client);
                drop(server.read_to_end(&mut Vec::new()).await);
                return;
            }
            Some(WireFault::Dead) => {
                while let Ok(1..) = client.read(&mut from_client).await {}
                wire.counts.closed.send_modify(|closed| *closed += 1);
                return;
            }
            Some(WireFault::Hold) => {
                release_held.mark_unchanged();
                drop(release_held.changed().await);
            }
        }
    }
}
