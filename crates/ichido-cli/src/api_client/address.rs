//! Which server or store a command talks to.

use ichido_core::settings::ConfigErrors;
use ichido_server::environment;

/// Environment variables for the address. Flags take precedence.
const SERVER: &str = "ICHIDO_SERVER";
const STORE: &str = "ICHIDO_STORE";

/// The address as it was given.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Server(String),
    Store(String),
    /// Neither a flag nor the environment names one.
    None,
}

impl Address {
    /// Reads the flags, then the environment. Giving both a server and a store is an error.
    pub(crate) fn from_flags_or_env(
        server: Option<&str>,
        store: Option<&str>,
        faults: &mut ConfigErrors,
    ) -> Self {
        let variable = |name: &str| environment::variable(name).ok().filter(|value| !value.is_empty());
        Self::resolve(server, store, variable, faults)
    }

    fn resolve(
        server: Option<&str>,
        store: Option<&str>,
        environment: impl Fn(&str) -> Option<String>,
        faults: &mut ConfigErrors,
    ) -> Self {
        let both = |faults: &mut ConfigErrors, flag: &str, help: &str| {
            faults.add(flag, format!("both a server and a store are given; {help}"));
        };
        match (server, store) {
            (Some(server), Some(_)) => {
                both(faults, "--server", "remove --server or --store");
                Self::Server(server.to_owned())
            }
            (Some(server), None) => Self::Server(server.to_owned()),
            (None, Some(store)) => Self::Store(store.to_owned()),
            (None, None) => match (environment(SERVER), environment(STORE)) {
                (Some(server), Some(_)) => {
                    both(faults, SERVER, "pass --server or --store, or unset ICHIDO_SERVER or ICHIDO_STORE");
                    Self::Server(server)
                }
                (Some(server), None) => Self::Server(server),
                (None, Some(store)) => Self::Store(store),
                (None, None) => Self::None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(server: Option<&str>, store: Option<&str>, environment: &[(&str, &str)]) -> Option<Address> {
        let mut faults = ConfigErrors::default();
        let find =
            |name: &str| environment.iter().find(|(set, _)| *set == name).map(|(_, url)| (*url).to_owned());
        let address = Address::resolve(server, store, find, &mut faults);
        faults.or(Some(address)).ok()
    }

    #[test]
    fn flags_override_environment_and_server_excludes_store() {
        let (server, store) = ((SERVER, "http://env"), (STORE, "sqlite:env"));
        let by_server = |url: &str| Some(Address::Server(url.to_owned()));
        let by_store = |url: &str| Some(Address::Store(url.to_owned()));
        assert_eq!(at(None, None, &[]), Some(Address::None));
        assert_eq!(at(None, None, &[server]), by_server("http://env"));
        assert_eq!(at(None, None, &[store]), by_store("sqlite:env"));
        assert_eq!(at(Some("http://flag"), None, &[server, store]), by_server("http://flag"));
        assert_eq!(at(None, Some("sqlite:flag"), &[server, store]), by_store("sqlite:flag"));
        assert_eq!(at(None, None, &[server, store]), None);
        assert_eq!(at(Some("http://flag"), Some("sqlite:flag"), &[]), None);
    }
}
