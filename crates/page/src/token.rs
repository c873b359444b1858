// SPDX-License-Identifier: MIT OR Apache-2.0
//! The secret that a request over TCP carries. It lives in the run directory, readable by root alone, and
//! outlives the daemon, so that an open page goes on after a restart; a boot ends it.

use anyhow::{Context, Result, ensure};
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use subtle::ConstantTimeEq;

/// Random bytes; twice as many hexadecimal digits.
const TOKEN_BYTES: usize = 32;

/// Where an instance keeps its token.
pub fn token_file(run_dir: &Path) -> PathBuf {
    run_dir.join("page.token")
}

/// Hexadecimal digits that whoever asks over TCP must know.
pub struct Token(String);

impl Token {
    /// The token of an earlier daemon, or a new one.
    ///
    /// # Errors
    /// When the file cannot be read or written, or others could have read or written it.
    pub(crate) fn open(run_dir: &Path) -> Result<Token> {
        let path = token_file(run_dir);
        match std::fs::File::open(&path) {
            Ok(file) => read(file).with_context(|| format!("{}: remove it", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                create(&path).with_context(|| format!("cannot make {}", path.display()))
            }
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Takes as long for a wrong token as for the right one.
    pub(crate) fn is(&self, given: &str) -> bool {
        self.0.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

fn read(file: std::fs::File) -> Result<Token> {
    let meta = file.metadata()?;
    ensure!(
        meta.uid() == 0 && meta.mode() & 0o077 == 0,
        "users other than root may read it"
    );
    let mut text = String::new();
    file.take(2 * TOKEN_BYTES as u64 + 2)
        .read_to_string(&mut text)?;
    let text = text.trim();
    ensure!(
        text.len() == 2 * TOKEN_BYTES && text.bytes().all(|b| b.is_ascii_hexdigit()),
        "it holds no token"
    );
    Ok(Token(text.to_owned()))
}

fn create(path: &Path) -> Result<Token> {
    let mut random = [0; TOKEN_BYTES];
    let filled = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    ensure!(
        filled == TOKEN_BYTES,
        "the kernel gave too few random bytes"
    );
    let mut text = String::new();
    for byte in random {
        let _ = write!(text, "{byte:02x}");
    }
    let mut options = std::fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    writeln!(file, "{text}")?;
    Ok(Token(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_kept_and_no_other_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let first = Token::open(dir.path()).map(|token| token.0).unwrap();
        let mode = std::fs::metadata(token_file(dir.path())).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
        if !rustix::process::geteuid().is_root() {
            println!("skipped: not root, whose the token's file must be");
            return;
        }
        let second = Token::open(dir.path()).unwrap();
        assert!(second.is(&first));
        for wrong in [
            "",
            &first[1..],
            &format!("{first}0"),
            &first.replace(&first[..1], "x"),
        ] {
            assert!(!second.is(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_file_that_others_may_read_or_that_holds_no_token_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        Token::open(dir.path()).unwrap();
        let open_to_all = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(token_file(dir.path()), open_to_all).unwrap();
        assert!(Token::open(dir.path()).is_err());
        std::fs::remove_file(token_file(dir.path())).unwrap();
        Token::open(dir.path()).unwrap();
        std::fs::write(token_file(dir.path()), "abc\n").unwrap();
        assert!(Token::open(dir.path()).is_err());
    }
}
