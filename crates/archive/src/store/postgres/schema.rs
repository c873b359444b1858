// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables and views, and the way from each version to the next and back.

use super::connect::Cause;
use crate::Kind;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Transaction};

/// From the version before, and back to it. A step that others have taken never changes.
const STEPS: [(&str, &str); 5] = [
    (
        include_str!("schema/1.forward.sql"),
        include_str!("schema/1.back.sql"),
    ),
    (
        include_str!("schema/2.forward.sql"),
        include_str!("schema/2.back.sql"),
    ),
    (
        include_str!("schema/3.forward.sql"),
        include_str!("schema/3.back.sql"),
    ),
    (
        include_str!("schema/4.forward.sql"),
        include_str!("schema/4.back.sql"),
    ),
    (
        include_str!("schema/5.forward.sql"),
        include_str!("schema/5.back.sql"),
    ),
];

/// The version that this fatpath writes.
pub const SCHEMA_VERSION: i64 = STEPS.len() as i64;

/// Flows and samples, which are nearly all events: a partition for each day.
pub(super) const RECORD: &str = "record";

/// All other events, from this version on.
pub(super) const OTHER: &str = "other";
pub(super) const OTHER_SINCE: i64 = 5;

/// Where this version has the events of a kind.
pub(super) fn table_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Flow | Kind::Sample => RECORD,
        _ => OTHER,
    }
}

/// Of hosts that change tables, one at a time: "fatpath" as a number.
const LOCK: i64 = 28_825_340_302_586_984;

/// Whoever writes shares it, and who brings the tables to another version has it alone.
const VERSION_LOCK: i64 = LOCK + 1;

/// A transaction that writes: the tables are of the version that this fatpath writes, and stay so until it ends.
pub(super) async fn writing(client: &mut Client) -> Result<Transaction<'_>, Cause> {
    let transaction = client.transaction().await?;
    let sql = "SELECT pg_advisory_xact_lock_shared($1)";
    let locked = transaction.execute(sql, &[&VERSION_LOCK]).await;
    locked.map_err(of_version_lock)?;
    match version(transaction.client()).await? {
        Some(SCHEMA_VERSION) => Ok(transaction),
        found => Err(Cause::Version(found.unwrap_or_default())),
    }
}

fn of_version_lock(error: tokio_postgres::Error) -> Cause {
    match error.code() {
        Some(&SqlState::LOCK_NOT_AVAILABLE) => {
            Cause::Local("another host brings the tables to another version".to_owned())
        }
        _ => Cause::Server(error),
    }
}

/// For the statements of a change; who waits for a lock waits no longer than else. Where the server can (from version 14
/// on), it looks whether this end is still there, and ends the change where it is not. From version 17 on it may have a
/// limit for the whole transaction.
const NO_TIMEOUT: &str = "SET LOCAL statement_timeout = 0; \
     SELECT set_config(name, CASE name WHEN 'transaction_timeout' THEN '0' ELSE '5s' END, true) FROM pg_settings \
     WHERE name IN ('client_connection_check_interval', 'transaction_timeout')";

/// Waits until no other host changes tables, and has them wait until the transaction ends.
pub(super) async fn lock(transaction: &Transaction<'_>) -> Result<(), Cause> {
    let sql = "SELECT pg_advisory_xact_lock($1)";
    transaction.execute(sql, &[&LOCK]).await?;
    Ok(())
}

/// The same without a wait. Answers whether no other host changes tables.
pub(super) async fn try_lock(transaction: &Transaction<'_>) -> Result<bool, Cause> {
    let sql = "SELECT pg_try_advisory_xact_lock($1)";
    Ok(transaction.query_one(sql, &[&LOCK]).await?.try_get(0)?)
}

/// `None`: there is no archive.
pub(super) async fn version(client: &Client) -> Result<Option<i64>, Cause> {
    // Asked of the catalogue's tables: `to_regclass` may answer from before the wait for a lock.
    let there = "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = 'fatpath' AND tablename = 'schema_version')";
    let table = client.query_one(there, &[]).await?;
    match table.try_get(0)? {
        true => Ok(Some(
            client
                .query_one("SELECT version FROM fatpath.schema_version", &[])
                .await?
                .try_get(0)?,
        )),
        false => Ok(None),
    }
}

/// Step by step to a version, all or none. Large tables take as long as they take.
pub(super) async fn change(client: &mut Client, to: i64) -> Result<(), Cause> {
    let transaction = client.transaction().await?;
    let sql = "SELECT pg_advisory_xact_lock($1)";
    let locked = transaction.execute(sql, &[&VERSION_LOCK]).await;
    locked.map_err(of_version_lock)?;
    lock(&transaction).await?;
    // Another host may have done it meanwhile.
    let mut at = version(transaction.client()).await?.unwrap_or_default();
    if at > SCHEMA_VERSION {
        return Err(Cause::Version(at));
    }
    transaction.batch_execute(NO_TIMEOUT).await?;
    while at != to {
        let (sql, next) = match at < to {
            true => (STEPS[at as usize].0, at + 1),
            false => (STEPS[at as usize - 1].1, at - 1),
        };
        transaction.batch_execute(sql).await?;
        at = next;
        if at > 0 {
            transaction
                .execute("UPDATE schema_version SET version = $1", &[&at])
                .await?;
        }
    }
    Ok(transaction.commit().await?)
}
