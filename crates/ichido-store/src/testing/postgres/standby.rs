//! A standby: a second server that follows the first, and takes its place when that is gone.

use super::{Cluster, ClusterError, DURABLE, STARTS_MAX, SUPERUSER, free_ports};

impl Cluster {
    /// The setting by which a server acknowledges nothing before a standby has it on its disk. Until there is one, whoever writes waits.
    pub const SYNCHRONOUS: (&str, &str) = ("synchronous_standby_names", "*");

    /// Copies this server and starts the copy as its standby, which answers questions only. Once promoted, it waits for no standby of
    /// its own, whatever this server was told.
    pub fn standby(&self) -> Result<Self, ClusterError> {
        let from = format!("host=127.0.0.1 port={} user={SUPERUSER}", self.port);
        let (synchronous, _) = Self::SYNCHRONOUS;
        Self::made_by(
            ("copy", &from),
            free_ports().take(STARTS_MAX),
            &[&[(synchronous, "")], &DURABLE[..]].concat(),
        )
    }

    /// Makes a standby a server of its own; returns when it takes writes.
    pub fn promote(&self) -> Result<(), ClusterError> {
        self.ask("promote", "")
    }

    /// Kills all processes of the server, as when its machine loses its power.
    pub fn kill(&self) -> Result<(), ClusterError> {
        self.ask("kill", "")
    }
}
