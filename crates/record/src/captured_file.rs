// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file of a capture's connections, written while they end: memory does not grow with their number.

use crate::RecordError;
use crate::captured::CapturedRow;
use crate::part::{Part, discard};
use fatpath_capture::Connection;
use std::path::Path;

/// Two rows a connection, of about 1 kB each.
const GROUP_ROWS: usize = 16_384;

/// Begun, and not finished.
pub struct CapturedFile {
    part: Part<CapturedRow>,
    rows: Vec<CapturedRow>,
    has_group: bool,
}

impl CapturedFile {
    /// Begins `path.part`, which becomes `path` when it is finished; what was there before is replaced then.
    ///
    /// # Errors
    /// When the file cannot be made, as when another program writes it.
    pub fn begin(path: &Path) -> Result<CapturedFile, RecordError> {
        discard(path);
        Ok(CapturedFile {
            part: Part::begin(path.to_path_buf())?,
            rows: Vec::new(),
            has_group: false,
        })
    }

    /// Adds a connection: two rows.
    ///
    /// # Errors
    /// When the disk does not take them.
    pub fn take(&mut self, connection: Connection) -> Result<(), RecordError> {
        self.rows.extend(CapturedRow::both(connection));
        match self.rows.len() >= GROUP_ROWS {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), RecordError> {
        self.has_group = true;
        self.part.add(&std::mem::take(&mut self.rows))
    }

    /// Finishes the file, also one without rows; answers its bytes.
    ///
    /// # Errors
    /// When the disk does not take what is left.
    pub fn finish(mut self) -> Result<u64, RecordError> {
        if !self.rows.is_empty() || !self.has_group {
            self.flush()?;
        }
        self.part.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_capture::{Analysis, Ecn, End, Limits, Options, Segment, flag};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::{Field, Row};
    use std::collections::BTreeMap;
    use std::fs::File;

    /// So many connections, each with three segments of 1,000 bytes, of which one is sent twice.
    fn connections(count: u16) -> Vec<Connection> {
        let mut analysis = Analysis::new(Limits::default());
        for port in 1..=count {
            for (ms, number) in [(0, 0), (1, 1), (2, 2), (400, 2)] {
                analysis.take_segment(&Segment {
                    time_ns: ms * 1_000_000,
                    source: End::new("10.0.0.1".parse().unwrap(), port),
                    destination: End::new("2001:db8::1".parse().unwrap(), 443),
                    seq: 1 + number * 1000,
                    ack: 1,
                    flags: flag::ACK,
                    window: 1000,
                    payload_bytes: 1000,
                    ip_id: None,
                    ecn: Ecn::NotCapable,
                    options: Options::default(),
                });
            }
        }
        analysis.finish().0
    }

    fn rows(path: &Path) -> Vec<BTreeMap<String, Field>> {
        let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        let named = |row: Row| row.into_columns().into_iter().collect();
        let rows = reader.get_row_iter(None).unwrap();
        rows.map(|row| named(row.unwrap())).collect()
    }

    #[test]
    fn rows_say_what_the_report_says_also_beyond_one_group() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("connections.parquet");
        let all = connections(9000);
        let mut file = CapturedFile::begin(&path).unwrap();
        all.iter().for_each(|one| file.take(one.clone()).unwrap());
        let bytes = file.finish().unwrap();
        assert_eq!(bytes, path.metadata().unwrap().len());
        let rows = rows(&path);
        assert_eq!(rows.len(), 18_000);
        for (pair, one) in rows.chunks(2).zip(&all) {
            let [client, server] = pair else { panic!() };
            let port = i64::from(one.client.socket().port());
            assert_eq!(client["client_port"], Field::Long(port));
            assert_eq!(client["from"], Field::Str("client".to_owned()));
            assert_eq!(server["from"], Field::Str("server".to_owned()));
            let way = &one.from_client;
            assert_eq!(way.unique_bytes, 3000);
            assert_eq!(client["unique_bytes"], Field::Long(3000));
            assert_eq!(server["unique_bytes"], Field::Long(0));
            let timeouts = way.retransmissions.unclear as i64;
            assert_eq!(client["retransmissions_unclear"], Field::Long(timeouts));
            assert_eq!(client["duration_us"], Field::Double(400_000.0));
            assert_eq!(client["handshake_rtt_us"], Field::Null);
            assert_eq!(client["rtt_median_us"], Field::Null);
        }
    }

    #[test]
    fn a_file_without_rows_has_its_columns_and_what_was_left_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("none.parquet");
        drop(CapturedFile::begin(&path).unwrap());
        assert!(dir.path().join("none.parquet.part").exists());
        let file = CapturedFile::begin(&path).unwrap();
        let other = CapturedFile::begin(&path);
        assert!(other.is_err(), "two programs write it");
        file.finish().unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let metadata = reader.metadata().file_metadata();
        assert_eq!(metadata.num_rows(), 0);
        assert!(metadata.schema_descr().num_columns() > 60);
        assert_eq!(dir.path().read_dir().unwrap().count(), 1, "nothing is left");
    }
}
