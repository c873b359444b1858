// SPDX-License-Identifier: MIT OR Apache-2.0
//! One database: the events of a day, or the roll-ups of days whose events are gone.

use super::path_key::{Key, key, keys, path_of};
use super::rollup::{Place, Rollups};
use super::{Batch, Histogram, History, Measure, Put, Query, Record, Rollup, StoreError, Width};
use crate::{Event, Kind, Origin};
use ipnet::IpNet;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, Transaction, params};
use std::path::Path;
use std::time::Duration;

/// Version of `schema.sql`.
const VERSION: i64 = 1;

/// An import and the daemon may write to the same day.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

const SCHEMA: &str = include_str!("schema.sql");

/// An open database.
#[derive(Debug)]
pub(super) struct Database {
    file: String,
    connection: Connection,
}

impl Database {
    /// Opens it to write, or makes it. What a commit stored survives a crash of the host.
    pub(super) fn open(path: &Path) -> Result<Database, StoreError> {
        let open = || {
            let connection = Connection::open(path)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            connection.pragma_update(None, "journal_mode", "wal")?;
            connection.pragma_update(None, "synchronous", "full")?;
            // Pages of 4 KiB: the log is copied into the database each 16 MiB.
            connection.pragma_update(None, "wal_autocheckpoint", 4096)?;
            connection.pragma_update(None, "cache_size", -16_384)?;
            Ok(connection)
        };
        let mut database = Database::of(path, open())?;
        if database.version()? == 0 {
            let create = |transaction: &Transaction| {
                transaction.execute_batch(SCHEMA)?;
                transaction.pragma_update(None, "user_version", VERSION)
            };
            database.transact(create)?;
        }
        database.check_version()
    }

    /// Opens it to read. `None` when it is there no more.
    pub(super) fn read(path: &Path) -> Result<Option<Database>, StoreError> {
        if !path.exists() {
            return Ok(None);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let database = Database::of(path, Connection::open_with_flags(path, flags))?;
        let database = match database.version() {
            Ok(_) => database,
            // Who may not write to the folder cannot read the log of a database that nobody has open; there is none.
            Err(_) => {
                let escaped = path.display().to_string();
                let escaped = escaped
                    .replace('%', "%25")
                    .replace('?', "%3f")
                    .replace('#', "%23");
                let immutable = format!("file:{escaped}?immutable=1");
                Database::of(path, Connection::open_with_flags(immutable, flags))?
            }
        };
        database.check_version().map(Some)
    }

    fn of(path: &Path, opened: rusqlite::Result<Connection>) -> Result<Database, StoreError> {
        let file = path.display().to_string();
        match opened {
            Ok(connection) => Ok(Database { file, connection }),
            Err(error) => Err(StoreError::Database(file, error)),
        }
    }

    fn check_version(self) -> Result<Database, StoreError> {
        match self.version()? {
            VERSION => Ok(self),
            found => Err(StoreError::Version {
                file: self.file,
                found,
                known: VERSION,
            }),
        }
    }

    fn version(&self) -> Result<i64, StoreError> {
        let version = self
            .connection
            .pragma_query_value(None, "user_version", |row| row.get(0));
        self.named(version)
    }

    fn named<T>(&self, result: rusqlite::Result<T>) -> Result<T, StoreError> {
        result.map_err(|error| StoreError::Database(self.file.clone(), error))
    }

    /// All of it, or nothing.
    fn transact<T>(
        &mut self,
        change: impl FnOnce(&Transaction) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let changed = self.connection.transaction().and_then(|transaction| {
            let changed = change(&transaction)?;
            transaction.commit()?;
            Ok(changed)
        });
        self.named(changed)
    }

    /// Stores events, and counts those that are new in the roll-ups.
    pub(super) fn put<'e>(
        &mut self,
        batch: &Batch,
        events: impl Iterator<Item = &'e (u64, Event)>,
    ) -> Result<Put, StoreError> {
        self.transact(|transaction| {
            let origin = origin_id(transaction, &batch.origin)?;
            let (mut put, mut rollups) = (Put::default(), Rollups::default());
            for (sequence, event) in events {
                if !insert(transaction, origin, batch.kind, *sequence, event)? {
                    put.known += 1;
                    continue;
                }
                put.stored += 1;
                if batch.kind == Kind::Flow {
                    rollups.count(event);
                }
            }
            for (place, rollup) in rollups.into_iter() {
                merge(transaction, &place, rollup)?;
            }
            Ok(put)
        })
    }

