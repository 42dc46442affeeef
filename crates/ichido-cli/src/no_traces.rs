//! In place of [`traces`](crate::traces) in a program that was built without the feature `otlp`: nothing is traced, and a configuration
//! that asks for it is refused, since it would be asked for in vain.

use http::HeaderMap;
use uuid::Uuid;

use crate::config::TracesConfig;
use crate::faults::Faults;

/// Nothing that is being accepted is traced.
pub(crate) enum Accepting {}

pub(crate) const fn accept(_: &HeaderMap) -> Option<Accepting> {
    None
}

impl Accepting {
    pub(crate) const fn traceparent(&self) -> String {
        match *self {}
    }

    pub(crate) const fn end(self, _: &str, _: Uuid, _: bool) {
        match self {}
    }
}

/// Nothing is exported.
pub(crate) struct Exporting(std::future::Ready<()>);

pub(crate) fn start(config: &TracesConfig) -> Result<Exporting, Faults> {
    let mut faults = Faults::default();
    if config.endpoint.is_some() {
        let what = "this program was built without traces; take it out, or build it with `--features otlp`";
        faults.add("traces.endpoint", what);
    }
    faults.or(Some(Exporting(std::future::ready(()))))
}

impl Exporting {
    /// There is nothing to wait for.
    pub(crate) fn end(self) -> std::future::Ready<()> {
        self.0
    }
}
