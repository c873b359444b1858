// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two ends of a connection as the kernel would set them up: the hosts' sysctls, then what the
//! program asks for, then the policy's rules at either end.
//!
//! Pure. Memory that the kernel counts becomes bytes of data: all of it for the sender; for the receiver's
//! window the share of data in the memory of a packet, as the kernel measures it (`scaling_ratio` of
//! net/ipv4/tcp_input.c, since 6.6). Start with [`Ends::spec`].

use std::net::IpAddr;

use fatpath_cc::{Idle, Law, Start};
use fatpath_link::headers::{IPV4_TCP_BYTES, IPV6_TCP_BYTES, TIMESTAMP_BYTES};
use fatpath_policy::{
    Applied, PathFacts, Policy, Rule, Segment, Setting, Stage, SysctlName, apply,
};
use fatpath_scenario::law::of_request;
use fatpath_scenario::{Flow, Requests};
use fatpath_sim::{Buffer, DelayedAcks, RudeRate, RudeSpec, TcpSpec};

use super::host::{Ecn, HostTcp};
use super::{law, source};

/// RFC 791: the length is 16 bits.
const MOST_PACKET_BYTES: u32 = 65_535;
/// The largest window without scaling, and the largest shift (RFC 7323, section 2).
const UNSCALED_WINDOW_BYTES: u64 = 65_535;
const MOST_SHIFT: u32 = 14;
/// What a packet takes in addition to itself where a TUN device makes it (`tun_build_skb`): headroom, and behind its
/// head, rounded up to a cache line, struct skb_shared_info and struct sk_buff.
const HEADROOM_BYTES: u64 = 64;
const CACHE_LINE_BYTES: u64 = 64;
const PACKET_OVERHEAD_BYTES: u64 = 320 + 256;
/// Linux's own CUBIC, which starts otherwise than `fp_cubic`.
const KERNEL_CUBIC: &str = "cubic";
/// The kernel keeps the share in 1/256 (TCP_RMEM_TO_WIN_SCALE).
const SHARE_UNIT: u64 = 256;

/// The addresses and ports of a connection, and the cgroup that its programs are in.
pub(super) struct Names {
    pub(super) sender: (IpAddr, u16),
    pub(super) receiver: (IpAddr, u16),
    pub(super) cgroup: String,
}

/// What decides over a flow's two ends.
pub(super) struct Ends<'e> {
    pub(super) flow: &'e Flow,
    pub(super) sender: &'e HostTcp,
    pub(super) receiver: &'e HostTcp,
    pub(super) policy: Option<&'e Policy>,
    pub(super) names: &'e Names,
    /// The largest IP packet that passes all links.
    pub(super) path_mtu_bytes: u32,
    /// A link on the way passes on what the sender gives its device at once in the segments that it is.
    pub(super) cuts_segments: bool,
    /// Concurrent connections of the case, among which a rule may divide buffers.
    pub(super) connections: u64,
}

