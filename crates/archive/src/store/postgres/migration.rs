// SPDX-License-Identifier: MIT OR Apache-2.0
//! A change of the tables to another version, which may take hours: how far it is, a second connection asks.

use super::ServerAddress;
use super::connect::{Cause, connect};
use super::schema;
use crate::store::{IndexStep, Migration, Watch};
use std::pin::pin;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

/// How far it is is told so often.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// A server that does not say within this how far it is, is away.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// What the server does for the connection of a number, where it makes an index.
const INDEX: &str = "SELECT phase, partitions_done, partitions_total FROM pg_stat_progress_create_index WHERE pid = $1";

/// Changes the tables, and has `watch` hear of it.
pub(super) async fn run(
    client: &mut Client,
    address: &ServerAddress,
    mut migration: Migration,
    watch: &mut Watch<'_>,
) -> Result<(), Cause> {
    let pid = client.query_one("SELECT pg_backend_pid()", &[]).await?;
    let pid: i32 = pid.try_get(0)?;
    let mut observer = Observer {
        address,
        connected: None,
    };
    let begun = Instant::now();
    let mut change = pin!(schema::change(client, migration.to));
    loop {
        if let Ok(changed) = timeout(WATCH_INTERVAL, change.as_mut()).await {
            return changed;
        }
        migration.elapsed = begun.elapsed();
        let index = observer.ask(async |observer| index_step(observer, pid).await);
        migration.index = index.await.flatten();
        if !watch(&migration) {
            // The server does not see a connection end before it has the index.
            let cancel = "SELECT pg_cancel_backend($1)";
            let cancelled =
                observer.ask(async |observer| Ok(observer.execute(cancel, &[&pid]).await?));
            cancelled.await;
            return Err(Cause::Local(format!(
                "{migration}: ended, nothing has changed"
            )));
        }
    }
}

/// The second connection. It only reports: where it fails the change goes on, and the next question connects anew.
struct Observer<'a> {
    address: &'a ServerAddress,
    connected: Option<(Client, JoinSet<()>)>,
}

impl Observer<'_> {
    async fn ask<T>(
        &mut self,
        question: impl AsyncFnOnce(&Client) -> Result<T, Cause>,
    ) -> Option<T> {
        let kept = self.connected.take();
        let asked = async {
            let connected = match kept {
                Some(connected) => connected,
                None => {
                    let mut connections = JoinSet::new();
                    let client = connect(self.address, &mut connections).await?;
                    (client, connections)
                }
            };
            let answer = question(&connected.0).await?;
            Ok::<_, Cause>((connected, answer))
        };
        let answered = timeout(ANSWER_TIMEOUT, asked).await;
        let (connected, answer) = answered.ok()?.ok()?;
        self.connected = Some(connected);
        Some(answer)
    }
}

async fn index_step(observer: &Client, pid: i32) -> Result<Option<IndexStep>, Cause> {
    let row = match observer.query_opt(INDEX, &[&pid]).await {
        // Before PostgreSQL 12 the server does not tell.
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => None,
        row => row?,
    };
    let Some(row) = row else {
        return Ok(None);
    };
    Ok(Some(IndexStep {
        phase: row.try_get(0)?,
        days_done: row.try_get::<_, i64>(1)?.unsigned_abs(),
        days: row.try_get::<_, i64>(2)?.unsigned_abs(),
    }))
}
