// SPDX-License-Identifier: MIT OR Apache-2.0
//! The partitions of the table of events, one a day: `record_20261123`.

use super::Session;
use super::connect::Cause;
use super::schema::{OTHER_SINCE, lock, try_lock, writing};
use crate::store::StoreStatus;
use crate::store::calendar::{DAY_US, begin_of, day_of};
use std::collections::{BTreeMap, BTreeSet};
use std::time::UNIX_EPOCH;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

/// So many days are locked at once, with their indexes: locks are of all users of the server together, by default 64 for
/// each connection.
pub(super) const DAYS_AT_ONCE: usize = 32;

/// A partition is made and attached: to attach one does not stop those who write to the others, to create it in place does.
fn partition_sql(day: &str, begin_us: i64) -> String {
    let (table, end_us) = (table(day), begin_us + DAY_US);
    format!(
        "CREATE TABLE {table} (LIKE record INCLUDING DEFAULTS INCLUDING CONSTRAINTS); \
         ALTER TABLE record ATTACH PARTITION {table} FOR VALUES FROM ({begin_us}) TO ({end_us})"
    )
}

/// Of a day that has a date.
fn table(day: &str) -> String {
    format!("record_{}", day.replace('-', ""))
}

/// `2026-11-23` of `record_20261123`.
fn day_of_table(name: &str) -> Option<String> {
    let date = name.strip_prefix("record_")?;
    let (year, month, day) = (date.get(..4)?, date.get(4..6)?, date.get(6..)?);
    let day = format!("{year}-{month}-{day}");
    begin_of(&day).map(|_| day)
}

/// Its first moment; none of a day that is no date.
pub(super) fn begin_us(day: &str) -> Option<i64> {
    let since = begin_of(day)?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_micros()).ok()
}

/// Days that have a partition, the oldest first.
pub(super) async fn days(client: &Client) -> Result<Vec<String>, Cause> {
    let sql = "SELECT relname::text FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid \
         WHERE inhparent = 'fatpath.record'::regclass";
    let names = client.query(sql, &[]).await?;
    let names = names.iter().map(|row| row.try_get::<_, String>(0));
    let names: Vec<String> = names.collect::<Result<_, _>>()?;
    let mut days: Vec<String> = names.iter().filter_map(|name| day_of_table(name)).collect();
    days.sort_unstable();
    Ok(days)
}

/// Makes the partitions of these times that are missing. A time without a date goes to the partition of all others.
pub(super) async fn make(
    session: &mut Session,
    times_us: impl Iterator<Item = i64>,
) -> Result<(), Cause> {
    let with_day = times_us.filter_map(|time_us| {
        let day = day_of(time_us);
        let begin_us = begin_us(&day)?;
        (begin_us..begin_us + DAY_US)
            .contains(&time_us)
            .then_some((day, begin_us))
    });
    let mut wanted: BTreeMap<String, i64> = with_day.collect();
    wanted.retain(|day, _| !session.days.contains(day));
    if wanted.is_empty() {
        return Ok(());
    }
    let wanted: Vec<(String, i64)> = wanted.into_iter().collect();
    for part in wanted.chunks(DAYS_AT_ONCE) {
        let transaction = writing(&mut session.client).await?;
        lock(&transaction).await?;
        let there = days(transaction.client()).await?;
        for (day, begin_us) in part.iter().filter(|(day, _)| !there.contains(day)) {
            transaction
                .batch_execute(&partition_sql(day, *begin_us))
                .await?;
        }
        transaction.commit().await?;
    }
    session.days = days(&session.client).await?;
    Ok(())
}

/// Who waits for a table stops all who come later: a drop gives up instead, and is tried when it is due again.
const DROP_LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '200ms'";

