// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events that are asked for.

use super::Session;
use super::connect::Cause;
use super::partitions::{self, DAYS_AT_ONCE, begin_us};
use super::schema::{OTHER, OTHER_SINCE, RECORD, table_of};
use crate::store::calendar::{DAY_US, day_of};
use crate::store::path_key::path_of;
use crate::store::{Query, Record};
use crate::{Event, Kind, Origin};
use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

type Values = Vec<Box<dyn ToSql + Sync>>;

/// The newest events that match, in the order of time.
pub(super) async fn query(session: &mut Session, query: &Query) -> Result<Vec<Record>, Cause> {
    let mut found = Vec::new();
    for (table, part) in parts(session.version, query) {
        let windows = match table {
            RECORD => windows(known_days(session).await?, &part),
            _ => vec![(query.since_us, query.until_us)],
        };
        found.extend(newest(&session.client, table, &windows, &part).await?);
    }
    found.sort_by_key(|record: &Record| (record.event.time_us, record.sequence));
    Ok(found.split_off(found.len().saturating_sub(query.limit)))
}

/// What is asked of each table. A schema without [`OTHER`] has all in [`RECORD`].
fn parts(version: Option<i64>, query: &Query) -> Vec<(&'static str, Query)> {
    if version < Some(OTHER_SINCE) {
        return vec![(RECORD, query.clone())];
    }
    let part = |table| {
        let is_its = |kind: &Kind| table_of(*kind) == table;
        let part = Query {
            kinds: query.kinds.iter().copied().filter(is_its).collect(),
            ..query.clone()
        };
        (table, part)
    };
    let mut parts = vec![part(RECORD), part(OTHER)];
    parts.retain(|(_, part)| !part.kinds.is_empty() || query.kinds.is_empty());
    parts
}

/// The newest of these windows, up to the limit.
async fn newest(
    client: &Client,
    table: &str,
    windows: &[(i64, i64)],
    query: &Query,
) -> Result<Vec<Record>, Cause> {
    let mut found = Vec::new();
    for (since_us, until_us) in windows.iter().copied() {
        if found.len() >= query.limit {
            break;
        }
        let of_window = Query {
            since_us,
            until_us,
            limit: query.limit - found.len(),
            ..query.clone()
        };
        let (sql, values) = selection(table, &of_window);
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| &**value).collect();
        for row in client.query(&sql, &values).await? {
            found.push(record(&row)?);
        }
    }
    Ok(found)
}

/// Those that have a partition.
async fn known_days(session: &mut Session) -> Result<&[String], Cause> {
    if !is_today_known(&session.days, SystemTime::now()) {
        session.days = partitions::days(&session.client).await?;
    }
    Ok(&session.days)
}

/// Where it is not, others may have made days since these were read, which would all be read at once.
fn is_today_known(days: &[String], now: SystemTime) -> bool {
    let since_1970 = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_us = i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX);
    days.contains(&day_of(now_us))
}

/// What is read after one another, the newest first, and is all of the time: days that others made meanwhile are in it.
/// `days` have a partition, the oldest first. Those of a path are found at once by their index, in days that may be locked
/// together. Of all others, whose index by time has no order, a day is read and sorted, until there are enough.
fn windows(days: &[String], query: &Query) -> Vec<(i64, i64)> {
    let prefix = query.prefix;
    let is_of_path = prefix.is_some_and(|p| p.prefix_len() >= path_of(p.network()).prefix_len());
    let together = match is_of_path {
        true => DAYS_AT_ONCE,
        false => 1,
    };
    let begins: Vec<i64> = days.iter().filter_map(|day| begin_us(day)).collect();
    let is_asked = |begin: &i64| *begin < query.until_us && begin + DAY_US > query.since_us;
    let begins: Vec<i64> = begins.into_iter().filter(is_asked).collect();
    let mut windows = Vec::new();
    let mut until_us = query.until_us;
    for part in begins.rchunks(together) {
        windows.push((part[0].max(query.since_us), until_us));
        until_us = part[0];
    }
    windows.push((query.since_us, until_us));
    windows.retain(|(since_us, until_us)| since_us < until_us);
    windows
}

/// The text has only fixed parts; whatever was asked for is a bound parameter.
fn selection(table: &str, query: &Query) -> (String, Values) {
    let mut sql = format!(
        "SELECT host, boot, sequence, kind, time_us, name, peer, rule, value, weight, body \
         FROM {table} JOIN origin ON origin.id = {table}.origin WHERE time_us >= $1 AND time_us < $2"
    );
    let mut values: Values = vec![Box::new(query.since_us), Box::new(query.until_us)];
    let mut also = |condition: &str, value: Box<dyn ToSql + Sync>| {
        values.push(value);
        sql.push_str(&format!(" AND {condition}${}", values.len()));
        if condition.starts_with("peer") {
            sql.push_str("::text::inet");
        }
        let open = condition.matches('(').count();
        sql.push_str(&")".repeat(open));
    };
    if let Some(prefix) = query.prefix {
        also("peer <<= ", Box::new(prefix.trunc().to_string()));
    }
    if let Some(host) = &query.host {
        // Asked for first: the index begins with it.
        let of_host = format!("{table}.origin = ANY(ARRAY(SELECT id FROM origin WHERE host = ");
        also(&of_host, Box::new(host.clone()));
    }
    if let Some(rule) = &query.rule {
        also("rule = ", Box::new(rule.clone()));
    }
    if !query.kinds.is_empty() {
        let kinds: Vec<&'static str> = query.kinds.iter().map(|kind| kind.name()).collect();
        also("kind = ANY(", Box::new(kinds));
    }
    values.push(Box::new(i64::try_from(query.limit).unwrap_or(i64::MAX)));
    sql.push_str(&format!(" ORDER BY time_us DESC LIMIT ${}", values.len()));
    (sql, values)
}

