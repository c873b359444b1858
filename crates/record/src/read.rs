// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file's flows as series of points, for figures.

use crate::RecordError;
use crate::part::{of_file, of_parquet};
use fatpath_api::Point;
use parquet::column::reader::ColumnReader;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use std::collections::BTreeMap;
use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// A rate is that of at least this long: the tracer of the WAD looked every 0.1 s, and over a few
/// acknowledgements there is no rate.
const RATE_SPAN_S: f64 = 0.1;

/// One flow of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traced {
    /// Its cookie.
    pub cookie: u64,
    /// Both ends, this host's first; none where a file of somebody else has something else there.
    pub ends: Option<[SocketAddr; 2]>,
    /// When `t_s` of its points is 0, µs since 1970.
    pub begin_us: i64,
    /// Data of a full segment, of its last row.
    pub mss_bytes: u32,
    /// Local end, `ADDRESS PORT`.
    pub local: String,
    /// The other end.
    pub remote: String,
    /// The law of its last row.
    pub law: String,
    /// In the order of time.
    pub points: Vec<Point>,
    /// Seconds since the begin at which the window was reduced.
    pub congestion_s: Vec<f64>,
}

/// The flows of a finished file, by cookie.
///
/// # Errors
/// When it cannot be read, or is no trace.
pub fn read(path: &Path) -> Result<Vec<Traced>, RecordError> {
    let file = File::open(path).map_err(|error| of_file(path, error))?;
    let reader = SerializedFileReader::new(file).map_err(|error| of_parquet(path, error))?;
    let mut flows = Flows::default();
    for index in 0..reader.num_row_groups() {
        let group = reader.get_row_group(index);
        let group = group.map_err(|error| of_parquet(path, error))?;
        flows.take(&Group { path, group })?;
    }
    Ok(flows.0.into_values().map(|growing| growing.flow).collect())
}

/// Columns of a row group.
struct Group<'p> {
    path: &'p Path,
    group: Box<dyn RowGroupReader + 'p>,
}

impl Group<'_> {
    fn rows(&self) -> usize {
        self.group.metadata().num_rows() as usize
    }

    fn column(&self, name: &'static str) -> Result<ColumnReader, RecordError> {
        let columns = self.group.metadata().columns();
        let place = columns
            .iter()
            .position(|c| c.column_path().string() == name);
        let Some(place) = place else {
            let file = self.path.display().to_string();
            return Err(RecordError::NoColumn(file, name));
        };
        let reader = self.group.get_column_reader(place);
        reader.map_err(|error| of_parquet(self.path, error))
    }

    fn whole(&self, name: &'static str) -> Result<Vec<i64>, RecordError> {
        let values = self.maybe(name)?;
        Ok(values.into_iter().map(Option::unwrap_or_default).collect())
    }

    fn maybe(&self, name: &'static str) -> Result<Vec<Option<i64>>, RecordError> {
        let ColumnReader::Int64ColumnReader(mut reader) = self.column(name)? else {
            return Err(self.other_type(name));
        };
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        let read = reader.read_records(self.rows(), Some(&mut levels), None, &mut values);
        read.map_err(|error| of_parquet(self.path, error))?;
        if levels.is_empty() {
            return Ok(values.into_iter().map(Some).collect());
        }
        let mut values = values.into_iter();
        let levels = levels.into_iter();
        Ok(levels
            .map(|is| (is > 0).then(|| values.next()).flatten())
            .collect())
    }

    fn text(&self, name: &'static str) -> Result<Vec<String>, RecordError> {
        let ColumnReader::ByteArrayColumnReader(mut reader) = self.column(name)? else {
            return Err(self.other_type(name));
        };
        let mut values = Vec::new();
        let read = reader.read_records(self.rows(), None, None, &mut values);
        read.map_err(|error| of_parquet(self.path, error))?;
        let text = |bytes: parquet::data_type::ByteArray| {
            String::from_utf8_lossy(bytes.data()).into_owned()
        };
        Ok(values.into_iter().map(text).collect())
    }

    fn other_type(&self, name: &str) -> RecordError {
        let error = ParquetError::General(format!("the column {name} has another type"));
        of_parquet(self.path, error)
    }
}

/// Flows, and what the next point needs of the one before.
#[derive(Default)]
struct Flows(BTreeMap<i64, Growing>);

#[derive(Default)]
struct Growing {
    flow: Traced,
    /// Seconds and bytes of its first row: fatpath may have met it late, with many bytes moved.
    first: Option<(f64, i64)>,
    /// Seconds and bytes where the present rate's span begins.
    mark: Option<(f64, i64)>,
    rate_bps: f64,
    segs_retrans: Option<i64>,
    cong_signals: Option<i64>,
}