    /// The newest events that match, the newest first.
    pub(super) fn query(&self, query: &Query) -> Result<Vec<Record>, StoreError> {
        let (sql, values) = selection(query);
        let select = || {
            let mut statement = self.connection.prepare(&sql)?;
            let rows = statement.query_map(rusqlite::params_from_iter(values), record)?;
            rows.collect()
        };
        self.named(select())
    }

    /// Adds the roll-ups of a prefix.
    pub(super) fn add_history(
        &self,
        prefix: IpNet,
        width: Width,
        (since_us, until_us): (i64, i64),
        history: &mut History,
    ) -> Result<(), StoreError> {
        let path = path_of(prefix.network());
        // Of one path the key's next columns count, too, and its intervals of the other width are not read.
        let (of_path, keys) = match prefix.prefix_len() >= path.prefix_len() {
            true => ("path = ?1", keys(path)),
            false => ("path BETWEEN ?1 AND ?2", keys(prefix)),
        };
        let sql = format!(
            "SELECT measure, begin_s, n, sum_ln, sum_ln2, histogram FROM rollup \
             WHERE {of_path} AND width_s = ?3 AND begin_s >= ?4 AND begin_s < ?5"
        );
        let mut select = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare(&sql)?;
            let (since_s, until_s) = (
                since_us.div_euclid(1_000_000),
                until_us.div_euclid(1_000_000),
            );
            let first_s = since_s - since_s.rem_euclid(width.seconds());
            let values = params![keys.start(), keys.end(), width.seconds(), first_s, until_s];
            let mut rows = statement.query(values)?;
            while let Some(row) = rows.next()? {
                let name: String = row.get(0)?;
                if let Some(measure) = Measure::ALL.into_iter().find(|m| m.name() == name) {
                    let place = (row.get(1)?, measure);
                    history.entry(place).or_default().merge(&rollup(row, 2)?);
                }
            }
            Ok(())
        };
        self.named(select())
    }

    /// Adds all roll-ups of a day's database, once until [`Database::forget_taken`].
    pub(super) fn take_rollups(&mut self, day: &str, from: &Database) -> Result<(), StoreError> {
        let rollups = from.named(from.all_rollups())?;
        self.transact(|transaction| {
            let taken = "INSERT OR IGNORE INTO taken (day) VALUES (?1)";
            let is_new = transaction.execute(taken, [day])? > 0;
            for (place, rollup) in rollups.into_iter().filter(|_| is_new) {
                merge(transaction, &place, rollup)?;
            }
            Ok(())
        })
    }

    /// Days whose roll-ups were taken, and whose database may still be there.
    pub(super) fn taken(&self) -> Result<Vec<String>, StoreError> {
        let select = || {
            let mut statement = self.connection.prepare("SELECT day FROM taken")?;
            statement.query_map([], |row| row.get(0))?.collect()
        };
        self.named(select())
    }

    /// The day's database is removed; another one of its name has other roll-ups.
    pub(super) fn forget_taken(&mut self, day: &str) -> Result<(), StoreError> {
        let deleted = self
            .connection
            .execute("DELETE FROM taken WHERE day = ?1", [day]);
        self.named(deleted.map(drop))
    }

    fn all_rollups(&self) -> rusqlite::Result<Vec<(Place, Rollup)>> {
        let mut statement = self.connection.prepare(
            "SELECT path, width_s, measure, begin_s, n, sum_ln, sum_ln2, histogram FROM rollup",
        )?;
        let rows = statement.query_map([], |row| Ok((place(row)?, rollup(row, 4)?)))?;
        let known = rows.filter_map(|row| match row {
            Ok((place, rollup)) => Some(Ok((place?, rollup))),
            Err(error) => Some(Err(error)),
        });
        known.collect()
    }

    /// Roll-ups that are older than they are kept.
    pub(super) fn remove_old_rollups(&mut self, now_us: i64) -> Result<(), StoreError> {
        self.transact(|transaction| {
            for width in Width::ALL {
                let oldest_s = now_us / 1_000_000 - width.kept_days() * 86_400;
                let sql = "DELETE FROM rollup WHERE width_s = ?1 AND begin_s < ?2";
                transaction.execute(sql, [width.seconds(), oldest_s])?;
            }
            Ok(())
        })
    }
}

