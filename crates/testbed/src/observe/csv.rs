// SPDX-License-Identifier: MIT OR Apache-2.0
//! An observation as CSV: a line for each direction and interval, or for each flow in it.
//!
//! Lines are written as they come, so the file may be larger than memory. Packets are segments; a
//! super-packet counts as many. Start with [`Lines`].

use std::io::{self, Write};

use fatpath_link::{Count, DropCause};
use fatpath_observation::{Bin, Header};

/// Writes bins as lines.
pub(super) struct Lines<'h, W: Write> {
    header: &'h Header,
    bin_s: f64,
    flows: bool,
    writer: csv::Writer<W>,
}

impl<'h, W: Write> Lines<'h, W> {
    /// Writes the head. With `flows` there is a line for each flow of a bin instead of one for all.
    pub(super) fn new(
        out: W,
        header: &'h Header,
        bin_s: f64,
        flows: bool,
    ) -> io::Result<Lines<'h, W>> {
        let mut writer = csv::Writer::from_writer(out);
        let mut head: Vec<String> = ["link", "from", "to", "start_s"].map(str::to_owned).into();
        if flows {
            head.push("flow".into());
        }
        for count in ["arrived", "left"] {
            head.extend([format!("{count}_packets"), format!("{count}_bytes")]);
        }
        head.push("left_mbps".into());
        if !flows {
            head.push("peak_queue_bytes".into());
            let causes = DropCause::ALL.iter();
            head.extend(causes.map(|cause| format!("dropped_{}_packets", cause.name())));
            let effects = ["marked", "duplicated", "corrupted", "fragmented"];
            head.extend(effects.map(|effect| format!("{effect}_packets")));
        }
        writer.write_record(&head)?;
        Ok(Lines {
            header,
            bin_s,
            flows,
            writer,
        })
    }

    /// Writes the line of a bin, or those of its flows.
    pub(super) fn write(&mut self, bin: &Bin) -> io::Result<()> {
        if self.flows {
            let mut flows = bin.flows.iter();
            return flows.try_for_each(|(name, [arrived, left])| {
                let mut line = self.begin(bin);
                line.push(name.clone());
                self.passed(&mut line, *arrived, *left);
                Ok(self.writer.write_record(&line)?)
            });
        }
        let mut line = self.begin(bin);
        self.passed(&mut line, bin.arrived, bin.left);
        line.push(bin.peak_queue_bytes.to_string());
        let effects = [bin.marked, bin.duplicated, bin.corrupted, bin.fragmented];
        let counts = bin.dropped.iter().chain(&effects);
        line.extend(counts.map(|count| count.packets.to_string()));
        Ok(self.writer.write_record(&line)?)
    }

    /// Makes sure that all is written.
    pub(super) fn end(mut self) -> io::Result<()> {
        self.writer.flush()
    }

    fn begin(&self, bin: &Bin) -> Vec<String> {
        let name = &self.header.directions[bin.direction];
        let start_s = bin.index as f64 * self.bin_s;
        vec![
            name.link.clone(),
            name.from.clone(),
            name.to.clone(),
            format!("{start_s:.6}"),
        ]
    }

    fn passed(&self, line: &mut Vec<String>, arrived: Count, left: Count) {
        for count in [arrived, left] {
            line.extend([count.packets.to_string(), count.bytes.to_string()]);
        }
        let mbps = left.bytes as f64 * 8.0 / self.bin_s / 1e6;
        line.push(format!("{mbps:.3}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_observation::DirectionName;

    #[test]
    fn a_bin_is_a_line_and_a_flow_of_it_another() {
        let header = Header {
            interval_ns: 1_000_000,
            begun_unix_ns: 0,
            directions: vec![DirectionName {
                link: "wan".into(),
                from: "a".into(),
                to: "b".into(),
            }],
            per_flow: true,
        };
        let left = Count {
            packets: 2,
            bytes: 3000,
        };
        let mut bin = Bin {
            index: 5,
            left,
            peak_queue_bytes: 1500,
            ..Bin::default()
        };
        bin.dropped[0].packets = 4;
        bin.flows
            .insert("udp 1 > 2".into(), [Count::default(), left]);
        let text = |flows| {
            let mut out = vec![];
            let mut lines = Lines::new(&mut out, &header, 0.001, flows).unwrap();
            lines.write(&bin).unwrap();
            lines.end().unwrap();
            String::from_utf8(out).unwrap()
        };
        insta::assert_snapshot!(text(false), @r"
        link,from,to,start_s,arrived_packets,arrived_bytes,left_packets,left_bytes,left_mbps,peak_queue_bytes,dropped_queue_full_packets,dropped_early_packets,dropped_loss_packets,dropped_too_big_packets,dropped_policed_packets,marked_packets,duplicated_packets,corrupted_packets,fragmented_packets
        wan,a,b,0.005000,0,0,2,3000,24.000,1500,4,0,0,0,0,0,0,0,0
        ");
        insta::assert_snapshot!(text(true), @r"
        link,from,to,start_s,flow,arrived_packets,arrived_bytes,left_packets,left_bytes,left_mbps
        wan,a,b,0.005000,udp 1 > 2,0,0,2,3000,24.000
        ");
    }
}
