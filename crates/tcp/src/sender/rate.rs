// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sender whose law goes by samples of the delivery rate: it sets the window and the pace at every
//! acknowledgement, in recovery too, where a Linux host leaves them to `cong_control`.

use fatpath_cc::{Kind, RateControl, RateSample, Window};

use super::{Sender, State};
use crate::TcpSpec;
use crate::arrivals::Arrivals;
use crate::delivery_rate::{AtSending, DeliveryRate, Sample};

/// What a law begins again with at least, segments: RFC 6928.
const LEAST_AGAIN_PKTS: u32 = 10;
/// With a round trip longer than the least by no more than this part of it, and by no more than this time, a loss came
/// without a queue: less than a queue holds that drops (5 ms of CoDel, RFC 8289, 4.3), and more than batches of segments and
/// of acknowledgements add.
const STRAY_RTT_PART: u64 = 16;
const STRAY_RTT_US: u64 = 2000;
/// The parameter of a law from which part of what was in flight on losses are many: where BBR takes them for congestion
/// (draft-ietf-ccwg-bbr-06, 2.7).
const MANY_LOST: &str = "loss_thresh";

/// A flow under such a law.
#[derive(Debug)]
pub(super) struct RateFlow {
    control: RateControl,
    /// What this acknowledgement measured; 0: nothing.
    rtt_us: u32,
    most_rtt_us: u32,
    /// What was known before it.
    prior_in_flight_pkts: u32,
    prior_lost_pkts: u64,
    knows_sending: bool,
    /// Of 1000 segments in flight, so many lost ones are many; `None`: the law is told of all losses.
    many_lost_milli: Option<u64>,
}

/// The samples that a flow's control needs; none under a window law.
pub(super) fn delivery_rate_of(spec: &TcpSpec) -> Option<Box<DeliveryRate>> {
    let is_sampled = spec.rude.is_some() || spec.law.spec().kind == Kind::Rate;
    is_sampled.then(Box::default)
}

impl RateFlow {
    pub(super) fn new(
        spec: &TcpSpec,
        window: &mut Window,
        rtt_ns: u64,
        now_ns: u64,
    ) -> Option<Box<RateFlow>> {
        if spec.law.spec().kind != Kind::Rate {
            return None;
        }
        let now = RateSample {
            now_us: now_ns / 1000,
            srtt_us: (rtt_ns / 1000) as u32,
            mss_bytes: spec.mss_bytes,
            ..RateSample::default()
        };
        let mut control = RateControl::new(spec.law, window.cwnd_pkts, window.clamp_pkts, &now);
        if !control.makes_way(&spec.start.known, &now) {
            control.start_at(spec.start.initial_rate_bps, &now);
        }
        window.cwnd_pkts = control.cwnd_pkts();
        Some(Box::new(RateFlow {
            control,
            rtt_us: 0,
            most_rtt_us: 0,
            prior_in_flight_pkts: 0,
            prior_lost_pkts: 0,
            knows_sending: spec.knows_sending,
            many_lost_milli: (spec.tells_losses_apart)
                .then(|| (1000.0 * spec.law.number(MANY_LOST)).round() as u64),
        }))
    }

    pub(super) fn note_rtt(&mut self, rtt_us: u32) {
        self.rtt_us = rtt_us;
        self.most_rtt_us = self.most_rtt_us.max(rtt_us);
    }

    /// What it may send, bytes a second.
    pub(super) fn pacing_bytes_per_s(&self) -> u64 {
        self.control.pacing_bytes_per_s()
    }
}

impl Sender {
    /// Its window is a window law's: reduced in recovery, raised outside of it.
    pub(super) fn has_window_law(&self) -> bool {
        self.rate_flow.is_none() && !self.is_rude()
    }

    /// An acknowledgement arrives; nothing of it has been learned yet.
    pub(super) fn note_before_ack(&mut self) {
        let (in_flight, lost) = (self.board.in_flight(), self.board.ever_lost_pkts());
        if let Some(flow) = &mut self.rate_flow {
            (flow.prior_in_flight_pkts, flow.prior_lost_pkts) = (in_flight, lost);
        }
    }