fn origin_id(transaction: &Transaction, origin: &Origin) -> rusqlite::Result<i64> {
    let names = [&origin.host, &origin.boot];
    transaction.execute(
        "INSERT OR IGNORE INTO origin (host, boot) VALUES (?1, ?2)",
        names,
    )?;
    let sql = "SELECT id FROM origin WHERE host = ?1 AND boot = ?2";
    transaction.query_row(sql, names, |row| row.get(0))
}

/// Whether it is new.
fn insert(
    transaction: &Transaction,
    origin: i64,
    kind: Kind,
    sequence: u64,
    event: &Event,
) -> rusqlite::Result<bool> {
    let mut statement = transaction.prepare_cached(
        "INSERT OR IGNORE INTO record (origin, sequence, time_us, kind, name, peer, peer_key, rule, value, weight, body) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    let peer = event.peer.map(|peer| peer.to_canonical());
    let inserted = statement.execute(params![
        origin,
        sequence as i64,
        event.time_us,
        kind.name(),
        event.name,
        peer.map(|peer| peer.to_string()),
        peer.map(key),
        event.rule,
        event.value,
        event.weight,
        event.body,
    ])?;
    Ok(inserted > 0)
}

/// Adds to the roll-up that is there.
fn merge(transaction: &Transaction, place: &Place, mut rollup: Rollup) -> rusqlite::Result<()> {
    let Place {
        path,
        width,
        measure,
        begin_s,
    } = place;
    let at = params![path, width.seconds(), measure.name(), begin_s];
    let mut before = transaction.prepare_cached(
        "SELECT n, sum_ln, sum_ln2, histogram FROM rollup \
         WHERE path = ?1 AND width_s = ?2 AND measure = ?3 AND begin_s = ?4",
    )?;
    if let Some(before) = before
        .query_row(at, |row| self::rollup(row, 0))
        .optional()?
    {
        rollup.merge(&before);
    }
    let mut insert = transaction.prepare_cached(
        "INSERT OR REPLACE INTO rollup (path, width_s, measure, begin_s, n, sum_ln, sum_ln2, histogram) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    insert.execute(params![
        path,
        width.seconds(),
        measure.name(),
        begin_s,
        rollup.n as i64,
        rollup.sum_ln,
        rollup.sum_ln2,
        rollup.histogram.to_bytes(),
    ])?;
    Ok(())
}

/// The four columns from this one on.
fn rollup(row: &Row, first: usize) -> rusqlite::Result<Rollup> {
    Ok(Rollup {
        n: row.get::<_, i64>(first)? as u64,
        sum_ln: row.get(first + 1)?,
        sum_ln2: row.get(first + 2)?,
        histogram: Histogram::from_bytes(row.get_ref(first + 3)?.as_blob()?),
    })
}

