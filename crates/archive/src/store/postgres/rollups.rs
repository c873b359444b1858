// SPDX-License-Identifier: MIT OR Apache-2.0
//! The roll-ups: of each host its own, merged when they are read.

use super::connect::Cause;
use super::schema::writing;
use crate::store::path_key::path_of;
use crate::store::rollup::{Place, Rollups};
use crate::store::{Histogram, History, Measure, Rollup, Width};
use ipnet::IpNet;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use tokio_postgres::{Client, Row, Transaction};

/// Those of the places that are there.
const BEFORE: &str = "SELECT path, width_s, measure, begin_s, n, sum_ln, sum_ln2, histogram FROM rollup \
     JOIN unnest($2::inet[], $3::bigint[], $4::text[], $5::bigint[]) AS place (path, width_s, measure, begin_s) \
     USING (path, width_s, measure, begin_s) WHERE host = $1";

/// Of each width, what began earlier was removed.
const KEPT: &str = "SELECT width_s, since_s FROM rollup_kept";

const REMOVE: &str = "DELETE FROM rollup WHERE width_s = $1 AND begin_s < $2";

const REMOVED: &str = "INSERT INTO rollup_kept (width_s, since_s) VALUES ($1, $2) \
     ON CONFLICT (width_s) DO UPDATE SET since_s = greatest(rollup_kept.since_s, excluded.since_s)";

const WRITE: &str = "INSERT INTO rollup (host, path, width_s, measure, begin_s, n, sum_ln, sum_ln2, histogram) \
     SELECT $1, * FROM unnest($2::inet[], $3::bigint[], $4::text[], $5::bigint[], \
     $6::bigint[], $7::double precision[], $8::double precision[], $9::bytea[]) \
     ON CONFLICT (path, width_s, measure, begin_s, host) DO UPDATE \
     SET n = excluded.n, sum_ln = excluded.sum_ln, sum_ln2 = excluded.sum_ln2, histogram = excluded.histogram";

/// Adds to what the host has there.
pub(super) async fn add(
    transaction: &Transaction<'_>,
    host: &str,
    added: Rollups,
) -> Result<(), Cause> {
    let kept = kept(transaction).await?;
    let is_kept = |place: &Place| {
        let since_s = kept.get(&place.width.seconds());
        since_s.is_none_or(|since_s| place.begin_s >= *since_s)
    };
    let kept = added.into_iter().filter(|(place, _)| is_kept(place));
    let mut all: HashMap<Place, Rollup> = kept.collect();
    let mut places: Vec<Place> = all.keys().copied().collect();
    // In the order of the key: those of a path are on few pages, and the next one's place in the index is beside the last.
    places.sort_unstable_by_key(|it| (it.path, it.width.seconds(), it.measure.name(), it.begin_s));
    let paths: Vec<IpAddr> = places.iter().map(|place| address(place.path)).collect();
    let widths: Vec<i64> = places.iter().map(|place| place.width.seconds()).collect();
    let measures: Vec<&str> = places.iter().map(|place| place.measure.name()).collect();
    let begins: Vec<i64> = places.iter().map(|place| place.begin_s).collect();
    let rows = transaction
        .query(BEFORE, &[&host, &paths, &widths, &measures, &begins])
        .await?;
    for row in rows {
        if let Some(rollup) = place(&row)?.and_then(|place| all.get_mut(&place)) {
            rollup.merge(&read(&row, 4)?);
        }
    }
    let of = |place: &Place| &all[place];
    let n: Vec<i64> = places.iter().map(|place| of(place).n as i64).collect();
    let sum_ln: Vec<f64> = places.iter().map(|place| of(place).sum_ln).collect();
    let sum_ln2: Vec<f64> = places.iter().map(|place| of(place).sum_ln2).collect();
    let histograms = places.iter().map(|place| of(place).histogram.to_bytes());
    let histograms: Vec<Vec<u8>> = histograms.collect();
    transaction
        .execute(
            WRITE,
            &[
                &host,
                &paths,
                &widths,
                &measures,
                &begins,
                &n,
                &sum_ln,
                &sum_ln2,
                &histograms,
            ],
        )
        .await?;
    Ok(())
}

/// By width in seconds, the begin of the oldest ones.
async fn kept(transaction: &Transaction<'_>) -> Result<HashMap<i64, i64>, Cause> {
    let rows = transaction.query(KEPT, &[]).await?;
    let kept = rows
        .iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
    kept.collect()
}

fn address(key: [u8; 16]) -> IpAddr {
    IpAddr::from(Ipv6Addr::from(key)).to_canonical()
}

/// `None`: a width or a measure of another version.
fn place(row: &Row) -> Result<Option<Place>, Cause> {
    let path: IpAddr = row.try_get(0)?;
    let (seconds, name): (i64, String) = (row.try_get(1)?, row.try_get(2)?);
    let (width, measure) = (Width::of_seconds(seconds), Measure::named(&name));
    let begin_s = row.try_get(3)?;
    let path = crate::store::path_key::key(path);
    Ok(width.zip(measure).map(|(width, measure)| Place {
        path,
        width,
        measure,
        begin_s,
    }))
}

/// The four columns from this one on.
fn read(row: &Row, first: usize) -> Result<Rollup, Cause> {
    Ok(Rollup {
        n: row.try_get::<_, i64>(first)? as u64,
        sum_ln: row.try_get(first + 1)?,
        sum_ln2: row.try_get(first + 2)?,
        histogram: Histogram::from_bytes(row.try_get(first + 3)?),
    })
}

/// What the flows of all hosts to the prefix measured.
pub(super) async fn history(
    client: &Client,
    prefix: IpNet,
    width: Width,
    (since_us, until_us): (i64, i64),
) -> Result<History, Cause> {
    let path = path_of(prefix.network());
    let is_of_path = prefix.prefix_len() >= path.prefix_len();
    let wanted = if is_of_path { path } else { prefix };
    // Addresses are in order: those of a prefix are a range of the table's key.
    let of_prefix = match is_of_path {
        true => "path = $1",
        false => "path BETWEEN $1 AND $2",
    };
    let sql = format!(
        "SELECT path, width_s, measure, begin_s, n, sum_ln, sum_ln2, histogram FROM rollup \
         WHERE {of_prefix} AND $2::inet IS NOT NULL AND width_s = $3 AND begin_s >= $4 AND begin_s < $5"
    );
    let (first, last) = (wanted.network(), wanted.broadcast());
    let since_s = since_us.div_euclid(1_000_000);
    let first_s = since_s - since_s.rem_euclid(width.seconds());
    let until_s = until_us.div_euclid(1_000_000);
    let rows = client
        .query(&sql, &[&first, &last, &width.seconds(), &first_s, &until_s])
        .await?;
    let mut history = History::new();
    for row in rows {
        if let Some(place) = place(&row)? {
            let at = (place.begin_s, place.measure);
            history.entry(at).or_default().merge(&read(&row, 4)?);
        }
    }
    Ok(history)
}

/// Those that are older than they are kept.
pub(super) async fn remove_old(client: &mut Client, now_us: i64) -> Result<(), Cause> {
    let transaction = writing(client).await?;
    for width in Width::ALL {
        let oldest_s = now_us / 1_000_000 - width.kept_days() * 86_400;
        for sql in [REMOVE, REMOVED] {
            transaction
                .execute(sql, &[&width.seconds(), &oldest_s])
                .await?;
        }
    }
    Ok(transaction.commit().await?)
}
