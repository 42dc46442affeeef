//! Resolves the flags and the boundary files.
//!
//! Guarantee: [`resolve`] returns settings that the proxy can run with, or every error, each with its location and
//! how to fix it.

mod adapter;
mod files;
mod hop;
mod identities;

use std::net::SocketAddr;
use std::time::Duration;

use ichido_boundary::Boundary;
use ichido_core::settings::ConfigErrors;
use ichido_http::server::bounds::{count, time};
use ichido_http::server::limits::Limits;
use ichido_http::url::{HttpUrl, UrlError};

use super::args::{AdapterArgs, Args, Role};
use super::filters::FilterRules;
use super::hop::RetryTimeouts;

pub(crate) use adapter::{AdapterSettings, OperationSettings, Protection};
pub(crate) use files::Files;

/// The resolved settings of a proxy.
pub struct Settings {
    /// Where it listens.
    pub listen: SocketAddr,
    pub(crate) upstream: HttpUrl,
    pub(crate) rules: FilterRules,
    pub(crate) timeouts: RetryTimeouts,
    pub(crate) limits: Limits,
    /// The timeout for connecting to the upstream.
    pub(crate) connect: Duration,
    /// The settings of an adapter.
    pub(crate) adapter: Option<AdapterSettings>,
}

impl Settings {
    /// Returns the URL of the ledger's store, if the role has one. It may contain a password.
    pub fn store(&self) -> Option<&str> {
        self.adapter.as_ref().map(|adapter| adapter.store.as_str())
    }
}

/// Resolves the flags and boundary files.
///
/// Earlier errors in `faults`, such as unreadable files, are reported together with the new ones.
pub fn resolve(
    args: &Args,
    files: Vec<Boundary>,
    mut faults: ConfigErrors,
) -> Result<Settings, ConfigErrors> {
    let files = files::sort(args.role.party(), files, &mut faults);
    let listen = listen(&args.listen, &mut faults);
    let upstream = upstream(&args.upstream, &mut faults);
    let limits = args.bounds.resolve(Limits::default(), &mut faults);
    let connect = time("--connect-timeout", &args.connect_timeout, &mut faults);
    let rules = hop::rules(args, &files, &mut faults);
    let timeouts = hop::timeouts(args, &files, &mut faults);
    let adapter = match (args.role, &rules) {
        (Role::Adapter, Some(rules)) => adapter::adapter(args, &files, rules, &mut faults),
        (Role::Adapter, None) => None,
        (Role::Bff | Role::Gateway, _) => {
            refuse_adapter_flags(&args.adapter, &mut faults);
            None
        }
    };
    let built = (|| {
        let mut rules = rules?;
        rules.relied_on = adapter.iter().flat_map(AdapterSettings::relied_on).collect();
        let (listen, upstream, connect) = (listen?, upstream?, connect?);
        Some(Settings { listen, upstream, rules, timeouts: timeouts?, limits, connect, adapter })
    })();
    faults.or(built)
}

/// Refuses the adapter's flags for a hop, which would otherwise seem to keep a ledger.
fn refuse_adapter_flags(flags: &AdapterArgs, faults: &mut ConfigErrors) {
    // Destructured, so the compiler catches a new flag. The store may come from the environment, which is shared.
    let AdapterArgs {
        store: _,
        operation,
        guarantee,
        class,
        ttl,
        short_ttl_reason,
        keeps_keys_for,
        service_key,
        lease,
        profile,
        identity,
        jwt_algorithm,
        jwt_key,
        jwt_audience,
        api_keys,
    } = flags;
    let what = "only the adapter deduplicates requests; remove this flag, or use --role adapter";
    let given = [
        ("--operation", !operation.is_empty()),
        ("--guarantee", guarantee.is_some()),
        ("--class", class.is_some()),
        ("--ttl", ttl.is_some()),
        ("--short-ttl-reason", short_ttl_reason.is_some()),
        ("--keeps-keys-for", keeps_keys_for.is_some()),
        ("--service-key", service_key.is_some()),
        ("--lease", lease.is_some()),
        ("--profile", profile.is_some()),
        ("--identity", identity.is_some()),
        ("--jwt-algorithm", jwt_algorithm.is_some()),
        ("--jwt-key", jwt_key.is_some()),
        ("--jwt-audience", jwt_audience.is_some()),
        ("--api-keys", api_keys.is_some()),
    ];
    refuse_given(&given, what, faults);
}

/// Refuses the flags that are given.
fn refuse_given(flags: &[(&str, bool)], what: &str, faults: &mut ConfigErrors) {
    for (flag, _) in flags.iter().filter(|(_, is_given)| *is_given) {
        faults.add(*flag, what);
    }
}

fn listen(text: &str, faults: &mut ConfigErrors) -> Option<SocketAddr> {
    let address = text.parse().map_err(|_| {
        format!("\"{text}\" is not an IP address and port; use for example 127.0.0.1:8080, or 0.0.0.0:8080 to accept other hosts")
    });
    faults.check("--listen", address)
}

fn upstream(text: &str, faults: &mut ConfigErrors) -> Option<HttpUrl> {
    let what = match HttpUrl::parse(text) {
        Ok(url) if url.is_tls => "uses TLS, which this proxy does not support for its upstream",
        Ok(url) if url.target != "/" => "has a path, but requests keep their own path",
        Ok(url) => return Some(url),
        Err(UrlError::UserInfo) => "contains a user name or a password",
        Err(_) => "is not a URL",
    };
    faults.add("--upstream", format!("\"{text}\" {what}; use http://HOST:PORT"));
    None
}
