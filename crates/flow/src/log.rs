// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happens to a connection of the transport, as a trace: the Parquet files of `fatpath trace`, which
//! `fatpath trace plot` draws.
//!
//! A row at each loss, timeout and reduction of the window, and else when the window or the round-trip time has changed, once
//! a millisecond at most. Start with [`Log::begin`].

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fatpath_api::{Flow, Sample, SampleKind};
use fatpath_record::{Bounds, RecordError, Recorder, Row, dated};
use fatpath_tcp::SenderFigures;

/// What happens all the time is noted as often.
const EVERY: Duration = Duration::from_millis(1);

/// A connection, for people and tables.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Among those that are logged together, from 1.
    pub number: u64,
    /// This end, and the other.
    pub ends: [SocketAddr; 2],
    /// By its name.
    pub law: String,
    /// Data of a full segment.
    pub mss_bytes: u32,
}

/// The rows of one connection, or of several that are told of as one.
pub struct Log {
    recorder: Recorder,
    connection: Connection,
    begun_us: i64,
    last: Option<(Duration, SenderFigures)>,
}

impl Log {
    /// Files of `folder`, which is made when it is not there.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn begin(folder: &Path, connection: Connection) -> Result<Log, RecordError> {
        let now = SystemTime::now();
        let name = format!("{}-{}", dated("flow-", now), connection.number);
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Log {
            recorder: Recorder::begin(folder, &name, Bounds::default())?,
            connection,
            begun_us: since.as_micros() as i64,
            last: None,
        })
    }

    /// How the connection stands, so long after it began.
    pub fn note(&mut self, after: Duration, figures: &SenderFigures) {
        let kind = match &self.last {
            None => SampleKind::Begin,
            Some((at, before)) => match happened(before, figures) {
                SampleKind::Interval if after < *at + EVERY || before == figures => return,
                kind => kind,
            },
        };
        self.put(kind, after, figures);
        self.last = Some((after, *figures));
    }

    /// How it ended; the last file is whole then.
    ///
    /// # Errors
    /// The disk did not take all.
    pub fn end(mut self, after: Duration, figures: &SenderFigures) -> Result<(), RecordError> {
        self.put(SampleKind::End, after, figures);
        self.recorder.finish().map(drop)
    }

    fn put(&mut self, kind: SampleKind, after: Duration, figures: &SenderFigures) {
        let time_us = self.begun_us + after.as_micros() as i64;
        let sample = sample(&self.connection, kind, after, figures);
        self.recorder.take(Row { time_us, sample });
    }
}

/// What is worst of what happened since.
fn happened(before: &SenderFigures, now: &SenderFigures) -> SampleKind {
    match () {
        () if now.timeouts > before.timeouts => SampleKind::Timeout,
        () if now.congestion_events > before.congestion_events => SampleKind::Congestion,
        () if now.retransmits > before.retransmits => SampleKind::Retransmission,
        () if now.undone_events > before.undone_events => SampleKind::State,
        () => SampleKind::Interval,
    }
}

fn sample(
    connection: &Connection,
    kind: SampleKind,
    after: Duration,
    figures: &SenderFigures,
) -> Sample {
    let [local, remote] = connection.ends;
    let flow = Flow {
        cookie: connection.number,
        local,
        remote,
        netns: 0,
        cgroup_id: 0,
        rule_id: None,
        is_passive: false,
        is_adopted: false,
    };
    let mss = u64::from(connection.mss_bytes);
    let narrow = |wide: u64| u32::try_from(wide).unwrap_or(u32::MAX);
    Sample {
        now_ns: after.as_nanos() as u64,
        is_tracked: true,
        law: connection.law.as_str().into(),
        segs_out: figures.sent_pkts,
        data_segs_out: figures.sent_pkts,
        bytes_sent: figures.sent_pkts * mss,
        segs_retrans: figures.retransmits,
        bytes_retrans: figures.retransmits * mss,
        bytes_acked: figures.acked_bytes,
        delivered_pkts: figures.delivered_pkts,
        delivered_ce_pkts: figures.marked_pkts,
        cong_signals: narrow(figures.congestion_events),
        timeouts: narrow(figures.timeouts),
        srtt_us: figures.srtt_us,
        min_rtt_us: (figures.min_rtt_us > 0).then_some(figures.min_rtt_us),
        rto_us: narrow(figures.rto_us),
        mss_bytes: connection.mss_bytes,
        dsack_dups: narrow(figures.duplicates_told),
        reordering_pkts: figures.reordering_pkts,
        cwnd_pkts: figures.cwnd_pkts,
        ssthresh_pkts: (figures.ssthresh_pkts < NO_SSTHRESH_PKTS).then_some(figures.ssthresh_pkts),
        packets_out: figures.in_flight_pkts,
        peer_window_bytes: narrow(figures.peer_window_bytes),
        ..Sample::unknown(kind, flow)
    }
}

/// Far above every window: it was never set.
const NO_SSTHRESH_PKTS: u32 = 1 << 30;

#[cfg(test)]
mod tests {
    use fatpath_record::read;

    use super::*;

    #[test]
    fn events_and_changes_are_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let connection = Connection {
            number: 3,
            ends: [
                "127.0.0.1:1".parse().unwrap(),
                "127.0.0.1:2".parse().unwrap(),
            ],
            law: "fp_cubic".to_owned(),
            mss_bytes: 1418,
        };
        let mut log = Log::begin(folder.path(), connection).unwrap();
        let mut figures = SenderFigures {
            cwnd_pkts: 10,
            ssthresh_pkts: u32::MAX,
            ..SenderFigures::default()
        };
        let us = Duration::from_micros;
        log.note(us(0), &figures);
        log.note(us(5000), &figures); // nothing has changed
        figures.cwnd_pkts = 20;
        log.note(us(6000), &figures);
        figures.cwnd_pkts = 21;
        log.note(us(6500), &figures); // too soon
        (figures.cwnd_pkts, figures.ssthresh_pkts) = (10, 10);
        (figures.congestion_events, figures.retransmits) = (1, 1);
        log.note(us(6600), &figures);
        log.end(us(9000), &figures).unwrap();
        let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(files.len(), 1);
        let flows = read(&files[0].as_ref().unwrap().path()).unwrap();
        let [flow] = &flows[..] else {
            panic!("{flows:?}")
        };
        assert_eq!((flow.cookie, flow.law.as_str()), (3, "fp_cubic"));
        let windows: Vec<_> = (flow.points.iter())
            .map(|point| (point.cwnd_pkts, point.ssthresh_pkts))
            .collect();
        let reduced = (10, Some(10));
        assert_eq!(windows, [(10, None), (20, None), reduced, reduced]);
        assert_eq!(flow.congestion_s, [0.0066]);
    }
}
