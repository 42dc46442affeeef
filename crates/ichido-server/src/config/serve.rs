//! The server: `[serve]`. The flags of `ichido serve` win over it.

use std::net::SocketAddr;
use std::sync::Arc;

use ichido_boundary::Boundary;
use ichido_http::server::limits::Limits;
use ichido_http::server::tls::TlsFiles;
use ichido_http::url::HttpUrl;

use super::document::Section;
use crate::instance::{Instance, InstanceColour, MAX_NAME_CHARS};
use crate::limits::RequestLimits;

/// The default address: this machine only.
pub const LISTEN_DEFAULT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 4180);

/// The maximum number of boundary files. Four make a hop chain.
const MAX_BOUNDARIES: usize = 100;

/// Settings of the server.
#[derive(Clone, Debug)]
pub struct ServeConfig {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// Limits and timeouts of connections.
    pub limits: Limits,
    /// The files of its certificate, if it encrypts.
    pub tls: Option<TlsFiles>,
    /// The URL at which callers reach it.
    pub public_url: Option<HttpUrl>,
    pub(crate) request_limits: RequestLimits,
    /// The boundary files to show.
    pub(crate) boundaries: Arc<[Boundary]>,
    /// Its name and colour on the dashboard.
    pub(crate) instance: Instance,
}

impl ServeConfig {
    /// Returns the scheme of the server's own address.
    pub const fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// Returns whether connections from other machines are encrypted: by the server itself, or by a proxy in front of it.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some() || self.public_url.as_ref().is_some_and(|url| url.is_tls)
    }
}

pub(super) fn read(section: &Section<'_>) -> ServeConfig {
    let listen = section.get::<String>("listen").and_then(|text| text.parse().ok());
    let limits = Limits {
        max_connections: section.get_or_default("max_connections"),
        max_peer_connections: section.get("max_peer_connections"),
        head: section.get_or_default("head_timeout"),
        body_idle: section.get_or_default("body_idle_timeout"),
        body: section.get_or_default("body_timeout"),
        drain: section.get_or_default("drain_timeout"),
    };
    let request_limits = RequestLimits {
        max_headers: section.get_or_default("max_headers"),
        max_head_bytes: section.get_or_default("max_head_bytes"),
        max_body_bytes: section.get_or_default("max_body_bytes"),
        max_batch_lines: section.get_or_default("max_batch_lines"),
        max_batch_bytes: section.get_or_default("max_batch_bytes"),
        max_waiters: section.get_or_default("max_waiters"),
        max_listeners: section.get_or_default("max_listeners"),
    };
    let boundaries = boundaries(section).into();
    let tls = section.section("tls").and_then(|inside| {
        let file = |name: &str| Some(section.source.outside.folder.join(inside.get::<String>(name)?));
        Some(TlsFiles { cert: file("cert")?, key: file("key")? })
    });
    let public_url = section
        .get::<String>("public_url")
        .and_then(|url| section.checked("public_url", HttpUrl::parse_base(&url)))
        .map(|(url, _)| url);
    let listen = listen.unwrap_or(LISTEN_DEFAULT);
    ServeConfig { listen, limits, tls, public_url, request_limits, boundaries, instance: instance(section) }
}

fn instance(section: &Section<'_>) -> Instance {
    let name = section.get::<String>("name");
    if name.as_ref().is_some_and(|name| MAX_NAME_CHARS < name.chars().count()) {
        section.report("name", format!("has more than {MAX_NAME_CHARS} characters; write a shorter name"));
    }
    Instance { name, colour: section.word("colour", InstanceColour::parse).unwrap_or_default() }
}

/// Reads the boundary files, and reports each that cannot be read.
fn boundaries(section: &Section<'_>) -> Vec<Boundary> {
    let paths = section.get_or_default::<Vec<String>>("boundaries");
    if MAX_BOUNDARIES < paths.len() {
        let what = format!("names {} files; name at most {MAX_BOUNDARIES}", paths.len());
        section.report("boundaries", what);
        return Vec::new();
    }
    let files = paths.iter().enumerate().filter_map(|(index, path)| {
        let name = format!("boundaries[{index}]");
        let text = section.checked(&name, section.source.outside.read(path))?;
        section.checked(&name, Boundary::read(path, text.as_bytes()))
    });
    files.collect()
}
