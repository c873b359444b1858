// SPDX-License-Identifier: MIT OR Apache-2.0
//! Users and groups by name, from wherever this host keeps them: /etc/passwd, LDAP and the like (nsswitch.conf(5)).

/// A user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// The user's number.
    pub user: u32,
    /// The number of his first group.
    pub group: u32,
}

/// The account of that name; `None` when this host knows none.
pub fn account(name: &str) -> Option<Account> {
    let user = uzers::get_user_by_name(name)?;
    Some(Account {
        user: user.uid(),
        group: user.primary_group_id(),
    })
}

/// Whether this host has a group of that name.
pub fn has_group(name: &str) -> bool {
    uzers::get_group_by_name(name).is_some()
}