/// Drops the days that no host of the store wants any more, once all had a day to tell what they want.
pub(super) async fn retain(session: &mut Session, days: u32, now_us: i64) -> Result<(), Cause> {
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    let client = &mut session.client;
    let sql = "INSERT INTO retention (host, days) VALUES ($1, $2) \
         ON CONFLICT (host) DO UPDATE SET days = excluded.days";
    let transaction = writing(client).await?;
    transaction.execute(sql, &[&host, &i64::from(days)]).await?;
    let sql = "SELECT max(days), min(told_at) < now() - interval '1 day' FROM retention";
    let told = transaction.query_one(sql, &[]).await?;
    transaction.commit().await?;
    let (longest, have_all_told): (i64, bool) = (told.try_get(0)?, told.try_get(1)?);
    if !have_all_told {
        return Ok(());
    }
    let oldest = day_of(now_us.saturating_sub((longest - 1).saturating_mul(DAY_US)));
    let old = session.days.iter().filter(|day| **day < oldest);
    let old: Vec<String> = old.cloned().collect();
    if !old.is_empty() {
        match drop_days(client, &old).await {
            Err(Cause::Server(error)) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {}
            dropped => dropped?,
        }
        session.days = self::days(&session.client).await?;
    }
    remove_others(&mut session.client, &oldest).await
}

/// So many go at once, each part in a transaction of its own: what is done stays done.
const REMOVED_AT_ONCE: u64 = 10_000;

/// Those of a clock that is far off stay, as those of `record_other` do.
async fn remove_others(client: &mut Client, oldest: &str) -> Result<(), Cause> {
    let sql = format!(
        "DELETE FROM other WHERE ctid = ANY(ARRAY(SELECT ctid FROM other \
         WHERE time_us >= 0 AND time_us < $1 ORDER BY time_us LIMIT {REMOVED_AT_ONCE} FOR UPDATE SKIP LOCKED))"
    );
    let oldest_us = begin_us(oldest).unwrap_or_default();
    loop {
        let transaction = writing(client).await?;
        let removed = transaction.execute(&sql, &[&oldest_us]).await?;
        transaction.commit().await?;
        if removed < REMOVED_AT_ONCE {
            return Ok(());
        }
    }
}

/// The oldest first, until somebody else uses the tables.
async fn drop_days(client: &mut Client, old: &[String]) -> Result<(), Cause> {
    for part in old.chunks(DAYS_AT_ONCE) {
        let transaction = writing(client).await?;
        transaction.batch_execute(DROP_LOCK_TIMEOUT).await?;
        if !try_lock(&transaction).await? {
            return Ok(());
        }
        for day in part {
            // Another host may have dropped it.
            transaction
                .batch_execute(&format!("DROP TABLE IF EXISTS {}", table(day)))
                .await?;
        }
        transaction.commit().await?;
    }
    Ok(())
}

pub(super) async fn status(session: &Session) -> Result<StoreStatus, Cause> {
    let client = &session.client;
    let sql = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class \
         WHERE relnamespace = 'fatpath'::regnamespace AND relkind = 'r'";
    let bytes: i64 = client.query_one(sql, &[]).await?.try_get(0)?;
    let mut with_events: BTreeSet<String> = days(client).await?.into_iter().collect();
    if session.version >= Some(OTHER_SINCE) {
        with_events.extend(days_of_others(client).await?);
    }
    Ok(StoreStatus {
        bytes: bytes.unsigned_abs(),
        days: with_events.into_iter().collect(),
        is_full: false,
    })
}

/// Times without a date are of none.
async fn days_of_others(client: &Client) -> Result<Vec<String>, Cause> {
    let sql = "SELECT DISTINCT time_us / $1 * $1 FROM other WHERE time_us >= 0 AND time_us <= $2";
    let last_us = begin_us("9999-12-31").unwrap_or(i64::MAX) + DAY_US - 1;
    let begins = client.query(sql, &[&DAY_US, &last_us]).await?;
    let begins = begins.iter().map(|row| Ok(day_of(row.try_get(0)?)));
    begins.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_and_its_table_name_one_another() {
        assert_eq!(table("2026-11-23"), "record_20261123");
        assert_eq!(
            day_of_table("record_20261123").as_deref(),
            Some("2026-11-23")
        );
        for other in [
            "record_other",
            "record_2026112",
            "record_20261323",
            "origin",
            "record_2026112é",
        ] {
            assert_eq!(day_of_table(other), None, "{other}");
        }
        assert_eq!(begin_us("2026-11-23"), Some(1_795_392_000_000_000));
    }
}
