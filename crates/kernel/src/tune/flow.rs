// SPDX-License-Identifier: MIT OR Apache-2.0
//! A flow's record in the units and words of RFC 4898 and of the policy file.

use crate::KernelError;
use crate::abi::{
    self, FP_FLOW_ESTABLISHED, FP_SYN_IS_LOST_NS, fp_flow_record, fp_new_flow, fp_tcp,
};
use crate::bbr::bbr_state;
use crate::handle::Kernel;
use crate::pins::{LINK_KEEP_NEW, LINK_LIST_FLOWS};
use crate::pod::{text_of, value_of};
use crate::tune::rule::is_path_rule;
use fatpath_api::{
    Flow, Limits, Measures, Opened, RudeFlow, RudeMode, SettingOutcome, SettingReport,
    SettingValue, TunedFlow, packets_in_flight,
};
use fatpath_clock::monotonic_ns;
use fatpath_policy::{
    OUR_PREFIX, Setting, SettingValue as PolicyValue, Stage, Unit, Way, our_window_laws,
};
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, OnceLock, PoisonError};

/// One list at a time: a record is put together in memory of the processor, in which a preemptible kernel would let
/// another list write before the first is done.
static LISTING: Mutex<()> = Mutex::new(());

impl Kernel {
    /// The tuned flows of all network namespaces, now.
    ///
    /// # Errors
    /// When the iterator or the names of the rules cannot be read.
    pub fn flows(&self) -> Result<Vec<TunedFlow>, KernelError> {
        let names = self.rule_names()?;
        self.keep_new_flows()?;
        let written = {
            let _alone = LISTING.lock().unwrap_or_else(PoisonError::into_inner);
            self.list(LINK_LIST_FLOWS)?
        };
        let records = written.chunks_exact(size_of::<fp_flow_record>());
        Ok(records
            .filter_map(value_of)
            .map(|record| decode(&record, &names))
            .collect())
    }

    /// Ids of the rules that flows are on, in whatever network namespace.
    pub(crate) fn rules_of_flows(&self) -> Result<HashSet<u32>, KernelError> {
        // First those that may move to where the others are listed. FP_NEW_ENDED is the sign.
        let new = self.table("fp_new_flows")?.all::<fp_new_flow>()?;
        let now_ns = monotonic_ns();
        let new = new.iter().filter(|place| is_on_its_rule(place, now_ns));
        let _alone = LISTING.lock().unwrap_or_else(PoisonError::into_inner);
        let listed = self.list(LINK_LIST_FLOWS)?;
        let listed = listed.chunks_exact(size_of::<fp_flow_record>());
        let listed = listed.filter_map(value_of::<fp_flow_record>);
        let ids = listed.map(|record| record.flow.rule_id);
        Ok(ids.chain(new.map(|place| place.flow.rule_id)).collect())
    }

    /// Those that have carried no data get a place where the list finds them; of builds that know no such flows there
    /// are none. A network namespace that vanishes is passed over.
    fn keep_new_flows(&self) -> Result<(), KernelError> {
        if !self.places.pin("fp_new_flows").exists() {
            return Ok(());
        }
        let places = self.table("fp_new_flows")?.all::<fp_new_flow>()?;
        let is_new =
            |place: &fp_new_flow| place.owner != 0 && place.flow.flags & FP_FLOW_ESTABLISHED != 0;
        if !places.iter().any(is_new) {
            return Ok(());
        }
        self.iterate_everywhere(LINK_KEEP_NEW).map(drop)
    }
}

/// Of a place that is taken: the connection was made, or may still be.
fn is_on_its_rule(place: &fp_new_flow, now_ns: u64) -> bool {
    let is_made = place.flow.flags & FP_FLOW_ESTABLISHED != 0;
    let waited_ns = now_ns.saturating_sub(place.flow.seen_ns);
    place.owner as i64 > 0 && (is_made || waited_ns <= FP_SYN_IS_LOST_NS)
}

pub(crate) fn decode(r: &fp_flow_record, names: &HashMap<u32, String>) -> TunedFlow {
    let duration_s = r.tcp.now_ns.saturating_sub(r.flow.seen_ns) as f64 / 1e9;
    TunedFlow {
        flow: identity(r),
        opened: opened(r.flow.flags),
        rule: names.get(&r.flow.rule_id).cloned(),
        duration_s,
        settings: settings(r),
        measures: measures(r, duration_s),
        limited: limits(&r.tcp),
        rude: rude_flow(r),
        bbr: bbr_state(&r.bbr, r.tcp.mss_bytes),
        cgroup: None,
    }
}

