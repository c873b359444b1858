// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds a transfer back. Each end keeps an account of its own time ([`sender`], [`receiver`]) and tells the other
//! ([`SenderTimes`], [`ReceiverTimes`]); [`LimitTimes`] puts both together. [`disk`] measures the disks at the beginning.
//!
//! It says nothing to anybody and ends no transfer. Only [`disk`] and [`hashing`] do I/O or read a clock by themselves; an
//! account has that of its thread. Start reading at [`LimitTimes::of`].

pub mod disk;
pub mod hashing;
pub mod receiver;
pub mod sender;
mod times;

use serde::Serialize;
pub use times::{DiskFigures, ReceiverTimes, SenderTimes};

/// What is not the most is said too when it has this share.
const MUCH: f64 = 0.2;

/// What holds a transfer back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Standard input, or the search for files.
    Source,
    /// Reading files.
    SenderDisk,
    /// The thread that reads, seals and sends.
    SenderProcessor,
    /// `--limit` or `--rate`.
    GivenRate,
    /// Congestion control, and round trips.
    Path,
    /// `--window`; by TCP the buffers of the kernels' sockets.
    Window,
    /// Writing and syncing files.
    ReceiverDisk,
    /// A thread that takes what arrives, writes or hashes it.
    ReceiverProcessor,
    /// Whoever reads standard output.
    Output,
}

/// For how long what held the transfer back, from the first data to the last answer, seconds: the sum is all of that time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LimitTimes {
    /// [`Limit::Source`].
    pub source: f64,
    /// [`Limit::SenderDisk`].
    pub sender_disk: f64,
    /// [`Limit::SenderProcessor`].
    pub sender_processor: f64,
    /// [`Limit::GivenRate`].
    pub given_rate: f64,
    /// [`Limit::Path`].
    pub path: f64,
    /// [`Limit::Window`].
    pub window: f64,
    /// [`Limit::ReceiverDisk`].
    pub receiver_disk: f64,
    /// [`Limit::ReceiverProcessor`].
    pub receiver_processor: f64,
    /// [`Limit::Output`].
    pub output: f64,
}

impl LimitTimes {
    /// Of what both ends tell; `by_tcp`: the kernel's TCP carried the data. `None`: no data went.
    pub fn of(sender: &SenderTimes, receiver: &ReceiverTimes, by_tcp: bool) -> Option<LimitTimes> {
        let behind = [
            s(receiver.disk_us),
            s(receiver.processor_us),
            s(receiver.output_us),
        ];
        let finishing = [s(receiver.finish_disk_us), s(receiver.finish_processor_us)];
        let behind_s: f64 = behind.iter().sum();
        let (closed_s, path_s) = (s(sender.receiver_us), s(sender.path_us));
        // By UDP the window tells what the receiver holds. The kernel's TCP does not say why it is closed, and not always that
        // it is; a receiver that takes no more fills both kernels' buffers.
        let (held_s, held_path_s) = match by_tcp {
            false if behind_s > 0.0 => (closed_s, 0.0),
            false => (0.0, 0.0),
            true => {
                let held_s = closed_s.min(behind_s);
                (held_s, path_s.min(behind_s - held_s))
            }
        };
        // An answer that nobody worked on was on its way.
        let answered_s = s(sender.answers_us).min(finishing.iter().sum());
        let [disk, processor, output] = divided(held_s + held_path_s, behind);
        let [finish_disk, finish_processor] = divided(answered_s, finishing);
        // What a thread that cannot keep up does not take is lost, or closes the kernel's window.
        let overrun_s = s(receiver.overrun_us);
        let (closed_s, path_s) = (closed_s - held_s, path_s - held_path_s);
        let closed_overrun_s = closed_s.min(overrun_s);
        let lost_overrun_s = path_s.min(overrun_s - closed_overrun_s);
        let times = LimitTimes {
            source: s(sender.source_us),
            sender_disk: s(sender.disk_us),
            sender_processor: s(sender.processor_us),
            given_rate: s(sender.rate_us),
            path: path_s - lost_overrun_s + s(sender.answers_us) - answered_s,
            window: s(sender.window_us) + closed_s - closed_overrun_s,
            receiver_disk: disk + finish_disk,
            receiver_processor: processor + finish_processor + closed_overrun_s + lost_overrun_s,
            output,
        };
        (times.total_s() > 0.0).then_some(times)
    }

