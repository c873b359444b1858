// SPDX-License-Identifier: MIT OR Apache-2.0
//! Users as /etc/passwd has them. Other sources of names (LDAP and the like) are not asked: there a
//! policy gives the number.

/// A line of /etc/passwd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// The user's number.
    pub user: u32,
    /// The number of his first group.
    pub group: u32,
}

/// The account of that name; `None` when /etc/passwd does not have it.
pub fn account(name: &str) -> Option<Account> {
    let passwd = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut lines = passwd
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>());
    let fields = lines.find(|fields| fields.first() == Some(&name))?;
    Some(Account {
        user: fields.get(2)?.parse().ok()?,
        group: fields.get(3)?.parse().ok()?,
    })
}