fn identity(r: &fp_flow_record) -> Flow {
    Flow {
        cookie: r.tcp.cookie,
        local: endpoint(r.tcp.local_address, r.tcp.local_port),
        remote: endpoint(r.tcp.remote_address, r.tcp.remote_port),
        netns: r.tcp.netns,
        cgroup_id: r.tcp.cgroup_id,
        rule_id: (r.flow.rule_id != abi::FP_NO_RULE).then_some(r.flow.rule_id),
        is_passive: r.flow.flags & abi::FP_FLOW_PASSIVE != 0,
        is_adopted: is_adopted(r),
    }
}

pub(crate) fn endpoint(address: [u8; 16], port: u16) -> SocketAddr {
    let address = IpAddr::V6(Ipv6Addr::from(address)).to_canonical();
    SocketAddr::new(address, port)
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
    let tcp = &r.tcp;
    let bytes = tcp.bytes_acked.max(tcp.bytes_received) as f64;
    let gone_pkts = tcp.sacked_out + tcp.lost_out;
    Measures {
        bytes_acked: tcp.bytes_acked,
        bytes_received: tcp.bytes_received,
        goodput_mbps: if duration_s > 0.0 {
            bytes * 8.0 / duration_s / 1e6
        } else {
            0.0
        },
        segments_retransmitted: r.segments_retransmitted,
        bytes_retransmitted: tcp.bytes_retrans,
        segments_sent: r.segments_sent,
        segments_received: r.segments_received,
        srtt_us: tcp.srtt_us,
        min_rtt_us: (tcp.min_rtt_us != u32::MAX).then_some(tcp.min_rtt_us),
        mss_bytes: tcp.mss_bytes,
        cwnd_pkts: tcp.cwnd_pkts,
        // TCP_INFINITE_SSTHRESH
        ssthresh_pkts: (tcp.ssthresh_pkts < 0x7fff_ffff).then_some(tcp.ssthresh_pkts),
        in_flight_pkts: packets_in_flight(tcp.packets_out, gone_pkts, tcp.retrans_out),
        peer_window_bytes: tcp.peer_window_bytes,
        law: text_of(&tcp.law),
        receive_window_scale: tcp.receive_wscale.into(),
        send_window_scale: tcp.send_wscale.into(),
    }
}

fn limits(tcp: &fp_tcp) -> Limits {
    let seconds = |ticks: u32| f64::from(ticks) * tick_us() as f64 / 1e6;
    let held = tcp.receiver_limited_ticks + tcp.send_buffer_limited_ticks;
    Limits {
        busy_s: seconds(tcp.busy_ticks),
        receiver_s: seconds(tcp.receiver_limited_ticks),
        sender_s: seconds(tcp.send_buffer_limited_ticks),
        network_s: seconds(tcp.busy_ticks.saturating_sub(held)),
    }
}

/// A tick of the kernel (1/HZ): what the coarse clock resolves.
pub fn tick_us() -> u64 {
    static TICK_US: OnceLock<u64> = OnceLock::new();
    *TICK_US.get_or_init(|| {
        let tick = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
        (tick.tv_nsec as u64 / 1000).max(1)
    })
}

fn settings(r: &fp_flow_record) -> Vec<SettingReport> {
    let given = |setting: &Setting| r.flow.wanted.given & 1 << *setting as u32 != 0;
    let all = Setting::ALL.into_iter().filter(given);
    all.filter_map(|setting| report(r, setting)).collect()
}

/// `None` for a setting that no socket has.
fn report(r: &fp_flow_record, setting: Setting) -> Option<SettingReport> {
    let (name, wanted) = wanted(r, setting);
    let (asked, has) = match setting.spec().way {
        _ if setting == Setting::CongestionControl => {
            let law = |name: &[u8]| SettingValue::Name(text_of(name));
            (law(&r.flow.wanted.law), law(&r.tcp.law))
        }
        Way::Option | Way::Timer | Way::Own => {
            let asked = match shares(r, setting) {
                true => SettingValue::Name(PolicyValue::shared_text(wanted)),
                false => SettingValue::Number(wanted),
            };
            (asked, SettingValue::Number(socket_has(r, setting)))
        }
        Way::Laws => read_by_law(r, setting, wanted),
        Way::Rude | Way::Route | Way::Rule => return None,
    };
    let (outcome, note) = outcome(r, setting);
    Some(SettingReport {
        setting: name.into(),
        asked,
        has,
        outcome,
        note,
    })
}

fn shares(r: &fp_flow_record, setting: Setting) -> bool {
    setting == Setting::PacingRate && r.flow.wanted.shares_rate != 0
}

