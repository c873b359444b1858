// SPDX-License-Identifier: MIT OR Apache-2.0
//! A connection to the server, and what can be wrong with it.

use super::ServerAddress;
use crate::store::StoreError;
use rustls::{ClientConfig, RootCertStore};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Unless the URL has options of its own. The server gives up before this end does, and says why.
const OPTIONS: &str = "-c statement_timeout=25s -c lock_timeout=10s";

/// Tables are in a schema of their own: `path` and `event` are names that others use, too. What is committed is on disk.
const SET_UP: &str = "SET search_path TO fatpath; SET synchronous_commit TO on; SET timezone TO 'UTC'; \
     SET client_min_messages TO warning";

/// Why the server did not answer.
#[derive(Debug)]
pub(super) enum Cause {
    Server(tokio_postgres::Error),
    Local(String),
    /// The schema is of this version.
    Version(i64),
    Late(Duration),
}

impl From<tokio_postgres::Error> for Cause {
    fn from(error: tokio_postgres::Error) -> Cause {
        Cause::Server(error)
    }
}

impl Cause {
    /// `known` is the version of the schema that this program writes.
    pub(super) fn of(self, address: &ServerAddress, known: i64) -> StoreError {
        let server = address.to_string();
        let why = match self {
            Cause::Version(found) => {
                return StoreError::Version {
                    file: server,
                    found,
                    known,
                };
            }
            Cause::Server(error) => with_causes(&error),
            Cause::Local(why) => why,
            Cause::Late(after) => format!("no answer within {} s", after.as_secs()),
        };
        StoreError::Server { server, why }
    }
}

/// The library's own text says as little as "db error".
fn with_causes(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        let message = error.message();
        return match error.hint() {
            Some(hint) => format!("{message} ({hint})"),
            None => message.to_owned(),
        };
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Connects, and logs in.
pub(super) async fn connect(
    address: &ServerAddress,
    connections: &mut JoinSet<()>,
) -> Result<Client, Cause> {
    let mut config = address.config().map_err(Cause::Local)?;
    config
        .application_name("fatpath")
        .connect_timeout(CONNECT_TIMEOUT)
        .keepalives_idle(CONNECT_TIMEOUT);
    if config.get_options().is_none() {
        config.options(OPTIONS);
    }
    let client = match address.has_tls() {
        true => {
            // A server without TLS is no server of ours.
            config.ssl_mode(tokio_postgres::config::SslMode::Require);
            let (client, connection) = config.connect(tls().map_err(Cause::Local)?).await?;
            // Why it ended, the next question hears.
            connections.spawn(async { drop(connection.await) });
            client
        }
        false => {
            let (client, connection) = config.connect(NoTls).await?;
            connections.spawn(async { drop(connection.await) });
            client
        }
    };
    client.batch_execute(SET_UP).await?;
    Ok(client)
}

/// With the certificates that this host trusts, or those of `SSL_CERT_FILE`.
fn tls() -> Result<MakeRustlsConnect, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let versions =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = versions
        .map_err(|error| format!("TLS: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}