    /// The sample that an acknowledgement gives (`tcp_rate_gen`).
    pub(super) fn sample_rate(&mut self, arrivals: &Arrivals) -> Sample {
        let delivered_pkts = self.figures.delivered_pkts;
        let (una, min_rtt_ns) = (self.board.una(), self.rtt.min_rtt_ns());
        let rate = self.delivery_rate.as_mut();
        rate.map_or_else(Sample::default, |rate| {
            rate.acknowledged(arrivals, delivered_pkts, una, min_rtt_ns)
        })
    }

    /// Segments are of quite another size from now on: what the law learned in segments does not hold.
    pub(super) fn begin_rate_again(&mut self, now_ns: u64, are_shorter: bool) {
        if let Some(rate) = &mut self.delivery_rate {
            rate.resize_segments(self.board.next());
        }
        let (now, window) = (self.rate_now(now_ns), &mut self.window);
        if let Some(flow) = &mut self.rate_flow {
            flow.control.set_cwnd_pkts(window.cwnd_pkts);
            flow.control.end_start();
            window.cwnd_pkts = flow.control.cwnd_pkts();
            // After a timeout it may be one segment, which is no window to begin with.
            if are_shorter {
                let least_pkts = LEAST_AGAIN_PKTS.min(window.clamp_pkts);
                window.cwnd_pkts = window.cwnd_pkts.max(least_pkts);
            }
            let law = flow.control.law();
            flow.control = RateControl::new(law, window.cwnd_pkts, window.clamp_pkts, &now);
            self.pacer.set_rate(Some(flow.pacing_bytes_per_s()));
        }
    }

    /// An acknowledgement, in the place of `tcp_cong_control`.
    pub(super) fn steer_by_rate(&mut self, arrivals: &Arrivals) {
        let sample = self.sample_rate(arrivals);
        let now = self.rate_sample(arrivals, &sample);
        let cwnd_pkts = self.window.cwnd_pkts;
        if let Some(flow) = &mut self.rate_flow {
            flow.control.set_cwnd_pkts(cwnd_pkts);
            flow.control.acked(&now);
            self.window.cwnd_pkts = flow.control.cwnd_pkts();
            self.pacer.set_rate(Some(flow.pacing_bytes_per_s()));
        }
    }

    fn rate_sample(&self, arrivals: &Arrivals, sample: &Sample) -> RateSample {
        let now = self.rate_now(arrivals.now_ns);
        let Some(flow) = &self.rate_flow else {
            return now;
        };
        let is_limited = sample.is_app_limited;
        let flags = self.rate_flags()
            | if is_limited {
                RateSample::APP_LIMITED
            } else {
                0
            };
        let (tx_in_flight_pkts, lost_since_sent_pkts) = match flow.knows_sending {
            true => self.since_sending(sample),
            false => (0, 0),
        };
        let newly_lost_pkts = match self.lost_astray(flow, sample) {
            true => 0,
            false => self.board.ever_lost_pkts() - flow.prior_lost_pkts,
        };
        RateSample {
            prior_delivered_pkts: sample.prior_delivered_pkts as u32,
            interval_us: u32::try_from(sample.interval_ns.div_ceil(1000)).unwrap_or(u32::MAX),
            sampled_pkts: sample.delivered_pkts as u32,
            acked_pkts: arrivals.delivered_pkts,
            newly_lost_pkts: newly_lost_pkts as u32,
            rtt_us: flow.rtt_us,
            prior_in_flight_pkts: flow.prior_in_flight_pkts,
            tx_in_flight_pkts,
            lost_since_sent_pkts,
            flags,
            ..now
        }
    }

    /// What is found lost, if anything is, came without a queue: it left shortly before what was measured. Not where the
    /// least round trip may be that of a queue that others keep full, since no longer one was seen; not where the law would
    /// learn of more than it sends, for a bound that an earlier loss left too low goes up with the next one.
    fn lost_astray(&self, flow: &RateFlow, sample: &Sample) -> bool {
        let Some(many_lost_milli) = flow.many_lost_milli else {
            return false;
        };
        let (in_flight_pkts, lost_pkts) = self.since_sending(sample);
        let is_marked = self.figures.marked_pkts > sample.at_sending.marked_pkts;
        let many_lost_pkts = (u64::from(in_flight_pkts) * many_lost_milli).div_ceil(1000);
        let least_us = self.rtt.min_rtt_ns() / 1000;
        let without_queue_us = least_us + (least_us / STRAY_RTT_PART).min(STRAY_RTT_US);
        flow.rtt_us > 0
            && u64::from(flow.rtt_us) <= without_queue_us
            && u64::from(flow.most_rtt_us) > without_queue_us
            && !is_marked
            && u64::from(lost_pkts) < many_lost_pkts
            && sample.bytes_per_s(self.mss_bytes) < flow.control.pacing_bytes_per_s()
    }

