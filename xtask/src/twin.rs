// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rust files that bindgen makes of C, and that are checked in, so that a build needs no libclang.

use anyhow::{Context, Result, ensure};
use bindgen::Builder;
use std::path::Path;

/// A Rust file and the C file that it is made of, both from the root of the repository.
pub struct Twin {
    pub rust: &'static str,
    pub c: &'static str,
    pub bindings: fn(Builder) -> Builder,
}

impl Twin {
    /// Writes the Rust file.
    pub fn write(&self, root: &Path) -> Result<()> {
        std::fs::write(root.join(self.rust), self.generate(root)?).context(self.rust)
    }

    /// Fails when the Rust file is not what the C gives.
    pub fn check(&self, root: &Path) -> Result<()> {
        let twin = std::fs::read_to_string(root.join(self.rust)).context(self.rust)?;
        ensure!(
            twin == self.generate(root)?,
            "{} differs from {}: run `cargo xtask abi`",
            self.rust,
            self.c
        );
        Ok(())
    }

    fn generate(&self, root: &Path) -> Result<String> {
        let builder = Builder::default()
            .header(root.join(self.c).to_string_lossy())
            .disable_header_comment()
            .prepend_enum_name(false)
            .use_core()
            .derive_default(true)
            .derive_eq(true)
            .formatter(bindgen::Formatter::Rustfmt)
            .rustfmt_configuration_file(Some(root.join("rustfmt.toml")));
        let bindings = (self.bindings)(builder).generate().with_context(|| {
            let c = self.c;
            format!("bindgen could not read {c} (it needs libclang: the package clang)")
        })?;
        Ok(bindings.to_string())
    }
}