/// The setting's name with its unit, and what is wanted of it.
fn wanted(r: &fp_flow_record, setting: Setting) -> (&'static str, u64) {
    let rule = &r.flow.wanted;
    if setting == Setting::InitialSsthresh && rule.initial_ssthresh_bytes > 0 {
        return ("initial_ssthresh_bytes", rule.initial_ssthresh_bytes);
    }
    let value = rule.value.get(setting as usize);
    (setting.name_with_unit(), value.copied().unwrap_or(0))
}

fn socket_has(r: &fp_flow_record, setting: Setting) -> u64 {
    let has = r.socket_has.get(setting as usize).copied().unwrap_or(0);
    match setting.spec().way {
        Way::Timer => has * tick_us(),
        _ => has,
    }
}

/// A flow with one of the laws of bpf/cc has it, another has none of it.
fn read_by_law(r: &fp_flow_record, setting: Setting, wanted: u64) -> (SettingValue, SettingValue) {
    let is_heeded = has_our_law(r) && !is_late(r, setting);
    let has = if is_heeded { wanted } else { 0 };
    let value = |number: u64| match setting.spec().unit {
        Unit::Word => SettingValue::Name(after_idle(number).to_owned()),
        _ => SettingValue::Number(number),
    };
    (value(wanted), value(has))
}

/// What a law reads at the beginning of a flow comes too late for one that had begun.
fn is_late(r: &fp_flow_record, setting: Setting) -> bool {
    let spec = setting.spec();
    let is_of_the_beginning = spec.way == Way::Laws && spec.stage == Stage::Established;
    is_of_the_beginning && is_adopted(r)
}

fn is_adopted(r: &fp_flow_record) -> bool {
    r.flow.flags & abi::FP_FLOW_ADOPTED != 0
}

fn has_our_law(r: &fp_flow_record) -> bool {
    text_of(&r.tcp.law).starts_with(OUR_PREFIX)
}

fn after_idle(value: u64) -> &'static str {
    match u32::try_from(value) {
        Ok(abi::FP_IDLE_RESTART) => "restart",
        Ok(abi::FP_IDLE_KEEP) => "keep",
        Ok(abi::FP_IDLE_PACE) => "pace",
        _ => "hosts_own",
    }
}

/// What became of a setting, and why the kernel may not have what was asked for.
fn outcome(r: &fp_flow_record, setting: Setting) -> (SettingOutcome, Option<String>) {
    let overrides = r.flow.wanted.given & 1 << abi::FP_OVERRIDE_APPLICATION != 0;
    let own = match setting {
        Setting::SendBuffer => r.asked.send_buffer_bytes,
        Setting::ReceiveBuffer => r.asked.receive_buffer_bytes,
        _ => 0,
    };
    let error = r.flow.error.get(setting as usize).copied();
    let (outcome, note) = match error.unwrap_or(0) {
        0 if own > 0 && overrides => (
            SettingOutcome::OverridesProgram,
            format!("the program's own value, {own}, is overridden"),
        ),
        0 if setting == Setting::InitialWindow && r.flow.initial_cwnd_pkts == 0 => (
            SettingOutcome::TooLate,
            "the flow was established before the rule".to_owned(),
        ),
        0 if setting.spec().way == Way::Laws && !has_our_law(r) => (
            SettingOutcome::IgnoredByLaw,
            "only fatpath's laws (fp_*) use this setting".to_owned(),
        ),
        0 if shares(r, setting) => return shared(r),
        0 if is_late(r, setting) => (
            SettingOutcome::TooLate,
            "too late: the flow had begun before fatpath was loaded".to_owned(),
        ),
        0 => return (SettingOutcome::Given, None),
        error if error == abi::FP_KEPT_PROGRAMS_OWN as i32 => (
            SettingOutcome::KeptProgramsOwn,
            kept_note(r, setting, overrides).to_owned(),
        ),
        error if error == abi::FP_WITHHELD as i32 => (
            SettingOutcome::Withheld,
            "the host's TCP memory was short: the kernel's own buffer stays".to_owned(),
        ),
        error => (
            SettingOutcome::Refused,
            format!("refused: {}", std::io::Error::from_raw_os_error(-error)),
        ),
    };
    (outcome, Some(note))
}

/// What became of a rate that flows share, which the laws count.
fn shared(r: &fp_flow_record) -> (SettingOutcome, Option<String>) {
    let law = text_of(&r.tcp.law);
    let is_counted = our_window_laws().any(|counts| counts == law);
    let (outcome, note) = match (is_counted, r.flow.shared_by) {
        (false, _) => (
            SettingOutcome::IgnoredByLaw,
            "its law counts no flows that send: it has the whole rate".to_owned(),
        ),
        (true, 0 | 1) => (
            SettingOutcome::Given,
            "no other flow that sends shares it".to_owned(),
        ),
        (true, flows) => (
            SettingOutcome::Given,
            format!("{flows} flows that send share it"),
        ),
    };
    (outcome, Some(note))
}

