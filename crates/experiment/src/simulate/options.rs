// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options of iperf3 and what each does in the simulator.
//!
//! Pure. Written for iperf 3.9 to 3.19. Start with [`meaning`].

/// What an option does, which `is_it` finds by its names.
///
/// # Errors
/// In words, if it cannot be simulated or is none.
pub(super) fn meaning(
    option: &str,
    is_it: impl Fn(&&(char, &str, Means)) -> bool,
) -> Result<Means, String> {
    let found = OPTIONS.iter().find(is_it);
    found.map(|(.., means)| *means).ok_or_else(|| {
        format!("{option}: the simulator cannot do what this option of iperf3 asks for")
    })
}

/// What an option does here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Means {
    Server,
    Client,
    Port,
    ClientPort,
    Time,
    Bytes,
    Blocks,
    Length,
    Parallel,
    Reverse,
    Udp,
    Rate,
    Congestion,
    SetMss,
    Window,
    PacingRate,
    /// Nothing that the simulator would show; with a value or without.
    Nothing {
        has_value: bool,
    },
}

/// Short name (or a space), long name, meaning. Source: iperf3(1).
const OPTIONS: [(char, &str, Means); 46] = {
    const FLAG: Means = Means::Nothing { has_value: false };
    const VALUE: Means = Means::Nothing { has_value: true };
    [
        ('s', "server", Means::Server),
        ('c', "client", Means::Client),
        ('p', "port", Means::Port),
        (' ', "cport", Means::ClientPort),
        ('t', "time", Means::Time),
        ('n', "bytes", Means::Bytes),
        ('k', "blockcount", Means::Blocks),
        ('l', "length", Means::Length),
        ('P', "parallel", Means::Parallel),
        ('R', "reverse", Means::Reverse),
        ('u', "udp", Means::Udp),
        ('b', "bitrate", Means::Rate),
        (' ', "bandwidth", Means::Rate),
        ('C', "congestion", Means::Congestion),
        (' ', "linux-congestion", Means::Congestion),
        ('M', "set-mss", Means::SetMss),
        ('w', "window", Means::Window),
        (' ', "fq-rate", Means::PacingRate),
        ('1', "one-off", FLAG),
        ('D', "daemon", FLAG),
        ('J', "json", FLAG),
        ('4', "version4", FLAG),
        ('6', "version6", FLAG),
        ('N', "no-delay", FLAG),
        ('Z', "zerocopy", FLAG),
        ('V', "verbose", FLAG),
        ('d', "debug", FLAG),
        ('i', "interval", VALUE),
        ('f', "format", VALUE),
        ('T', "title", VALUE),
        ('A', "affinity", VALUE),
        ('I', "pidfile", VALUE),
        ('F', "file", VALUE),
        ('S', "tos", VALUE),
        (' ', "dscp", VALUE),
        ('L', "flowlabel", VALUE),
        (' ', "logfile", VALUE),
        (' ', "extra-data", VALUE),
        (' ', "connect-timeout", VALUE),
        (' ', "rcv-timeout", VALUE),
        (' ', "snd-timeout", VALUE),
        (' ', "pacing-timer", VALUE),
        (' ', "get-server-output", FLAG),
        (' ', "udp-counters-64bit", FLAG),
        (' ', "repeating-payload", FLAG),
        (' ', "forceflush", FLAG),
    ]
};

impl Means {
    pub(super) fn has_value(self) -> bool {
        !matches!(
            self,
            Means::Server | Means::Reverse | Means::Udp | Means::Nothing { has_value: false }
        )
    }
}
