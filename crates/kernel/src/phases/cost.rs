// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the probes cost a program, measured on a function of this one.

#![allow(unsafe_code)] // a function in assembly, so that its first instruction is known

use crate::KernelError;
use crate::object::program;
use libbpf_rs::Object;
use std::hint::black_box;
use std::time::Instant;

/// Calls in one measurement, and measurements: the least is what nothing else disturbed.
const CALLS: u32 = 200;
const MEASUREMENTS: u32 = 5;

/// Begins as most functions do, with an instruction that the kernel emulates.
#[cfg(target_arch = "x86_64")]
mod probed {
    std::arch::global_asm!(
        ".globl fatpath_phase_probe",
        ".hidden fatpath_phase_probe",
        ".type fatpath_phase_probe, @function",
        "fatpath_phase_probe:",
        "push rbx",
        "pop rbx",
        "ret",
    );
    unsafe extern "C" {
        fn fatpath_phase_probe();
    }

    pub(super) fn call() {
        // SAFETY: it leaves every register and the stack as it found them.
        unsafe { fatpath_phase_probe() }
    }

    pub(super) fn address() -> u64 {
        fatpath_phase_probe as *const () as u64
    }
}

/// Microseconds that entry and return add to a call; `None` where that cannot be measured.
#[cfg(target_arch = "x86_64")]
pub(super) fn probe_us(object: &Object) -> Result<Option<f64>, KernelError> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let Some((path, offset)) = place_in_file(&maps, probed::address()) else {
        return Ok(None);
    };
    let bare = least_us(probed::call);
    let own = std::process::id() as i32;
    let attach = |name, is_return| {
        let attached = program(object, name)?.attach_uprobe(is_return, own, path, offset as usize);
        attached.map_err(KernelError::bpf("probe a function of this program"))
    };
    let _probes = [attach("returned", true)?, attach("entered", false)?];
    Ok(Some((least_us(probed::call) - bare).max(0.0)))
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn probe_us(_: &Object) -> Result<Option<f64>, KernelError> {
    Ok(None)
}

fn least_us(call: fn()) -> f64 {
    let measure = |_| {
        let begun = Instant::now();
        (0..CALLS).for_each(|_| black_box(call)());
        begun.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS)
    };
    (0..MEASUREMENTS).map(measure).fold(f64::INFINITY, f64::min)
}

/// The file that is mapped at an address, and where in it that is.
fn place_in_file(maps: &str, address: u64) -> Option<(&str, u64)> {
    maps.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (begin, end) = fields.next()?.split_once('-')?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let (begin, end) = (hex(begin)?, hex(end)?);
        let offset = hex(fields.nth(1)?)?;
        let path = &line[line.find('/')?..];
        (begin..end)
            .contains(&address)
            .then(|| (path, offset + address - begin))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_lies_in_the_file_that_is_mapped_there() {
        let maps =
            "1000-2000 r--p 00000000 fe:00 7 /bin/x\n2000-4000 r-xp 00001000 fe:00 7 /bin/x y\n";
        assert_eq!(place_in_file(maps, 0x2010), Some(("/bin/x y", 0x1010)));
        assert_eq!(place_in_file(maps, 0x4000), None);
    }
}
