//! Parameters of a PostgreSQL URL.
//!
//! Guarantee: the value of an unsupported parameter is never logged. The driver would log it, and it may be a password
//! (`sslpassword`).

/// The parameters that the driver reads.
const SUPPORTED: [&str; 18] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "password",
    "port",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl-mode",
    "ssl-root-cert",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "statement-cache-capacity",
    "user",
];

/// Removes unsupported parameters from a URL. Logs a warning with the name of each.
pub(super) fn supported(url: &str) -> String {
    let Some((address, query)) = url.split_once('?') else { return url.to_owned() };
    let is_supported = |parameter: &&str| {
        let name = parameter.split('=').next().unwrap_or_default();
        let is_supported = name.is_empty() || name.starts_with("options[") || SUPPORTED.contains(&name);
        if !is_supported {
            tracing::warn!(name, "ignored unsupported parameter of PostgreSQL URL");
        }
        is_supported
    };
    let query: Vec<&str> = query.split('&').filter(is_supported).collect();
    format!("{address}?{}", query.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_that_is_not_supported_does_not_reach_the_driver() {
        for (url, expected) in [
            ("postgres://ann@db/ichido", "postgres://ann@db/ichido"),
            ("postgres://db/x?sslpassword=s3cret", "postgres://db/x?"),
            ("postgres://db/x?sslmode=require&channel_binding=require", "postgres://db/x?sslmode=require"),
            ("postgres://db/x?s3cret&host=/run&options[jit]=on", "postgres://db/x?host=/run&options[jit]=on"),
        ] {
            assert_eq!(supported(url), expected);
        }
    }

    /// The list matches this version of the driver. A listed parameter that it does not know would be logged with its value.
    #[test]
    fn the_driver_reads_every_supported_parameter() {
        for name in SUPPORTED {
            let value = match name {
                "port" | "statement-cache-capacity" => "1",
                "hostaddr" => "127.0.0.1",
                "sslmode" | "ssl-mode" => "require",
                _ => "x",
            };
            let plain: sqlx::postgres::PgConnectOptions = "postgres://db/d".parse().unwrap();
            let said = format!("postgres://db/d?{name}={value}").parse::<sqlx::postgres::PgConnectOptions>();
            assert_ne!(format!("{:?}", said.unwrap()), format!("{plain:?}"), "{name}");
        }
    }
}
