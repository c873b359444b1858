// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events that are asked for.

use super::connect::Cause;
use super::partitions::{begin_us, days};
use crate::store::calendar::DAY_US;
use crate::store::path_key::path_of;
use crate::store::{Query, Record};
use crate::{Event, Kind, Origin};
use std::net::IpAddr;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

type Values = Vec<Box<dyn ToSql + Sync>>;

/// The newest events that match, in the order of time.
pub(super) async fn query(client: &Client, query: &Query) -> Result<Vec<Record>, Cause> {
    let mut found = Vec::new();
    for (since_us, until_us) in windows(client, query).await? {
        if found.len() >= query.limit {
            break;
        }
        let of_window = Query {
            since_us,
            until_us,
            limit: query.limit - found.len(),
            ..query.clone()
        };
        let (sql, values) = selection(&of_window);
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| &**value).collect();
        for row in client.query(&sql, &values).await? {
            found.push(record(&row)?);
        }
    }
    found.sort_by_key(|record: &Record| (record.event.time_us, record.sequence));
    Ok(found)
}

/// What is read after one another. Few events are found at once by their index. Of flows and samples, whose index by time
/// has no order, a day is read and sorted, from the newest back, until there are enough.
async fn windows(client: &Client, query: &Query) -> Result<Vec<(i64, i64)>, Cause> {
    let (since_us, until_us) = (query.since_us, query.until_us);
    let prefix = query.prefix;
    let is_of_path = prefix.is_some_and(|p| p.prefix_len() >= path_of(p.network()).prefix_len());
    if is_of_path || is_of_others(query) {
        return Ok(vec![(since_us, until_us)]);
    }
    let days = days(client).await?;
    let days: Vec<i64> = days.iter().filter_map(|day| begin_us(day)).collect();
    let (Some(first), Some(last)) = (days.first(), days.last()) else {
        return Ok(vec![(since_us, until_us)]);
    };
    let of_days = days.iter().rev().map(|begin| (*begin, begin + DAY_US));
    let after = [(last + DAY_US, i64::MAX)].into_iter();
    let all = after.chain(of_days).chain([(i64::MIN, *first)]);
    let clipped = all.map(|(begin, end)| (begin.max(since_us), end.min(until_us)));
    Ok(clipped.filter(|(begin, end)| begin < end).collect())
}

/// Neither flows nor samples, which are nearly all events.
fn is_of_others(query: &Query) -> bool {
    let is_other = |kind: &Kind| !matches!(kind, Kind::Flow | Kind::Sample);
    !query.kinds.is_empty() && query.kinds.iter().all(is_other)
}

/// The text has only fixed parts; whatever was asked for is a bound parameter.
fn selection(query: &Query) -> (String, Values) {
    let mut sql =
        "SELECT host, boot, sequence, kind, time_us, name, peer, rule, value, weight, body \
        FROM record JOIN origin ON origin.id = record.origin WHERE time_us >= $1 AND time_us < $2"
            .to_owned();
    let mut values: Values = vec![Box::new(query.since_us), Box::new(query.until_us)];
    let mut also = |condition: &str, value: Box<dyn ToSql + Sync>| {
        values.push(value);
        sql.push_str(&format!(" AND {condition}${}", values.len()));
        if condition.starts_with("peer") {
            sql.push_str("::text::inet");
        }
        if condition.starts_with("kind") {
            sql.push(')');
        }
    };
    if let Some(prefix) = query.prefix {
        also("peer <<= ", Box::new(prefix.trunc().to_string()));
    }
    for (condition, wanted) in [("host = ", &query.host), ("rule = ", &query.rule)] {
        if let Some(wanted) = wanted {
            also(condition, Box::new(wanted.clone()));
        }
    }
    if !query.kinds.is_empty() {
        let kinds: Vec<&'static str> = query.kinds.iter().map(|kind| kind.name()).collect();
        also("kind = ANY(", Box::new(kinds));
    }
    if is_of_others(query) {
        // In the words of the schema: the server uses the indexes of the others then.
        sql.push_str(" AND kind NOT IN ('flow', 'sample')");
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