    /// From the first data to the last answer.
    pub fn total_s(&self) -> f64 {
        self.all().iter().map(|(_, seconds)| seconds).sum()
    }

    /// What held it back for longest.
    pub fn most(&self) -> Limit {
        self.by_share()[0].0
    }

    /// For people: what held it back for longest, and what else did for long.
    pub fn sentence(&self, by_tcp: bool) -> String {
        let shares = self.by_share();
        let mut said = shares
            .iter()
            .enumerate()
            .filter(|(place, (_, share))| *place == 0 || *share >= MUCH)
            .map(|(_, (limit, share))| {
                format!("by {} {:.0} %", limit.words(by_tcp), 100.0 * share)
            });
        let first = said.next().unwrap_or_default();
        let others = said.map(|other| format!(", {other}"));
        format!(
            "held back {first} of the time{}",
            others.collect::<String>()
        )
    }

    /// Shares of the time, the largest first.
    fn by_share(&self) -> [(Limit, f64); 9] {
        let total_s = self.total_s();
        let mut all = self
            .all()
            .map(|(limit, seconds)| (limit, seconds / total_s));
        all.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        all
    }

    fn all(&self) -> [(Limit, f64); 9] {
        [
            (Limit::Source, self.source),
            (Limit::SenderDisk, self.sender_disk),
            (Limit::SenderProcessor, self.sender_processor),
            (Limit::GivenRate, self.given_rate),
            (Limit::Path, self.path),
            (Limit::Window, self.window),
            (Limit::ReceiverDisk, self.receiver_disk),
            (Limit::ReceiverProcessor, self.receiver_processor),
            (Limit::Output, self.output),
        ]
    }
}

impl Limit {
    fn words(self, by_tcp: bool) -> &'static str {
        match self {
            Limit::Source => "what was to be sent, which came late,",
            Limit::SenderDisk => "the sender's disk",
            Limit::SenderProcessor => "the sender's processor",
            Limit::GivenRate => "the rate that was given",
            Limit::Path => "the path",
            Limit::Window if by_tcp => "the kernel's socket buffers (tcp_wmem, tcp_rmem)",
            Limit::Window => "the window (--window)",
            Limit::ReceiverDisk => "the receiver's disk",
            Limit::ReceiverProcessor => "the receiver's processor",
            Limit::Output => "the reader of standard output",
        }
    }
}

/// Seconds.
fn s(us: u64) -> f64 {
    us as f64 / 1e6
}

