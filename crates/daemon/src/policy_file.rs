// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policies as this host reads them: with the laws that it has.

use anyhow::{Context, Result};
use fatpath_estats::Derived;
use fatpath_kernel::registered_laws;
use fatpath_policy::{MAX_FILE_BYTES, Policy, Problem, RUDE_LAW, Refused, our_laws, parse_bytes};
use std::io::Read;
use std::path::Path;

/// Reads a policy file.
///
/// # Errors
/// A [`Refused`] with every problem, or what kept the file from being read.
pub fn read_policy_file(file: &Path) -> Result<Policy> {
    let name = file.display().to_string();
    let mut bytes = Vec::new();
    let one_too_many = MAX_FILE_BYTES as u64 + 1;
    std::fs::File::open(file)
        .and_then(|file| file.take(one_too_many).read_to_end(&mut bytes))
        .with_context(|| format!("cannot read the policy {name}"))?;
    Ok(read_policy(&bytes, &name)?)
}

/// Reads a policy. The laws that fatpath brings count as registered; where the registry cannot be
/// read, no law is refused.
pub(crate) fn read_policy(bytes: &[u8], file: &str) -> Result<Policy, Refused> {
    let laws = registered_laws().ok().map(|mut laws| {
        let unregistered = our_laws().filter(|law| !laws.contains(law));
        let unregistered: Vec<String> = unregistered.collect();
        laws.extend(unregistered);
        // A rule asks for it by its setting `rude`.
        laws.retain(|law| law != RUDE_LAW);
        laws
    });
    let policy = parse_bytes(bytes, laws.as_deref()).map_err(|problems| Refused {
        file: file.to_owned(),
        problems,
    })?;
    refuse_bad_formulas(&policy, file)?;
    Ok(policy)
}

/// The policy's reader keeps formulas as text: what variables there are is the instruments' affair.
fn refuse_bad_formulas(policy: &Policy, file: &str) -> Result<(), Refused> {
    let texts = policy.instruments.derived.iter();
    let problems: Vec<Problem> = texts
        .filter_map(|text| {
            let read = Derived::parse([(text.name.as_str(), text.formula.as_str())]);
            Some(Problem {
                line: text.line,
                column: 1,
                message: read.err()?.to_string(),
                allowed: String::new(),
            })
        })
        .collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Refused {
            file: file.to_owned(),
            problems,
        }),
    }
}
