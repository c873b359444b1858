// SPDX-License-Identifier: MIT OR Apache-2.0
//! A flow's record in the units and words of RFC 4898 and of the policy file.

use crate::KernelError;
use crate::abi::{self, fp_flow_record};
use crate::load::{Kernel, LINK_LIST_FLOWS};
use crate::pod::{text_of, value_of};
use crate::rude::rude_flow;
use fatpath_api::{
    Flow, Limits, Measures, Opened, SettingOutcome, SettingReport, SettingValue, TunedFlow,
};
use fatpath_policy::OUR_PREFIX;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::OnceLock;

impl Kernel {
    /// The tuned flows of all network namespaces, now.
    ///
    /// # Errors
    /// When the iterator or the names of the rules cannot be read.
    pub fn flows(&self) -> Result<Vec<TunedFlow>, KernelError> {
        let names = self.rule_names()?;
        let written = self.iterate(LINK_LIST_FLOWS)?;
        let records = written.chunks_exact(size_of::<fp_flow_record>());
        Ok(records
            .filter_map(value_of)
            .map(|record| decode(&record, &names))
            .collect())
    }
}

pub(crate) fn decode(r: &fp_flow_record, names: &HashMap<u32, String>) -> TunedFlow {
    let duration_s = r.now_ns.saturating_sub(r.flow.seen_ns) as f64 / 1e9;
    TunedFlow {
        flow: identity(r),
        opened: opened(r.flow.flags),
        rule: names.get(&r.flow.rule_id).cloned(),
        duration_s,
        settings: settings(r),
        measures: measures(r, duration_s),
        limited: limits(r),
        rude: rude_flow(r),
        cgroup: None,
    }
}

fn identity(r: &fp_flow_record) -> Flow {
    Flow {
        cookie: r.cookie,
        local: endpoint(r.local_address, r.local_port),
        remote: endpoint(r.remote_address, r.remote_port),
        netns: r.netns,
        cgroup_id: r.cgroup_id,
        rule_id: (r.flow.rule_id != abi::FP_NO_RULE).then_some(r.flow.rule_id),
        is_passive: r.flow.flags & abi::FP_FLOW_PASSIVE != 0,
        is_adopted: is_adopted(r),
    }
}

pub(crate) fn endpoint(address: [u8; 16], port: u32) -> SocketAddr {
    let address = IpAddr::V6(Ipv6Addr::from(address)).to_canonical();
    SocketAddr::new(address, port as u16)
}

fn opened(flags: u32) -> Opened {
    if flags & abi::FP_FLOW_ADOPTED != 0 {
        Opened::BeforeFatpath
    } else if flags & abi::FP_FLOW_PASSIVE != 0 {
        Opened::ByPeer
    } else {
        Opened::Here
    }
}

fn measures(r: &fp_flow_record, duration_s: f64) -> Measures {
    let bytes = r.bytes_acked.max(r.bytes_received) as f64;
    Measures {
        bytes_acked: r.bytes_acked,
        bytes_received: r.bytes_received,
        goodput_mbps: if duration_s > 0.0 {
            bytes * 8.0 / duration_s / 1e6
        } else {
            0.0
        },
        segments_retransmitted: r.segments_retransmitted,
        bytes_retransmitted: r.bytes_retransmitted,
        segments_sent: r.segments_sent,
        segments_received: r.segments_received,
        srtt_us: r.srtt_us,
        min_rtt_us: (r.min_rtt_us != u32::MAX).then_some(r.min_rtt_us),
        mss_bytes: r.mss_bytes,
        cwnd_pkts: r.cwnd_pkts,
        // TCP_INFINITE_SSTHRESH
        ssthresh_pkts: (r.ssthresh_pkts < 0x7fff_ffff).then_some(r.ssthresh_pkts),
        in_flight_pkts: r.in_flight_pkts,
        peer_window_bytes: r.peer_window_bytes,
        law: text_of(&r.law),
        receive_window_scale: r.receive_window_scale,
        send_window_scale: r.send_window_scale,
    }
}

