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
use ichido_http::small_file;
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
    /// Where it serves health and metrics.
    pub admin: SocketAddr,
    /// The root certificates in PEM that an `https` upstream is checked against, instead of the system's.
    pub(crate) trusted_roots: Option<String>,
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
    let listen = address("--listen", &args.listen, &mut faults);
    let admin = admin(args, &mut faults);
    let upstream = upstream(&args.upstream, &mut faults);
    let trusted_roots = trusted_roots(args, upstream.as_ref(), &mut faults);
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
        let (listen, admin, upstream, connect) = (listen?, admin?, upstream?, connect?);
        let timeouts = timeouts?;
        Some(Settings { listen, admin, trusted_roots, upstream, rules, timeouts, limits, connect, adapter })
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

fn address(flag: &str, text: &str, faults: &mut ConfigErrors) -> Option<SocketAddr> {
    let address = text.parse().map_err(|_| {
        format!("\"{text}\" is not an IP address and port; use for example 127.0.0.1:8080, or 0.0.0.0:8080 to accept other hosts")
    });
    faults.check(flag, address)
}

/// Resolves the address for health and metrics, which needs tokens beyond this machine.
fn admin(args: &Args, faults: &mut ConfigErrors) -> Option<SocketAddr> {
    let default = || SocketAddr::from(([127, 0, 0, 1], args.role.admin_port()));
    let found =
        args.admin.as_ref().map_or_else(|| Some(default()), |text| address("--admin", text, faults))?;
    if args.role != Role::Adapter && !found.ip().is_loopback() {
        faults.add(
            "--admin",
            format!(
                "{found} can be reached from other machines, and this role has no store for the tokens that metrics need \
                 there; use 127.0.0.1:{}",
                found.port()
            ),
        );
        return None;
    }
    Some(found)
}

/// Reads the root certificates. [`trust`](ichido_http::trust) checks them.
fn trusted_roots(args: &Args, upstream: Option<&HttpUrl>, faults: &mut ConfigErrors) -> Option<String> {
    let path = args.trusted_roots.as_ref()?;
    if upstream.is_some_and(|upstream| !upstream.is_tls) {
        faults.add(
            "--trusted-roots",
            "only an https:// upstream has a certificate; use one, or remove the flag",
        );
    }
    let read = small_file::read_text(path);
    let read = read.map_err(|error| format!("cannot read {}: {error}; check the path", path.display()));
    faults.check("--trusted-roots", read)
}

fn upstream(text: &str, faults: &mut ConfigErrors) -> Option<HttpUrl> {
    let what = match HttpUrl::parse(text) {
        Ok(url) if url.target != "/" => "has a path, but requests keep their own path",
        Ok(url) => return Some(url),
        Err(UrlError::UserInfo) => {
            // Not repeated: it is a secret.
            let what = "contains a user name or a password; use http://HOST:PORT or https://HOST:PORT";
            faults.add("--upstream", what);
            return None;
        }
        Err(_) => "is not a URL",
    };
    faults.add("--upstream", format!("\"{text}\" {what}; use http://HOST:PORT or https://HOST:PORT"));
    None
}
