// SPDX-License-Identifier: MIT OR Apache-2.0
//! As whom a listener does what others ask: never as root.

use rustix::process::{Gid, Uid, geteuid};

/// A user as whom nothing is done.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// This is root, and nobody else is named.
    #[error(
        "a listener that root starts would do as root what others ask: give --user NAME, or start it as another user"
    )]
    Root,
    /// The host does not know it.
    #[error("--user: this host knows no user {0}")]
    Unknown(String),
    /// It is root by another name.
    #[error("--user: {0} is root; name another user")]
    IsRoot(String),
    /// It is another one than the one who starts this.
    #[error("--user: only root may become another user")]
    Other,
    /// This is not Linux.
    #[error("--user: not on this system: start it as that user")]
    NotHere,
    /// The kernel's.
    #[error("--user: {0}")]
    Kernel(#[from] rustix::io::Errno),
}

/// As whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// To be become; `None`: it is who starts this.
    user: Option<User>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct User {
    uid: Uid,
    gid: Gid,
    /// All that it is in, the first one among them.
    groups: Vec<Gid>,
}

impl Account {
    /// Of a user, or of the one who starts this.
    ///
    /// # Errors
    /// That would be root, there is no such user, or only root could become it.
    pub fn of(user: Option<&str>) -> Result<Account, AccountError> {
        let is_root = geteuid().is_root();
        let Some(name) = user else {
            return match is_root {
                true => Err(AccountError::Root),
                false => Ok(Account { user: None }),
            };
        };
        let user = uzers::get_user_by_name(name);
        let user = user.ok_or_else(|| AccountError::Unknown(name.to_owned()))?;
        let uid = Uid::from_raw(user.uid());
        match is_root {
            _ if uid.is_root() => Err(AccountError::IsRoot(name.to_owned())),
            true => Ok(Account {
                user: Some(User::new(uid, name, user.primary_group_id())),
            }),
            false if uid == geteuid() => Ok(Account { user: None }),
            false => Err(AccountError::Other),
        }
    }

    /// Who is to be become, if anybody.
    pub fn ids(&self) -> Option<(Uid, Gid)> {
        self.user.as_ref().map(|user| (user.uid, user.gid))
    }

    /// From here on this process is that user, of that user's groups, and can never be root again. For a process that has one
    /// thread yet.
    ///
    /// # Errors
    /// The kernel's, or this is not Linux.
    pub fn become_it(&self) -> Result<(), AccountError> {
        self.user.as_ref().map_or(Ok(()), become_user)
    }
}

impl User {
    fn new(uid: Uid, name: &str, gid: u32) -> User {
        // What the host knows by number alone is no group of the list, but the first one is in any case.
        let groups = uzers::get_user_groups(name, gid).unwrap_or_default();
        let others = groups.iter().map(uzers::Group::gid);
        let others = others.filter(|other| *other != gid);
        User {
            uid,
            gid: Gid::from_raw(gid),
            groups: std::iter::once(gid)
                .chain(others)
                .map(Gid::from_raw)
                .collect(),
        }
    }
}

#[cfg(target_os = "linux")]
fn become_user(user: &User) -> Result<(), AccountError> {
    use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
    let User { uid, gid, groups } = user;
    set_thread_groups(groups)?;
    set_thread_res_gid(*gid, *gid, *gid)?;
    set_thread_res_uid(*uid, *uid, *uid)?;
    Ok(())
}

/// Nobody has seen there that root is given up for good.
#[cfg(not(target_os = "linux"))]
fn become_user(User { groups: _, .. }: &User) -> Result<(), AccountError> {
    Err(AccountError::NotHere)
}
