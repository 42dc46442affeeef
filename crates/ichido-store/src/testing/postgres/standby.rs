//! A standby: a second server that follows the first and replaces it when it is gone.

use super::{Cluster, ClusterError, DURABLE, MAX_STARTS, SUPERUSER, free_ports};

impl Cluster {
    /// The setting with which a server acknowledges nothing before a standby has it on disk. Without a standby, writers wait.
    pub const SYNCHRONOUS: (&str, &str) = ("synchronous_standby_names", "*");

    /// Copies this server and starts the copy as its read-only standby.
    ///
    /// Once promoted, it waits for no standby of its own, whatever this server's settings.
    pub fn standby(&self) -> Result<Self, ClusterError> {
        let from = format!("host=127.0.0.1 port={} user={SUPERUSER}", self.port);
        let (synchronous, _) = Self::SYNCHRONOUS;
        Self::made_by(
            &[("copy", from.as_str())],
            free_ports().take(MAX_STARTS),
            &[&[(synchronous, "")], &DURABLE[..]].concat(),
        )
    }

    /// Promotes a standby. Returns when it accepts writes.
    pub fn promote(&self) -> Result<(), ClusterError> {
        self.ask("promote", "")
    }

    /// Kills all processes of the server, like a power failure.
    pub fn kill(&self) -> Result<(), ClusterError> {
        self.ask("kill", "")
    }
}