impl Ends<'_> {
    /// What the simulator needs to know.
    ///
    /// # Errors
    /// In words, if the law is none of the simulator's.
    pub(super) fn spec(&self) -> Result<TcpSpec, String> {
        let (here, there) = (self.names.sender, self.names.receiver);
        let at_sender = &self.applied(here, there);
        let at_receiver = &self.applied(there, here);
        let Segment {
            mss_bytes,
            header_bytes,
        } = self.segment();
        let rude = self.rude(at_sender);
        let law = self.law(at_sender, rude.is_some())?;
        let mut tcp = self.of_host(law);
        self.requests().ends.give(&mut tcp);
        Ok(TcpSpec {
            law,
            starts_as_kernel: self.law_name(at_sender) == KERNEL_CUBIC && rude.is_none(),
            rude,
            start: at_sender.start(tcp.start),
            mss_bytes,
            header_bytes,
            initial_window_pkts: at_sender
                .number_u32(Setting::InitialWindow)
                .unwrap_or(tcp.initial_window_pkts),
            cwnd_clamp_pkts: at_sender
                .number_u32(Setting::CwndClamp)
                .unwrap_or(tcp.cwnd_clamp_pkts),
            send_buffer: self.send_buffer(at_sender),
            receive_buffer: self.receive_buffer(at_receiver),
            pacing_rate_bps: self.pacing_rate_bps(at_sender),
            pacing: tcp.pacing || at_sender.is_on(Setting::Pacing),
            max_burst_pkts: at_sender
                .number_u32(Setting::MaxBurst)
                .unwrap_or(tcp.max_burst_pkts),
            dupthresh: at_sender
                .number_u32(Setting::Reordering)
                .unwrap_or(tcp.dupthresh),
            rto_min_ns: at_sender
                .number(Setting::RtoMin)
                .map_or(tcp.rto_min_ns, |us| us * 1000),
            delayed_acks: self.delayed_acks(at_receiver, tcp.delayed_acks),
            ecn: self.agrees_on_ecn(),
            offload: self.cuts_segments,
            ..tcp
        })
    }

    /// What the sender's sysctls give a flow that asks for nothing.
    fn of_host(&self, law: Law) -> TcpSpec {
        let plain = TcpSpec::default();
        TcpSpec {
            start: Start {
                idle: match self.sender.restarts_after_idle {
                    true => Idle::Restart,
                    false => Idle::Keep,
                },
                hystart: law.spec().hystart,
                ..plain.start
            },
            detection: self.sender.detection,
            dupthresh: self.sender.dupthresh,
            rto_min_ns: self.sender.rto_min_ns,
            tail_loss_probe: self.sender.tail_loss_probe,
            ..plain
        }
    }

    /// Who opens the connection asks; the other end agrees or does not (RFC 3168, 6.1.1).
    fn agrees_on_ecn(&self) -> bool {
        let (opener, listener) = match self.flow.opened_by_receiver {
            true => (self.receiver, self.sender),
            false => (self.sender, self.receiver),
        };
        opener.ecn == Ecn::Asks && listener.ecn != Ecn::Off
    }

    fn requests(&self) -> &Requests {
        &self.flow.requests
    }

    /// The rate that the sending host's flows of a rule share, if the flow is one of them, and the rule's name.
    pub(super) fn shared_rate(&self) -> Option<(&str, u64)> {
        let (here, there) = (self.names.sender, self.names.receiver);
        let rate_bps = self.applied(here, there).shared(Setting::PacingRate)?;
        Some((self.rule(here, there)?.name.as_str(), rate_bps))
    }

    /// What the rule that a host's end of the flow meets gives it; nothing where there is none.
    fn applied(&self, own: (IpAddr, u16), peer: (IpAddr, u16)) -> Applied {
        let facts = PathFacts {
            segment: Some(self.segment()),
            flows: self.connections,
            program_sets_buffers: self.requests().window_bytes.is_some(),
        };
        self.rule(own, peer).map_or_else(Applied::default, |rule| {
            apply(&rule.settings, Stage::Established, &facts)
        })
    }

    fn rule(&self, own: (IpAddr, u16), peer: (IpAddr, u16)) -> Option<&Rule> {
        let flow = fatpath_policy::Flow {
            destination: peer.0,
            destination_port: Some(peer.1),
            source: Some(own.0),
            source_port: Some(own.1),
            cgroup: Some(self.names.cgroup.clone()),
        };
        self.policy.and_then(|policy| policy.first_match(&flow))
    }

    /// Until others send, the whole of a rate that flows share; a smaller one of the program holds then, too.
    fn pacing_rate_bps(&self, rule: &Applied) -> Option<u64> {
        let of_program = self.requests().pacing_rate_bps;
        let is_overridden = rule.is_on(Setting::OverrideApplication);
        match rule.shared(Setting::PacingRate) {
            Some(whole_bps) if is_overridden => Some(whole_bps),
            Some(whole_bps) => Some(of_program.map_or(whole_bps, |bps| bps.min(whole_bps))),
            None => rule.number(Setting::PacingRate).or(of_program),
        }
    }

    /// The name of the law as the kernel has it.
    fn law_name<'a>(&'a self, rule: &'a Applied) -> &'a str {
        let of_program = || self.requests().law.as_ref().map(|law| law.name.as_str());
        let of_rule = rule.law().map(fatpath_policy::Law::name);
        of_rule.or_else(of_program).unwrap_or(&self.sender.law)
    }

    /// Of a rude flow the law of its fair window, Reno where none is given.
    fn law(&self, rule: &Applied, is_rude: bool) -> Result<Law, String> {
        match (rule.law(), &self.requests().law) {
            (Some(law), _) => law::of_policy(law),
            (None, Some(request)) => of_request(request),
            (None, None) if is_rude => Ok(Law::RENO),
            (None, None) => law::of_kernel(&self.sender.law).map_err(|why| {
                let host = &self.flow.from;
                format!(
                    "{why}; {host} has {} by net.ipv4.tcp_congestion_control",
                    self.sender.law
                )
            }),
        }
    }

    /// A rule that allows it leaves it to the program, here the flow's own key; its rates hold for both.
    fn rude(&self, rule: &Applied) -> Option<RudeSpec> {
        let request = self.requests().ends.rude;
        let is_rude = match rule.rude() {
            Some(rude) => rude.makes_rude(request.is_some()),
            None => request.is_some() && self.policy.is_none(),
        };
        let of_request = request.and_then(|request| request.share_bps);
        is_rude.then(|| RudeSpec {
            rate: self.rude_rate(rule, of_request),
            off: request
                .and_then(|request| request.off)
                .map(source::rude_off),
            converged_milli: rule.rude_converged_milli(),
        })
    }

    fn rude_rate(&self, rule: &Applied, of_request: Option<u64>) -> RudeRate {
        if rule.is_unlimited(Setting::RudeRate) {
            return RudeRate::Unlimited;
        }
        let of_request = of_request.map(|bits| self.segment().without_headers(bits));
        let share_bps = rule.number(Setting::RudeRate).or(of_request);
        share_bps.map_or(RudeRate::Estimated, RudeRate::Share)
    }

    fn segment(&self) -> Segment {
        let headers = match self.flow.ipv6 {
            true => IPV6_TCP_BYTES,
            false => IPV4_TCP_BYTES,
        };
        let header_bytes = headers + TIMESTAMP_BYTES;
        let whole = self.path_mtu_bytes.saturating_sub(header_bytes).max(1);
        let most = match self.flow.may_be_fragmented() {
            true => MOST_PACKET_BYTES - header_bytes,
            false => whole,
        };
        let mss_bytes = self
            .requests()
            .mss_bytes
            .map_or(whole, |request| request.min(most));
        Segment {
            mss_bytes,
            header_bytes,
        }
    }

    fn send_buffer(&self, rule: &Applied) -> Buffer {
        let inner = self.requests().ends.send_buffer_bytes;
        let asked = self.asked(rule, Setting::SendBuffer);
        let most = self.raised(SysctlName::CoreWmemMax, self.sender.send_max_bytes);
        let of_memory = self.sender.send_memory_bytes;
        let top = self.raised(SysctlName::TcpWmem, of_memory[2]);
        match (asked, inner) {
            (Some(bytes), _) => Buffer::Fixed(2 * bytes.min(most)),
            (None, Some(bytes)) => Buffer::Fixed(bytes),
            (None, None) => Buffer::Auto(of_memory[1], top),
        }
    }

    fn receive_buffer(&self, rule: &Applied) -> Buffer {
        let inner = self.requests().ends.receive_buffer_bytes;
        let asked = self.asked(rule, Setting::ReceiveBuffer);
        let most = self.raised(SysctlName::CoreRmemMax, self.receiver.receive_max_bytes);
        let of_memory = self.receiver.receive_memory_bytes;
        let top = self.raised(SysctlName::TcpRmem, of_memory[2]);
        // The SYN of who opens follows its own buffer; that of who listens, only the host's maxima.
        let of_syn = match (self.flow.opened_by_receiver, asked) {
            (true, Some(bytes)) => top.max(most).max(2 * bytes.min(most)),
            _ => top.max(most),
        };
        let scaled = |bytes: u64| bytes.min(self.most_window(of_syn));
        match (asked, inner) {
            (Some(bytes), _) => Buffer::Fixed(scaled(self.data_in(2 * bytes.min(most)))),
            (None, Some(bytes)) => Buffer::Fixed(bytes),
            (None, None) if self.receiver.grows => {
                let first = scaled(self.data_in(of_memory[1]));
                Buffer::Auto(first, scaled(self.data_in(top)))
            }
            (None, None) => Buffer::Fixed(scaled(self.data_in(of_memory[1]))),
        }
    }

    /// The data that a receiver's memory is reckoned to hold: `tcp_win_from_space`.
    fn data_in(&self, memory_bytes: u64) -> u64 {
        let Segment {
            mss_bytes,
            header_bytes,
        } = self.segment();
        let packet_bytes = u64::from(mss_bytes + header_bytes);
        let head_bytes = (HEADROOM_BYTES + packet_bytes).next_multiple_of(CACHE_LINE_BYTES);
        let share = u64::from(mss_bytes) * SHARE_UNIT / (head_bytes + PACKET_OVERHEAD_BYTES);
        memory_bytes * share / SHARE_UNIT
    }

    /// What setsockopt is asked for: by the rule, or else by the program.
    fn asked(&self, rule: &Applied, buffer: Setting) -> Option<u64> {
        let own = self.requests().window_bytes.map(u64::from);
        rule.number(buffer).or(own)
    }

    /// A maximum of the host, as the policy has raised it.
    fn raised(&self, name: SysctlName, bytes: u64) -> u64 {
        let at_least = self.policy.and_then(|policy| policy.host.at_least(name));
        at_least.map_or(bytes, |least| bytes.max(least.into()))
    }

    /// What the SYN's window scale lets a receiver say: `tcp_select_initial_window` of net/ipv4/tcp_output.c.
    fn most_window(&self, space_bytes: u64) -> u64 {
        let scaling = self.sender.window_scaling && self.receiver.window_scaling;
        let shift = match scaling {
            true => space_bytes
                .max(1)
                .ilog2()
                .saturating_sub(15)
                .min(MOST_SHIFT),
            false => 0,
        };
        UNSCALED_WINDOW_BYTES << shift
    }

    /// `own`: what the flow asks for, or Linux's.
    fn delayed_acks(&self, rule: &Applied, own: DelayedAcks) -> DelayedAcks {
        let of_rule = rule.number(Setting::DelayedAckMax);
        match (self.requests().ends.delayed_acks, of_rule) {
            _ if rule.is_on(Setting::Quickack) => DelayedAcks::Off,
            (None, Some(us)) => DelayedAcks::QuickAtStart { max_ns: us * 1000 },
            _ => own,
        }
    }
}