/// `None`: a width or a measure of another version.
fn place(row: &Row) -> rusqlite::Result<Option<Place>> {
    let (path, seconds, name): (Key, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let (width, measure) = (Width::of_seconds(seconds), Measure::named(&name));
    let begin_s = row.get(3)?;
    Ok(width.zip(measure).map(|(width, measure)| Place {
        path,
        width,
        measure,
        begin_s,
    }))
}

/// The text has only fixed parts; whatever was asked for is a bound parameter.
fn selection(query: &Query) -> (String, Vec<Value>) {
    let mut sql =
        "SELECT host, boot, sequence, kind, time_us, name, peer, rule, value, weight, body \
        FROM record JOIN origin ON origin.id = record.origin WHERE "
            .to_owned();
    // A path has few events among those of a day. SQLite cannot know it; the sign keeps it from the indexes by time and
    // kind.
    let is_path = |prefix: IpNet| prefix.prefix_len() >= path_of(prefix.network()).prefix_len();
    let sign = if query.prefix.is_some_and(is_path) {
        "+"
    } else {
        ""
    };
    sql.push_str(&format!("{sign}time_us >= ? AND {sign}time_us < ?"));
    let mut values: Vec<Value> = vec![query.since_us.into(), query.until_us.into()];
    if let Some(prefix) = query.prefix {
        sql.push_str(" AND peer_key BETWEEN ? AND ?");
        let (first, last) = keys(prefix).into_inner();
        values.extend([first.to_vec().into(), last.to_vec().into()]);
    }
    for (column, wanted) in [("host", &query.host), ("rule", &query.rule)] {
        if let Some(wanted) = wanted {
            sql.push_str(&format!(" AND {column} = ?"));
            values.push(wanted.clone().into());
        }
    }
    if !query.kinds.is_empty() {
        if !query
            .kinds
            .iter()
            .any(|kind| matches!(kind, Kind::Flow | Kind::Sample))
        {
            // In the words of the schema: SQLite uses the indexes of the others then.
            sql.push_str(" AND kind NOT IN ('flow', 'sample')");
        }
        let places = vec!["?"; query.kinds.len()].join(", ");
        sql.push_str(&format!(" AND {sign}kind IN ({places})"));
        values.extend(
            query
                .kinds
                .iter()
                .map(|kind| Value::from(kind.name().to_owned())),
        );
    }
    sql.push_str(" ORDER BY time_us DESC LIMIT ?");
    values.push(i64::try_from(query.limit).unwrap_or(i64::MAX).into());
    (sql, values)
}

fn record(row: &Row) -> rusqlite::Result<Record> {
    let kind: String = row.get(3)?;
    let peer: Option<String> = row.get(6)?;
    Ok(Record {
        origin: Origin {
            host: row.get(0)?,
            boot: row.get(1)?,
        },
        sequence: row.get::<_, i64>(2)? as u64,
        // A kind of a later version is an event.
        kind: kind.parse().unwrap_or(Kind::Event),
        event: Event {
            time_us: row.get(4)?,
            name: row.get(5)?,
            peer: peer.and_then(|peer| peer.parse().ok()),
            rule: row.get(7)?,
            value: row.get(8)?,
            weight: row.get(9)?,
            body: row.get(10)?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How SQLite reads the events of a query.
    fn plan(query: &Query) -> String {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(SCHEMA).unwrap();
        let (sql, values) = selection(query);
        let sql = format!("EXPLAIN QUERY PLAN {sql}");
        let mut statement = connection.prepare(&sql).unwrap();
        let rows = statement.query_map(rusqlite::params_from_iter(values), |row| row.get(3));
        let lines: rusqlite::Result<Vec<String>> = rows.unwrap().collect();
        lines.unwrap().join("\n")
    }

    #[test]
    fn a_decision_is_found_without_reading_all_flows() {
        let all = Query::between(0, 1_000_000);
        let of = |kind, prefix| {
            plan(&Query {
                kinds: vec![kind],
                prefix,
                ..all.clone()
            })
        };
        let prefix = Some("192.0.2.0/24".parse().unwrap());
        let used = [
            (of(Kind::Decision, None), "other_by_kind"),
            (of(Kind::Event, prefix), "other_by_peer"),
            (of(Kind::Flow, None), "record_by_time"),
            (of(Kind::Flow, prefix), "record_by_peer"),
            (plan(&all), "record_by_time"),
        ];
        for (plan, index) in used {
            assert!(
                plan.contains(&format!("USING INDEX {index}")),
                "{index}: {plan}"
            );
        }
    }
}
