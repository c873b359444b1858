// SPDX-License-Identifier: MIT OR Apache-2.0
//! What it costs that a law is struct_ops: processor time per byte of one flow under
//! fp_reno, over that under the kernel's own reno.
//!
//! Two connections over a loopback device with Ethernet's MTU, one a law, take turns. One thread
//! writes and reads, on one processor: sending, receiving and the ACKs all run on it, in its own
//! time. That time is the clock's less what the thread waited for the processor, so it holds the
//! softirqs however the kernel books them. A clamp holds the window, so that it is in full use and
//! the law does its work at every ACK: without it the buffers would limit the flow, and neither law
//! would do anything.

use crate::alone::{Alone, NETWORK};
use crate::figure::{Better, Figure, Summary};
use crate::loaded::Loaded;
use crate::one_processor::OneProcessor;
use crate::run::Run;
use crate::transfer::Transfer;
use anyhow::{Context, Result, ensure};
use fatpath_api::TunedFlow;
use fatpath_emulator::{Namespace, remove_namespace};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// Samples, each the median of as many pairs of slices.
const SAMPLES: u32 = 30;
const PAIRS_A_SAMPLE: u32 = 10;
/// Long against the first touch of caches, short against the machine's moods.
const SLICE: Duration = Duration::from_millis(40);
/// 280 kB: no more than a second-level cache holds.
const CLAMP_PKTS: u32 = 200;
/// More than the window, so that there is always more to send.
const BUFFER_BYTES: u32 = 4 << 20;
const MTU_BYTES: u32 = 1500;

/// The two laws, and the listening addresses by which the policy tells their flows apart.
const LAWS: [(&str, [u8; 4]); 2] = [("fp_reno", [127, 0, 9, 1]), ("reno", [127, 0, 9, 2])];

/// Median of thirty samples.
pub const FIGURE: Figure = Figure {
    name: "law.reno_cpu_ratio",
    what: "processor time per byte of a loopback flow, fp_reno over the kernel's reno",
    unit: "ratio",
    better: Better::Lower,
    goal: Some(1.03),
    summary: Summary::Median,
    measure,
};

fn measure(run: &Run) -> Result<Vec<f64>> {
    let alone = Alone::wait(run)?;
    let policy: String = LAWS.iter().map(|(law, to)| rule(law, *to)).collect();
    let loaded = Loaded::start(run, &alone, &(prelude() + &policy), None)?;
    let host = Host::make()?;
    let _one = OneProcessor::keep()?;
    let mut ours = host.transfer(LAWS[0].1)?;
    let mut kernels = host.transfer(LAWS[1].1)?;
    for transfer in [&mut ours, &mut kernels] {
        transfer.bytes_per_s(SLICE)?;
    }
    let samples = (1..=SAMPLES).map(|n| {
        run.check()?;
        sample(run, &mut ours, &mut kernels, n)
    });
    let samples = samples.collect::<Result<Vec<f64>>>()?;
    let flows = loaded.kernel()?.flows()?;
    for (transfer, (law, _)) in [&ours, &kernels].into_iter().zip(LAWS) {
        check(&flows, transfer.sender.local_addr()?, law)?;
    }
    Ok(samples)
}

fn prelude() -> String {
    "[host.sysctl]\n'net.core.rmem_max' = 'auto'\n'net.core.wmem_max' = 'auto'\n".into()
}

/// The kernel's reno begins with its clamp as threshold; ours takes it for no knowledge of the path.
fn rule(law: &str, to: [u8; 4]) -> String {
    let to = std::net::Ipv4Addr::from(to);
    let threshold = match law {
        "reno" => String::new(),
        _ => format!("initial_ssthresh = {CLAMP_PKTS}\n"),
    };
    format!(
        "[[rule]]\nname = '{law}'\ndestination = ['{to}']\ncongestion_control = '{law}'\n{threshold}\
         cwnd_clamp = {CLAMP_PKTS}\nsend_buffer = {BUFFER_BYTES}\nreceive_buffer = {BUFFER_BYTES}\n"
    )
}

/// Time of ours over time of the kernel's, for the same bytes.
fn sample(run: &Run, ours: &mut Transfer, kernels: &mut Transfer, n: u32) -> Result<f64> {
    let pairs = (0..PAIRS_A_SAMPLE).map(|pair| {
        let (ours, kernels) = match pair % 2 {
            0 => (ours.bytes_per_s(SLICE)?, kernels.bytes_per_s(SLICE)?),
            _ => {
                let kernels = kernels.bytes_per_s(SLICE)?;
                (ours.bytes_per_s(SLICE)?, kernels)
            }
        };
        Ok(kernels / ours)
    });
    let ratio = Summary::Median
        .of(&pairs.collect::<Result<Vec<f64>>>()?)
        .expect("there are pairs");
    run.say(format!("  sample {n} of {SAMPLES}: {ratio:.3}"));
    Ok(ratio)
}

/// Refuses a run in which the laws had nothing to do.
fn check(flows: &[TunedFlow], local: SocketAddr, law: &str) -> Result<()> {
    let flow = flows.iter().find(|flow| flow.flow.local == local);
    let measures = &flow
        .with_context(|| format!("the flow of {law} is not among those that are tuned"))?
        .measures;
    ensure!(measures.law == law, "{} instead of {law}", measures.law);
    ensure!(
        measures.cwnd_pkts == CLAMP_PKTS && measures.ssthresh_pkts.is_some_and(|t| t <= CLAMP_PKTS),
        "{law} is not in congestion avoidance at the clamp: {measures:?}"
    );
    Ok(())
}

/// A namespace whose loopback device cuts segments as Ethernet does; removed when it is dropped.
struct Host {
    namespace: Namespace,
}

impl Host {
    fn make() -> Result<Host> {
        let namespace = Namespace::create(&format!("{NETWORK}-client"))?;
        let host = Host { namespace };
        let mtu = MTU_BYTES.to_string();
        let arguments = ["link", "set", "dev", "lo", "mtu", &mtu];
        let status = host.namespace.command("ip").args(arguments).status()?;
        ensure!(status.success(), "ip {}: {status}", arguments.join(" "));
        Ok(host)
    }

    fn transfer(&self, to: [u8; 4]) -> Result<Transfer> {
        let to = std::net::Ipv4Addr::from(to);
        let listener = self.namespace.run(|| TcpListener::bind((to, 0)))??;
        let address = listener.local_addr()?;
        let sender = self.namespace.run(|| TcpStream::connect(address))??;
        Transfer::new(sender, listener.accept()?.0)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // The next run takes away what is left.
        let _ = remove_namespace(self.namespace.name());
    }
}