    /// In flight when the sampled segment left, and found lost since.
    fn since_sending(&self, sample: &Sample) -> (u32, u32) {
        let at_sending = &sample.at_sending;
        let lost_pkts = self.board.ever_lost_pkts() - at_sending.lost_pkts;
        (at_sending.in_flight_pkts, lost_pkts as u32)
    }

    /// How the flow stands, without what an acknowledgement tells.
    fn rate_now(&self, now_ns: u64) -> RateSample {
        RateSample {
            now_us: now_ns / 1000,
            delivered_pkts: self.figures.delivered_pkts as u32,
            lost_pkts: self.board.ever_lost_pkts() as u32,
            ce_pkts: self.figures.marked_pkts as u32,
            srtt_us: self.rtt.srtt_us() as u32,
            mss_bytes: self.mss_bytes,
            in_flight_pkts: self.board.in_flight(),
            ..RateSample::default()
        }
    }

    fn rate_flags(&self) -> u32 {
        let of_state = match self.state {
            State::Recovery => RateSample::RECOVERS,
            State::Loss => RateSample::TIMED_OUT,
            State::Open | State::Disorder | State::Cwr => 0,
        };
        match self.usage.is_limiting() {
            true => of_state | RateSample::CWND_LIMITED,
            false => of_state,
        }
    }

    /// A segment is about to leave with nothing in flight (CA_EVENT_TX_START).
    pub(super) fn begin_rate_transmission(&mut self, now_ns: u64) {
        if self.board.in_flight() > 0 {
            return;
        }
        let is_limited = self.delivery_rate.as_ref();
        let is_limited = is_limited.is_some_and(|rate| rate.is_held_by_program());
        let now = RateSample {
            flags: if is_limited {
                RateSample::APP_LIMITED
            } else {
                0
            },
            ..self.rate_now(now_ns)
        };
        let cwnd_pkts = self.window.cwnd_pkts;
        if let Some(flow) = &mut self.rate_flow {
            flow.control.set_cwnd_pkts(cwnd_pkts);
            flow.control.transmission_starts(&now);
            self.window.cwnd_pkts = flow.control.cwnd_pkts();
            self.pacer.set_rate(Some(flow.pacing_bytes_per_s()));
        }
    }

    /// A congestion event, where Linux asks for the threshold; it stays.
    pub(super) fn begin_rate_recovery(&mut self) -> u32 {
        if let Some(flow) = &mut self.rate_flow {
            flow.control.set_cwnd_pkts(self.window.cwnd_pkts);
            flow.control.recovery_begins();
            self.window.cwnd_pkts = flow.control.cwnd_pkts();
        }
        self.window.ssthresh_pkts
    }

    /// The event was needless: the window of before.
    pub(super) fn undone_rate_cwnd_pkts(&mut self) -> u32 {
        let cwnd_pkts = self.window.cwnd_pkts;
        self.rate_flow.as_mut().map_or(cwnd_pkts, |flow| {
            flow.control.set_cwnd_pkts(cwnd_pkts);
            flow.control.undone();
            flow.control.cwnd_pkts()
        })
    }

    /// A segment leaves; its delivery will be a sample.
    pub(super) fn mark_sent(&mut self, now_ns: u64, number: u64, was_idle: bool) {
        let at_sending = AtSending {
            in_flight_pkts: self.board.in_flight(),
            lost_pkts: self.board.ever_lost_pkts(),
            marked_pkts: self.figures.marked_pkts,
        };
        if let Some(rate) = &mut self.delivery_rate {
            rate.sent(now_ns, number, was_idle, at_sending);
        }
    }

    /// A burst has left, and nothing but the program holds more back.
    pub(super) fn note_program_limits(&mut self) {
        let in_flight = self.board.in_flight();
        let has_more = self.has_unsent() || in_flight >= self.window.cwnd_pkts;
        if let Some(rate) = self.delivery_rate.as_mut().filter(|_| !has_more)
            && self.board.next_lost().is_none()
        {
            rate.program_limits(in_flight);
        }
    }
}