fn limits(r: &fp_flow_record) -> Limits {
    let seconds = |ticks: u32| f64::from(ticks) * tick_us() as f64 / 1e6;
    let held = r.receiver_limited_ticks + r.send_buffer_limited_ticks;
    Limits {
        busy_s: seconds(r.busy_ticks),
        receiver_s: seconds(r.receiver_limited_ticks),
        sender_s: seconds(r.send_buffer_limited_ticks),
        network_s: seconds(r.busy_ticks.saturating_sub(held)),
    }
}

/// A tick of the kernel (1/HZ): what the coarse clock resolves.
pub(crate) fn tick_us() -> u64 {
    static TICK_US: OnceLock<u64> = OnceLock::new();
    *TICK_US.get_or_init(|| {
        let tick = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
        (tick.tv_nsec as u64 / 1000).max(1)
    })
}

fn settings(r: &fp_flow_record) -> Vec<SettingReport> {
    let given = |(setting, ..): &(u32, _, _, _)| r.flow.wanted.given & (1 << setting) != 0;
    let report = |(setting, name, asked, has): (u32, &'static str, _, _)| {
        let (outcome, note) = outcome(r, setting);
        SettingReport {
            setting: name.into(),
            asked,
            has,
            outcome,
            note,
        }
    };
    all_settings(r)
        .into_iter()
        .chain(start_settings(r))
        .filter(given)
        .map(report)
        .collect()
}

