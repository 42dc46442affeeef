//! The way to Bedrock: a client of AWS's SDK for each endpoint.
//!
//! Guarantee: no client tries again by itself, whatever the environment or a profile say; each gives up within the time that is set.

use aws_config::environment::EnvironmentVariableRegionProvider;
use aws_config::meta::region::RegionProviderChain;
use aws_config::profile::ProfileFileRegionProvider;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_sdk_bedrockruntime::Client;
use aws_sdk_bedrockruntime::config::retry::RetryConfig;
use aws_sdk_bedrockruntime::config::timeout::TimeoutConfig;
use aws_sdk_bedrockruntime::config::{Builder, Region, SharedHttpClient, StalledStreamProtectionConfig};
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use ichido_core::settings::Faults;
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;

use super::{BedrockSettings, Credentials, EndpointSettings, Keys, add};
use crate::bound::Bound;

/// What the SDK calls the place where keys came from that were given.
const GIVEN: &str = "ichido";

/// The names of the endpoints, and a client for each.
pub(crate) async fn open(settings: &BedrockSettings) -> Result<(Vec<String>, Vec<Client>), Faults> {
    let endpoints = match settings.endpoints.as_slice() {
        [] => vec![EndpointSettings::region(own_region().await?)],
        listed => listed.to_vec(),
    };
    let http = http_client(is_tls_spoken(settings, &endpoints))?;
    let base = match &settings.credentials {
        Credentials::Found => Builder::from(&found(http, &endpoints).await),
        Credentials::Given(keys) => given(keys, http),
    };
    let names = endpoints.iter().map(EndpointSettings::name).collect();
    let clients = endpoints.iter().map(|endpoint| client(base.clone(), endpoint, settings)).collect();
    Ok((names, clients))
}

fn client(base: Builder, endpoint: &EndpointSettings, settings: &BedrockSettings) -> Client {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(settings.connect_time_out)
        // An answer begins when the model has said all of it, so that waiting for its beginning is waiting for the whole.
        .read_timeout(settings.time_out)
        .operation_timeout(settings.time_out)
        .build();
    let mut config = base
        .region(Region::new(endpoint.region.clone()))
        // Ours is the only loop.
        .retry_config(RetryConfig::disabled())
        .timeout_config(timeouts)
        // It takes a model that thinks for a connection that has stalled. The time for the whole call is bound instead.
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .interceptor(Bound);
    if let Some(url) = &endpoint.url {
        config = config.endpoint_url(url);
    }
    Client::from_conf(config.build())
}

/// As the environment and the profiles of AWS say it. Keys are looked up when they are first needed.
async fn found(http: SharedHttpClient, endpoints: &[EndpointSettings]) -> SdkConfig {
    // A region must be named, or else the SDK goes looking for one over the network. Each client has its own in the end.
    let region = endpoints.first().map(|endpoint| Region::new(endpoint.region.clone()));
    let loader = aws_config::defaults(BehaviorVersion::latest()).http_client(http).region(region);
    loader.load().with_subscriber(NoSubscriber::new()).await
}

/// Keys that were given, and nothing from the environment: a token in it would win over them.
fn given(keys: &Keys, http: SharedHttpClient) -> Builder {
    let keys = aws_sdk_bedrockruntime::config::Credentials::new(
        &keys.access_key_id,
        &keys.secret_access_key,
        keys.session_token.clone(),
        None,
        GIVEN,
    );
    Builder::new().behavior_version(BehaviorVersion::latest()).http_client(http).credentials_provider(keys)
}

/// The region of the environment or the profile; a machine is not asked for its own, which takes seconds where there is none to ask.
async fn own_region() -> Result<String, Faults> {
    let chain = RegionProviderChain::first_try(EnvironmentVariableRegionProvider::new())
        .or_else(ProfileFileRegionProvider::new());
    let region = chain.region().with_subscriber(NoSubscriber::new()).await;
    region.map(|region| region.as_ref().to_owned()).ok_or_else(|| {
        let mut problems = Faults::default();
        add(&mut problems, "endpoints", "there are none; name at least one region, or set AWS_REGION");
        problems
    })
}

/// Keys that are looked up may come over TLS, wherever the model is.
fn is_tls_spoken(settings: &BedrockSettings, endpoints: &[EndpointSettings]) -> bool {
    let is_plain = |endpoint: &EndpointSettings| {
        endpoint.url.as_deref().is_some_and(|url| url.to_ascii_lowercase().starts_with("http://"))
    };
    matches!(settings.credentials, Credentials::Found) || !endpoints.iter().all(is_plain)
}

fn http_client(is_tls_spoken: bool) -> Result<SharedHttpClient, Faults> {
    let mut problems = Faults::default();
    if is_tls_spoken && rustls_native_certs::load_native_certs().certs.is_empty() {
        let help = "the system has no trusted certificates, so that AWS cannot be believed; install `ca-certificates`";
        add(&mut problems, "endpoints", help);
        return Err(problems);
    }
    let trust = TrustStore::empty().with_native_roots(is_tls_spoken);
    let tls = TlsContext::builder().with_trust_store(trust).build().map_err(|error| {
        add(&mut problems, "endpoints", format!("TLS cannot be set up: {error}"));
        problems
    })?;
    let builder = aws_smithy_http_client::Builder::new().tls_provider(Provider::rustls(CryptoMode::Ring));
    Ok(builder.tls_context(tls).build_https())
}
