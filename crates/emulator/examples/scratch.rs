//! scratch
use fatpath_emulator::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let spec = ChainSpec {
        rate_bps: a[1].parse().ok(),
        delay_ns: a[2].parse::<u64>().unwrap() * 1000,
        queue_bytes: a[3].parse().ok(),
        loss: a[4].parse().unwrap(),
        seed: 1,
        overhead_bytes: 0,
    };
    let network = Network::up(&unshaped::two_hosts("scr", &spec)).unwrap();
    let stop = StopHandle::new().unwrap();
    std::thread::scope(|s| {
        let f = s.spawn(|| network.forward(&stop));
        std::process::Command::new("bash")
            .args(["-c", &a[5]])
            .status()
            .unwrap();
        stop.stop();
        for d in f.join().unwrap().unwrap().links[0].directions.iter() {
            println!(
                "{:?} held {:?} refused {}",
                d.total, d.held, d.refused_packets
            );
        }
    });
    let st = std::fs::read_to_string("/proc/self/status").unwrap();
    println!(
        "{:?}",
        st.lines()
            .filter(|l| l.starts_with("VmHWM"))
            .collect::<Vec<_>>()
    );
}