/// Why the program's own value stays. What is learned of a path overrides buffers alone, and only smaller ones.
fn kept_note(r: &fp_flow_record, setting: Setting, overrides: bool) -> &'static str {
    let is_buffer = matches!(setting, Setting::SendBuffer | Setting::ReceiveBuffer);
    match (is_path_rule(r.flow.rule_id), is_buffer) {
        (false, _) => "the program set its own value; override_application would ignore it",
        (true, false) => {
            "the program set its own value; a rule with override_application would ignore it"
        }
        (true, true) if overrides => "the program set a larger one",
        (true, true) => {
            "the program set its own value; override_application under [auto] would replace a smaller one"
        }
    }
}

/// What the flow is while it is rude, or going polite.
fn rude_flow(record: &fp_flow_record) -> Option<RudeFlow> {
    let mode = match record.rude_mode {
        abi::FP_RUDE => RudeMode::Rude,
        abi::FP_GOING_POLITE => RudeMode::GoingPolite,
        _ => return None,
    };
    Some(RudeFlow {
        mode,
        fair_cwnd_pkts: record.rude_fair_cwnd_pkts,
        marked_pkts: record.rude_marked_pkts,
        user: record.rude_user,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::field_of;
    use crate::tune::rule::rule_of;

    fn record_of(law: &str) -> fp_flow_record {
        let mut record = fp_flow_record::default();
        record.tcp.law = field_of(law);
        record
    }

    /// A connection that was never made keeps no rule's number from others.
    #[test]
    fn a_lost_syn_is_on_no_rule() {
        let mut place = fp_new_flow::default();
        let seen_ns = 1_000_000_000;
        place.flow.seen_ns = seen_ns;
        let is_held = |place: &fp_new_flow| {
            [0, FP_SYN_IS_LOST_NS, FP_SYN_IS_LOST_NS + 1]
                .map(|waited_ns| is_on_its_rule(place, seen_ns + waited_ns))
        };
        assert_eq!(is_held(&place), [false; 3], "nobody's");
        place.owner = 7;
        assert_eq!(is_held(&place), [true, true, false], "its SYN waits");
        place.flow.flags = FP_FLOW_ESTABLISHED;
        assert_eq!(is_held(&place), [true; 3], "made");
        place.owner |= 1 << 63;
        assert_eq!(is_held(&place), [false; 3], "ended");
    }

    /// The report of a flow with this law whose rule has these settings.
    fn reported(law: &str, settings: &str) -> Vec<SettingReport> {
        let text = format!(
            "[[rule]]\nname = 'r'\nrtt = '100ms'\nrate = '1gbit'\ncongestion_control = 'fp_reno'\n{settings}\n"
        );
        let policy = fatpath_policy::parse(&text, None).expect("the policy is good");
        let mut record = record_of(law);
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
    fn a_shared_rate_is_told_as_the_rule_has_it() {
        let of = |law, shared_by| {
            let text =
                "[[rule]]\nname = 'r'\ncongestion_control = 'fp_reno'\npacing_rate = '500mbit/n'\n";
            let policy = fatpath_policy::parse(text, None).expect("the policy is good");
            let mut record = record_of(law);
            record.flow.wanted = rule_of(&policy.rules[0].settings);
            record.flow.shared_by = shared_by;
            record.socket_has[Setting::PacingRate as usize] = 125_000_000;
            let [rate] = &settings_but_the_law(&record)[..] else {
                panic!("one setting beside the law");
            };
            rate.clone()
        };
        let shared = of("fp_reno", 4);
        assert_eq!(shared.asked, SettingValue::Name("500mbit/n".into()));
        assert_eq!(shared.has, SettingValue::Number(125_000_000));
        assert_eq!(shared.note.as_deref(), Some("4 flows that send share it"));
        let alone = of("fp_reno", 1).note;
        assert_eq!(alone.as_deref(), Some("no other flow that sends shares it"));
        assert_eq!(of("fp_bbr", 0).outcome, SettingOutcome::IgnoredByLaw);
        assert_eq!(of("cubic", 0).outcome, SettingOutcome::IgnoredByLaw);
    }

    #[test]
    fn an_adopted_flow_says_that_its_beginning_is_over() {
        let mut record = record_of("fp_reno");
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
