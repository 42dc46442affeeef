//! The user who runs the server.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use super::ClusterError;

/// Users to run the server when we are root, in order of preference. PostgreSQL refuses to run as root.
pub(super) const ACCOUNTS: [&str; 2] = ["postgres", "nobody"];

/// The ordinary user who runs the server when we are root.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) name: &'static str,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl Account {
    /// Returns the user to run as, or `None` if we are an ordinary user.
    pub(super) fn needed() -> Result<Option<Self>, ClusterError> {
        let io = |doing| move |source| ClusterError::Io { doing, source };
        let id = Command::new("id").arg("-u").output().map_err(io("run `id -u`"))?;
        if id.stdout.trim_ascii() != b"0" {
            return Ok(None);
        }
        let users = std::fs::read_to_string("/etc/passwd").map_err(io("read /etc/passwd"))?;
        Self::among(&users).ok_or(ClusterError::NoAccount).map(Some)
    }

    pub(super) fn among(users: &str) -> Option<Self> {
        ACCOUNTS.into_iter().find_map(|name| {
            let mut lines = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
            lines.find_map(|fields| match fields[..] {
                [user, _, uid, gid, ..] if user == name => {
                    Some(Self { name, uid: uid.parse().ok()?, gid: gid.parse().ok()? })
                }
                _ => None,
            })
        })
    }

    /// Makes the command run as this user. The standard library then also drops root's other groups.
    pub(super) fn take(account: Option<&Self>, command: &mut Command) {
        if let Some(account) = account {
            command.uid(account.uid).gid(account.gid);
        }
    }
}