fn record(row: &Row) -> Result<Record, Cause> {
    let kind: &str = row.try_get(3)?;
    let weight: i64 = row.try_get(9)?;
    Ok(Record {
        origin: Origin {
            host: row.try_get(0)?,
            boot: row.try_get(1)?,
        },
        sequence: row.try_get::<_, i64>(2)? as u64,
        // A kind of a later version is an event.
        kind: kind.parse().unwrap_or(Kind::Event),
        event: Event {
            time_us: row.try_get(4)?,
            name: row.try_get(5)?,
            peer: row.try_get::<_, Option<IpAddr>>(6)?,
            rule: row.try_get(7)?,
            value: row.try_get(8)?,
            weight: u32::try_from(weight).unwrap_or(u32::MAX),
            body: row.try_get(10)?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST_US: i64 = 1_795_392_000_000_000;

    fn days(numbers: impl Iterator<Item = i64>) -> Vec<String> {
        let days = numbers.map(|day| crate::store::calendar::day_of(FIRST_US + day * DAY_US));
        days.collect()
    }

    fn asked(since_us: i64, until_us: i64, prefix: Option<&str>) -> Query {
        Query {
            prefix: prefix.map(|prefix| prefix.parse().unwrap()),
            ..Query::between(since_us, until_us)
        }
    }

    #[test]
    fn each_table_is_asked_for_the_kinds_that_it_has() {
        let parts = |version, kinds: &[Kind]| -> Vec<(&str, Vec<Kind>)> {
            let query = Query {
                kinds: kinds.to_vec(),
                ..Query::between(0, 1)
            };
            let parts = parts(Some(version), &query).into_iter();
            parts.map(|(table, part)| (table, part.kinds)).collect()
        };
        let mixed = [Kind::Test, Kind::Flow, Kind::Path];
        let of_each = [
            (RECORD, vec![Kind::Flow]),
            (OTHER, vec![Kind::Test, Kind::Path]),
        ];
        assert_eq!(parts(OTHER_SINCE, &mixed), of_each);
        assert_eq!(parts(OTHER_SINCE, &mixed[..1]), [(OTHER, vec![Kind::Test])]);
        assert_eq!(parts(OTHER_SINCE, &[]), [(RECORD, vec![]), (OTHER, vec![])]);
        assert_eq!(parts(OTHER_SINCE - 1, &mixed), [(RECORD, mixed.to_vec())]);
        assert_eq!(parts(OTHER_SINCE - 1, &[]), [(RECORD, vec![])]);
    }

    #[test]
    fn a_day_that_begins_is_not_known() {
        // Of a clock that is ahead, too.
        let days = days([0, 1, 2, 900].into_iter());
        let is_known = |time_us: i64| {
            let since_1970 = std::time::Duration::from_micros(time_us.unsigned_abs());
            is_today_known(&days, UNIX_EPOCH + since_1970)
        };
        assert!(is_known(FIRST_US) && is_known(FIRST_US + 3 * DAY_US - 1));
        assert!(!is_known(FIRST_US + 3 * DAY_US));
        assert!(!is_today_known(&[], UNIX_EPOCH));
    }

    #[test]
    fn windows_are_all_of_the_time_once_the_newest_first() {
        // Of each three days one has no events.
        let days = days((0..300).filter(|day| day % 3 != 1));
        for (since_us, until_us) in [
            (i64::MIN, i64::MAX),
            (FIRST_US + 5, FIRST_US + 100 * DAY_US + 7),
            (FIRST_US + DAY_US, FIRST_US + 2 * DAY_US),
            (0, 5),
            (FIRST_US + 900 * DAY_US, i64::MAX),
        ] {
            for prefix in [None, Some("192.0.2.0/24")] {
                let windows = windows(&days, &asked(since_us, until_us, prefix));
                assert_eq!(windows.first().unwrap().1, until_us);
                assert_eq!(windows.last().unwrap().0, since_us);
                let meet = windows.windows(2).all(|pair| pair[0].0 == pair[1].1);
                assert!(meet, "{windows:?}");
                let most = if prefix.is_some() { DAYS_AT_ONCE } else { 1 };
                for (since_us, until_us) in &windows {
                    let begins = days.iter().filter_map(|day| begin_us(day));
                    let within = begins.filter(|b| b < until_us && b + DAY_US > *since_us);
                    assert!(within.count() <= most, "{prefix:?} {windows:?}");
                }
            }
        }
        let of_none = windows(&days[..0], &asked(3, 7, None));
        assert_eq!(of_none, [(3, 7)]);
        assert!(windows(&days, &asked(7, 7, None)).is_empty());
    }
}
