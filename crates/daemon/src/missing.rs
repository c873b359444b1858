// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of fatpath the kernel refused: a server goes on without it, and a lab does not, because it would measure without
//! it.

use anyhow::{Result, bail};
use fatpath_kernel::Missing;

/// What a server goes on without.
pub(crate) fn notes(missing: &Missing) -> impl Iterator<Item = String> {
    let laws = missing.laws.iter().map(|error| {
        format!(
            "not every law could be registered ({error}): rules that ask for them leave the law as it is, all else works"
        )
    });
    let instruments = missing.instruments.iter().map(|error| {
        format!("the instruments could not be loaded ({error}): no flow is sampled, all else works")
    });
    let release = missing.release.iter().map(|error| {
        format!(
            "something of the build that was replaced is left ({error}): flows may keep its settings until they end"
        )
    });
    laws.chain(instruments).chain(release)
}

/// That the kernel refused neither a law nor the instruments. A law that another instance has registered is not
/// refused here, but where a policy names it.
///
/// # Errors
/// What the kernel refused. The remedy comes last: a lab shows the last lines.
pub(crate) fn refuse(missing: &Missing) -> Result<()> {
    let laws = missing.laws.as_ref();
    if let Some(error) = laws.filter(|error| !error.is_anothers_law()) {
        bail!(
            "{error}\nnot every law could be registered, and a lab would measure without it: use a kernel that takes it, or \
             find out what has its name (bpftool struct_ops list); `fatpath daemon` prints all that the kernel says"
        );
    }
    if let Some(error) = &missing.instruments {
        bail!(
            "{error}\nthe instruments could not be loaded, and a lab's flow log would lack what they sample: use a kernel that \
             takes them; `fatpath daemon` prints all that the kernel says"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fatpath_kernel::KernelError;

    #[test]
    fn a_lab_is_refused_what_the_kernel_refuses_and_no_more() {
        let is_refused = |laws, instruments| {
            let missing = Missing {
                laws,
                instruments,
                release: Some(KernelError::NotPermitted),
            };
            refuse(&missing).is_err()
        };
        let unseen = || KernelError::UnseenLaw("fp_aimd".to_owned());
        assert!(!is_refused(None, None));
        assert!(!is_refused(Some(unseen()), None));
        assert!(is_refused(Some(KernelError::NotPermitted), None));
        assert!(is_refused(Some(unseen()), Some(KernelError::NotPermitted)));
    }
}