/// In the proportion of `parts`; with none, all of it is the first's.
fn divided<const N: usize>(whole: f64, parts: [f64; N]) -> [f64; N] {
    let sum: f64 = parts.iter().sum();
    match sum > 0.0 {
        true => parts.map(|part| whole * part / sum),
        false => std::array::from_fn(|place| if place == 0 { whole } else { 0.0 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sender(of: [u64; 8]) -> SenderTimes {
        let [
            source_us,
            disk_us,
            processor_us,
            rate_us,
            path_us,
            window_us,
            receiver_us,
            answers_us,
        ] = of;
        SenderTimes {
            source_us,
            disk_us,
            processor_us,
            rate_us,
            path_us,
            window_us,
            receiver_us,
            answers_us,
        }
    }

    fn receiver(of: [u64; 6]) -> ReceiverTimes {
        let [
            disk_us,
            processor_us,
            output_us,
            finish_disk_us,
            finish_processor_us,
            overrun_us,
        ] = of;
        ReceiverTimes {
            disk_us,
            processor_us,
            output_us,
            finish_disk_us,
            finish_processor_us,
            overrun_us,
        }
    }

    proptest! {
        /// Whatever the ends tell: the sum is the sender's time, and nothing is less than nothing.
        #[test]
        fn the_shares_are_all_of_the_senders_time(
            (of_sender, of_receiver) in any::<([u64; 8], [u64; 6])>(),
            is_small in any::<bool>(),
            is_tcp in any::<bool>(),
        ) {
            let shift = if is_small { 30 } else { 0 };
            let (of_sender, of_receiver) = (of_sender.map(|us| us >> shift), of_receiver.map(|us| us >> shift));
            let total: f64 = of_sender.iter().map(|us| s(*us)).sum();
            let times = LimitTimes::of(&sender(of_sender), &receiver(of_receiver), is_tcp);
            prop_assert_eq!(times.is_some(), total > 0.0);
            if let Some(times) = times {
                prop_assert!((times.total_s() - total).abs() <= 1e-9 * total);
                prop_assert!(times.all().iter().all(|(_, seconds)| *seconds >= -1e-9 * total));
                let (most, share) = times.by_share()[0];
                prop_assert_eq!(most, times.most());
                prop_assert!(share >= 1.0 / 9.0 - 1e-9);
            }
        }
    }

    const S: u64 = 1_000_000;
    const UDP: bool = false;
    const TCP: bool = true;

    fn of(of_sender: [u64; 8], of_receiver: [u64; 6], by_tcp: bool) -> LimitTimes {
        let (sender, receiver) = (
            sender(of_sender.map(|seconds| seconds * S)),
            receiver(of_receiver.map(|seconds| seconds * S)),
        );
        LimitTimes::of(&sender, &receiver, by_tcp).unwrap_or_default()
    }

    #[test]
    fn what_the_receiver_holds_is_what_keeps_its_writer() {
        let receiver = [30, 10, 0, 0, 0, 0];
        let udp = of([0, 0, 1, 0, 1, 0, 8, 0], receiver, UDP);
        assert_eq!((udp.receiver_disk, udp.receiver_processor), (6.0, 2.0));
        let busy_for_less = of([0, 0, 1, 0, 1, 0, 8, 0], [3, 1, 0, 0, 0, 0], TCP);
        let divided = (
            busy_for_less.receiver_disk,
            busy_for_less.receiver_processor,
        );
        assert_eq!((divided, busy_for_less.window), ((3.0, 1.0), 4.0));
        let output = of([0, 0, 1, 0, 1, 0, 8, 0], [0, 0, 5, 0, 0, 0], UDP);
        assert_eq!(output.most(), Limit::Output);
    }

    /// Of which the kernel there does not always tell: what arrived is in its buffer.
    #[test]
    fn a_receiver_by_tcp_that_takes_no_more_is_no_path() {
        let receiver = [0, 0, 6, 0, 0, 0];
        let times = of([0, 0, 1, 0, 5, 0, 4, 0], receiver, TCP);
        assert_eq!((times.output, times.path), (6.0, 3.0));
        let times = of([0, 0, 1, 0, 9, 0, 0, 0], receiver, UDP);
        assert_eq!((times.output, times.path), (0.0, 9.0));
    }

    #[test]
    fn an_answer_that_nobody_works_on_is_on_its_way() {
        let times = of([0, 0, 0, 0, 1, 0, 0, 9], [0, 0, 0, 2, 1, 0], UDP);
        assert_eq!(times.path, 7.0);
        assert_eq!((times.receiver_disk, times.receiver_processor), (2.0, 1.0));
    }

    #[test]
    fn a_thread_that_cannot_keep_up_is_no_path() {
        let times = of([0, 0, 1, 0, 9, 0, 0, 0], [0, 0, 0, 0, 0, 8], UDP);
        assert_eq!((times.path, times.receiver_processor), (1.0, 8.0));
        let tcp = of([0, 0, 1, 0, 2, 0, 7, 0], [0, 0, 0, 0, 0, 8], TCP);
        assert_eq!(
            (tcp.path, tcp.window, tcp.receiver_processor),
            (1.0, 0.0, 8.0)
        );
    }

    #[test]
    fn people_read_what_held_it_back_for_longest() {
        let said = |times: LimitTimes| times.sentence(UDP);
        let path = of([0, 0, 7, 0, 93, 0, 0, 0], [0; 6], UDP);
        assert_eq!(said(path), "held back by the path 93 % of the time");
        let two = of([0, 60, 25, 0, 15, 0, 0, 0], [0; 6], UDP);
        assert_eq!(
            said(two),
            "held back by the sender's disk 60 % of the time, by the sender's processor 25 %"
        );
    }
}
