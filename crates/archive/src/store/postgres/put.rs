// SPDX-License-Identifier: MIT OR Apache-2.0
//! A batch of events into the database, by COPY, in one transaction with what its flows add to the roll-ups.

use super::connect::Cause;
use super::rollups;
use super::schema::{table_of, writing};
use crate::store::rollup::Rollups;
use crate::store::{Batch, Put};
use crate::{Event, Kind, Origin};
use std::collections::HashSet;
use std::pin::pin;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Transaction};

/// Of this connection, and empty again after each transaction.
const INCOMING: &str = "CREATE TEMPORARY TABLE IF NOT EXISTS incoming (\
     sequence bigint, time_us bigint, name text, peer inet, rule text, value double precision, weight bigint, body text\
     ) ON COMMIT DELETE ROWS";

const COPY: &str = "COPY incoming FROM STDIN BINARY";

const COLUMNS: [Type; 8] = [
    Type::INT8,
    Type::INT8,
    Type::TEXT,
    Type::INET,
    Type::TEXT,
    Type::FLOAT8,
    Type::INT8,
    Type::TEXT,
];

/// Answers the events that are new.
fn take_sql(kind: Kind) -> String {
    let table = table_of(kind);
    format!(
        "INSERT INTO {table} (origin, sequence, time_us, kind, name, peer, rule, value, weight, body) \
         SELECT $1, sequence, time_us, $2, name, peer, rule, value, weight, body FROM incoming \
         ON CONFLICT DO NOTHING RETURNING sequence"
    )
}

pub(super) async fn put(client: &mut Client, batch: &Batch) -> Result<Put, Cause> {
    let host = text(&batch.origin.host);
    let transaction = writing(client).await?;
    // A host's daemon and its imports add to the same roll-ups: one after the other.
    let lock = "SELECT pg_advisory_xact_lock(hashtext($1))";
    transaction.execute(lock, &[&host]).await?;
    let origin = origin_id(&transaction, &batch.origin).await?;
    copy(&transaction, &batch.events).await?;
    let new = transaction
        .query(&take_sql(batch.kind), &[&origin, &batch.kind.name()])
        .await?;
    let new = new.iter().map(|row| row.try_get::<_, i64>(0));
    let new: HashSet<i64> = new.collect::<Result<_, _>>()?;
    if batch.kind == Kind::Flow {
        let mut added = Rollups::default();
        let mut left = new.clone();
        for (sequence, event) in &batch.events {
            if left.remove(&(*sequence as i64)) {
                added.count(event);
            }
        }
        rollups::add(&transaction, &host, added).await?;
    }
    transaction.commit().await?;
    Ok(Put {
        stored: new.len() as u64,
        known: (batch.events.len() - new.len()) as u64,
        refused: 0,
    })
}

async fn origin_id(transaction: &Transaction<'_>, origin: &Origin) -> Result<i64, Cause> {
    let (host, boot) = (text(&origin.host), text(&origin.boot));
    let sql = "INSERT INTO origin (host, boot) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    transaction.execute(sql, &[&host, &boot]).await?;
    let sql = "SELECT id FROM origin WHERE host = $1 AND boot = $2";
    Ok(transaction
        .query_one(sql, &[&host, &boot])
        .await?
        .try_get(0)?)
}

async fn copy(transaction: &Transaction<'_>, events: &[(u64, Event)]) -> Result<(), Cause> {
    transaction.batch_execute(INCOMING).await?;
    let sink = transaction.copy_in(COPY).await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &COLUMNS));
    // A batch's events of one path are on few pages then, and in one place of the index by peer.
    let mut events: Vec<&(u64, Event)> = events.iter().collect();
    events.sort_by_key(|(_, event)| event.peer);
    for (sequence, event) in events {
        let peer = event.peer.map(|peer| peer.to_canonical());
        let row: [&(dyn ToSql + Sync); 8] = [
            &(*sequence as i64),
            &event.time_us,
            &text(&event.name),
            &peer,
            &event.rule.as_deref().map(text),
            &event.value,
            &i64::from(event.weight),
            &text(&event.body),
        ];
        writer.as_mut().write(&row).await?;
    }
    writer.finish().await?;
    Ok(())
}

/// PostgreSQL has no character of the number 0, neither in text nor escaped in JSON: one event with it would hold up all.
fn text(text: &str) -> String {
    text.replace('\0', "\u{fffd}").replace("\\u0000", "\\ufffd")
}