impl Flows {
    fn take(&mut self, group: &Group) -> Result<(), RecordError> {
        let texts = |name| group.text(name);
        let (local, local_port) = (texts("local_address")?, group.whole("local_port")?);
        let (remote, remote_port) = (texts("remote_address")?, group.whole("remote_port")?);
        let (law, cookies) = (texts("law")?, group.whole("cookie")?);
        let (times, mss) = (group.whole("time_us")?, group.whole("mss_bytes")?);
        let columns = Columns::of(group)?;
        for (row, cookie) in cookies.iter().enumerate() {
            let growing = self.0.entry(*cookie).or_insert_with(|| Growing {
                flow: Traced {
                    cookie: *cookie as u64,
                    ends: end(&local[row], local_port[row])
                        .zip(end(&remote[row], remote_port[row]))
                        .map(|(local, remote)| [local, remote]),
                    begin_us: times[row].saturating_sub(columns.elapsed_us[row]),
                    local: format!("{} {}", local[row], local_port[row]),
                    remote: format!("{} {}", remote[row], remote_port[row]),
                    ..Traced::default()
                },
                ..Growing::default()
            });
            growing.flow.law.clone_from(&law[row]);
            growing.flow.mss_bytes = mss[row] as u32;
            growing.take(&columns, row);
        }
        Ok(())
    }
}

fn end(address: &str, port: i64) -> Option<SocketAddr> {
    let address: IpAddr = address.parse().ok()?;
    Some(SocketAddr::new(
        address.to_canonical(),
        port.try_into().ok()?,
    ))
}

/// What a point is made of.
struct Columns {
    elapsed_us: Vec<i64>,
    cwnd_pkts: Vec<i64>,
    ssthresh_pkts: Vec<Option<i64>>,
    srtt_us: Vec<i64>,
    rtt_us: Vec<Option<i64>>,
    in_flight_pkts: Vec<i64>,
    bytes_acked: Vec<i64>,
    bytes_received: Vec<i64>,
    segs_retrans: Vec<i64>,
    cong_signals: Vec<i64>,
}

impl Columns {
    fn of(group: &Group) -> Result<Columns, RecordError> {
        Ok(Columns {
            elapsed_us: group.whole("elapsed_us")?,
            cwnd_pkts: group.whole("cwnd_pkts")?,
            ssthresh_pkts: group.maybe("ssthresh_pkts")?,
            srtt_us: group.whole("srtt_us")?,
            rtt_us: group.maybe("rtt_us")?,
            in_flight_pkts: group.whole("in_flight_pkts")?,
            bytes_acked: group.whole("bytes_acked")?,
            bytes_received: group.whole("bytes_received")?,
            segs_retrans: group.whole("segs_retrans")?,
            cong_signals: group.whole("cong_signals")?,
        })
    }
}

impl Growing {
    fn take(&mut self, columns: &Columns, row: usize) {
        let t_s = columns.elapsed_us[row] as f64 / 1e6;
        let bytes = columns.bytes_acked[row].max(columns.bytes_received[row]);
        let (first_s, first_bytes) = *self.first.get_or_insert((t_s, bytes));
        self.follow_rate(t_s, bytes);
        let segs_retrans = columns.segs_retrans[row];
        let before = self.segs_retrans.replace(segs_retrans);
        let cong_signals = columns.cong_signals[row];
        let signals = self.cong_signals.replace(cong_signals);
        if signals.is_some_and(|before| before < cong_signals) {
            self.flow.congestion_s.push(t_s);
        }
        self.flow.points.push(Point {
            t_s,
            cwnd_pkts: columns.cwnd_pkts[row] as u32,
            ssthresh_pkts: columns.ssthresh_pkts[row].map(|pkts| pkts as u32),
            srtt_us: columns.srtt_us[row] as u32,
            rtt_us: columns.rtt_us[row].map(|us| us as u32),
            in_flight_pkts: columns.in_flight_pkts[row] as u32,
            rate_bps: self.rate_bps,
            average_bps: per_second(bytes - first_bytes, t_s - first_s),
            retransmitted_pkts: before.map_or(0, |before| (segs_retrans - before).max(0) as u64),
        });
    }

    fn follow_rate(&mut self, t_s: f64, bytes: i64) {
        let (begin_s, begin_bytes) = *self.mark.get_or_insert((t_s, bytes));
        if t_s - begin_s >= RATE_SPAN_S {
            self.rate_bps = per_second(bytes - begin_bytes, t_s - begin_s);
            self.mark = Some((t_s, bytes));
        }
    }
}

/// Bits a second; 0 over no time.
fn per_second(bytes: i64, span_s: f64) -> f64 {
    if span_s > 0.0 {
        bytes as f64 * 8.0 / span_s
    } else {
        0.0
    }
}