/// Setting, name with its unit, what is wanted, what the kernel has.
fn all_settings(r: &fp_flow_record) -> [(u32, &'static str, SettingValue, SettingValue); 9] {
    let w = &r.flow.wanted;
    let numbers = |setting: u32, name, wanted: u32, has: u32| {
        let number = |n: u32| SettingValue::Number(n.into());
        (setting, name, number(wanted), number(has))
    };
    let timer = |setting: u32, name, wanted_us: u32, has_ticks: u32| {
        let has_us = u64::from(has_ticks) * tick_us();
        (
            setting,
            name,
            SettingValue::Number(wanted_us.into()),
            SettingValue::Number(has_us),
        )
    };
    let law = |name: &[u8]| SettingValue::Name(text_of(name));
    let rate = |bytes_per_s: u64| SettingValue::Number(bytes_per_s.saturating_mul(8));
    // The kernel keeps twice the buffer that setsockopt is given (socket(7)).
    let (send, receive) = (r.send_buffer_bytes / 2, r.receive_buffer_bytes / 2);
    [
        numbers(
            abi::FP_SEND_BUFFER,
            "send_buffer_bytes",
            w.send_buffer_bytes,
            send,
        ),
        numbers(
            abi::FP_RECEIVE_BUFFER,
            "receive_buffer_bytes",
            w.receive_buffer_bytes,
            receive,
        ),
        (abi::FP_LAW, "congestion_control", law(&w.law), law(&r.law)),
        numbers(
            abi::FP_INITIAL_WINDOW,
            "initial_window_pkts",
            w.initial_window_pkts,
            r.flow.initial_cwnd_pkts,
        ),
        numbers(
            abi::FP_CWND_CLAMP,
            "cwnd_clamp_pkts",
            w.cwnd_clamp_pkts,
            r.cwnd_clamp_pkts,
        ),
        timer(abi::FP_RTO_MIN, "rto_min_us", w.rto_min_us, r.rto_min_ticks),
        timer(
            abi::FP_DELAYED_ACK_MAX,
            "delayed_ack_max_us",
            w.delayed_ack_max_us,
            r.delayed_ack_max_ticks,
        ),
        (
            abi::FP_PACING_RATE,
            "pacing_rate_bps",
            rate(w.pacing_rate_bytes_per_s),
            rate(r.max_pacing_rate_bytes_per_s),
        ),
        numbers(
            abi::FP_NOTSENT_LOWAT,
            "notsent_lowat_bytes",
            w.notsent_lowat_bytes,
            r.notsent_lowat_bytes,
        ),
    ]
}

/// What the laws of bpf/cc read of the rule: a flow with one of them has it, another has none of it.
fn start_settings(r: &fp_flow_record) -> [(u32, &'static str, SettingValue, SettingValue); 5] {
    let w = &r.flow.wanted;
    let is_ours = has_our_law(r);
    let number = |setting, name, wanted: u64| {
        let is_late = is_of_the_beginning(setting) && is_adopted(r);
        let has = if is_ours && !is_late { wanted } else { 0 };
        let value = SettingValue::Number;
        (setting, name, value(wanted), value(has))
    };
    let word = |setting, name, wanted: &str| {
        let has = if is_ours { wanted } else { "hosts_own" };
        let value = |word: &str| SettingValue::Name(word.to_owned());
        (setting, name, value(wanted), value(has))
    };
    let initial_ssthresh = match w.initial_ssthresh_bytes {
        0 => ("initial_ssthresh_pkts", w.initial_ssthresh_pkts.into()),
        bytes => ("initial_ssthresh_bytes", bytes),
    };
    let hystart = w.flags & abi::FP_RULE_HYSTART != 0;
    [
        number(
            abi::FP_MAX_SSTHRESH,
            "max_ssthresh_pkts",
            w.max_ssthresh_pkts.into(),
        ),
        number(
            abi::FP_INITIAL_SSTHRESH,
            initial_ssthresh.0,
            initial_ssthresh.1,
        ),
        number(abi::FP_INITIAL_RATE, "initial_rate_bps", w.initial_rate_bps),
        word(abi::FP_AFTER_IDLE, "after_idle", after_idle(w.after_idle)),
        number(abi::FP_HYSTART, "hystart", hystart.into()),
    ]
}

fn is_of_the_beginning(setting: u32) -> bool {
    setting == abi::FP_INITIAL_SSTHRESH || setting == abi::FP_INITIAL_RATE
}

fn is_adopted(r: &fp_flow_record) -> bool {
    r.flow.flags & abi::FP_FLOW_ADOPTED != 0
}

fn has_our_law(r: &fp_flow_record) -> bool {
    text_of(&r.law).starts_with(OUR_PREFIX)
}

fn after_idle(value: u32) -> &'static str {
    match value {
        abi::FP_IDLE_RESTART => "restart",
        abi::FP_IDLE_KEEP => "keep",
        abi::FP_IDLE_PACE => "pace",
        _ => "hosts_own",
    }
}

/// What became of a setting, and why the kernel may not have what was asked for.
fn outcome(r: &fp_flow_record, setting: u32) -> (SettingOutcome, Option<String>) {
    let overrides = r.flow.wanted.flags & abi::FP_RULE_OVERRIDE != 0;
    let own = match setting {
        abi::FP_SEND_BUFFER => r.asked.send_buffer_bytes,
        abi::FP_RECEIVE_BUFFER => r.asked.receive_buffer_bytes,
        _ => 0,
    };
    let (outcome, note) = match r.flow.error[setting as usize] {
        0 if own > 0 && overrides => (
            SettingOutcome::OverridesProgram,
            format!("the program's own {own} is overridden"),
        ),
        0 if setting == abi::FP_INITIAL_WINDOW && r.flow.initial_cwnd_pkts == 0 => (
            SettingOutcome::TooLate,
            "the flow was established before the rule".to_owned(),
        ),
        0 if setting >= abi::FP_MAX_SSTHRESH && !has_our_law(r) => (
            SettingOutcome::IgnoredByLaw,
            "only fatpath's own laws heed it".to_owned(),
        ),
        0 if is_of_the_beginning(setting) && is_adopted(r) => (
            SettingOutcome::TooLate,
            "the flow had begun before fatpath saw it: too late".to_owned(),
        ),
        0 => return (SettingOutcome::Given, None),
        error if error == abi::FP_KEPT_PROGRAMS_OWN as i32 => (
            SettingOutcome::KeptProgramsOwn,
            "the program set its own; override_application would ignore it".to_owned(),
        ),
        error => (
            SettingOutcome::Refused,
            format!("refused: {}", std::io::Error::from_raw_os_error(-error)),
        ),
    };
    (outcome, Some(note))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::field_of;
    use crate::tune::rule::rule_of;

    /// The report of a flow with this law whose rule has these settings.
    fn reported(law: &str, settings: &str) -> Vec<SettingReport> {
        let text = format!(
            "[[rule]]\nname = 'r'\nrtt = '100ms'\nrate = '1gbit'\ncongestion_control = 'fp_reno'\n{settings}\n"
        );
        let policy = fatpath_policy::parse(&text, None).expect("the policy is good");
        let mut record = fp_flow_record {
            law: field_of(law),
            ..Default::default()
        };
        record.flow.wanted = rule_of(&policy.rules[0].settings);
        let mut reports = settings_but_the_law(&record);
        reports.sort_by_key(|report| report.setting.clone());
        reports
    }

    fn settings_but_the_law(record: &fp_flow_record) -> Vec<SettingReport> {
        let all = settings(record).into_iter();
        all.filter(|report| report.setting != "congestion_control")
            .collect()
    }

    fn number(setting: &'static str, asked: u64, has: u64) -> SettingReport {
        SettingReport {
            setting: setting.into(),
            asked: SettingValue::Number(asked),
            has: SettingValue::Number(has),
            outcome: SettingOutcome::Given,
            note: None,
        }
    }

    #[test]
    fn what_our_laws_read_of_the_rule_they_have() {
        let word = SettingValue::Name("pace".into());
        let idle = SettingReport {
            setting: "after_idle".into(),
            asked: word.clone(),
            has: word,
            outcome: SettingOutcome::Given,
            note: None,
        };
        let expected = [
            idle,
            number("hystart", 1, 1),
            number("initial_rate_bps", 500_000_000, 500_000_000),
            number("initial_ssthresh_bytes", 12_500_000, 12_500_000),
            number("max_ssthresh_pkts", 100, 100),
        ];
        let all = "max_ssthresh = 100\ninitial_ssthresh = 'bdp'\ninitial_rate = '500mbit'\n\
             after_idle = 'pace'\nhystart = true";
        assert_eq!(reported("fp_reno", all), expected);
        let ssthresh = number("initial_ssthresh_pkts", 40, 40);
        assert_eq!(reported("fp_reno", "initial_ssthresh = 40"), [ssthresh]);
    }

    #[test]
    fn an_adopted_flow_says_that_its_beginning_is_over() {
        let mut record = fp_flow_record {
            law: field_of("fp_reno"),
            ..Default::default()
        };
        let text = "[[rule]]\nname = 'r'\ncongestion_control = 'fp_reno'\ninitial_ssthresh = 40\nmax_ssthresh = 9\n";
        let policy = fatpath_policy::parse(text, None).expect("the policy is good");
        record.flow.wanted = rule_of(&policy.rules[0].settings);
        record.flow.flags = abi::FP_FLOW_ADOPTED;
        let reports = settings_but_the_law(&record);
        let of = |setting| reports.iter().find(|report| report.setting == setting);
        let ssthresh = of("initial_ssthresh_pkts").expect("it is wanted");
        assert_eq!(ssthresh.has, SettingValue::Number(0));
        assert_eq!(ssthresh.outcome, SettingOutcome::TooLate);
        assert!(
            ssthresh
                .note
                .as_ref()
                .is_some_and(|note| note.contains("too late"))
        );
        assert_eq!(
            of("max_ssthresh_pkts"),
            Some(&number("max_ssthresh_pkts", 9, 9))
        );
    }

    #[test]
    fn another_law_has_none_of_it_and_says_so() {
        let reports = reported("cubic", "max_ssthresh = 100");
        assert_eq!(reports[0].has, SettingValue::Number(0));
        assert_eq!(reports[0].outcome, SettingOutcome::IgnoredByLaw);
        assert!(reports[0].note.is_some());
    }
}
