// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whose files a listener writes: never root's.

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// Refuses what would write as root.
///
/// # Errors
/// This is root, and nobody else is named.
pub fn refuse_root(user: Option<&str>) -> Result<()> {
    ensure!(
        user.is_some() || !geteuid().is_root(),
        "a listener that root starts would write as root: give --user NAME, or start it as another user"
    );
    Ok(())
}

/// From here on this process is that user, of that user's groups, and can never be root again. For a process that has one thread
/// yet.
///
/// # Errors
/// There is no such user, or it is root, or another one than the one who starts this.
pub fn write_as(user: Option<&str>) -> Result<()> {
    let Some(name) = user else { return Ok(()) };
    let user = uzers::get_user_by_name(name)
        .with_context(|| format!("--user: this host knows no user {name}"))?;
    let (uid, gid) = (user.uid(), user.primary_group_id());
    ensure!(uid != 0, "--user: {name} is root; name another user");
    if !geteuid().is_root() {
        match geteuid().as_raw() == uid {
            true => return Ok(()),
            false => bail!("--user: only root may write as another user"),
        }
    }
    // What the host knows by number alone is no group of the list, but the first one is in any case.
    let groups = uzers::get_user_groups(name, gid).unwrap_or_default();
    let others = groups
        .iter()
        .map(uzers::Group::gid)
        .filter(|other| *other != gid);
    let groups: Vec<Gid> = std::iter::once(gid)
        .chain(others)
        .map(Gid::from_raw)
        .collect();
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    set_thread_groups(&groups)?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    Ok(())
}
