// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists the built files of the page (web/dist), which the library embeds.

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() {
    // At run time, for a target directory may be that of another checkout.
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"))
        .join("../../web/dist");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    println!("cargo:rerun-if-changed={}", root.display());
    if !root.join("index.html").exists() {
        eprintln!("the page is not built: run `make setup` (it runs npm in web/)");
        std::process::exit(1);
    }
    let table = table(&root).expect("web/dist is readable");
    std::fs::write(out.join("page_files.rs"), table).expect("OUT_DIR is writable");
}

/// A slice of (path in the address, bytes), as Rust.
fn table(root: &Path) -> std::io::Result<String> {
    let mut table = "&[\n".to_owned();
    for directory in ["", "assets"] {
        let mut names: Vec<_> =
            std::fs::read_dir(root.join(directory))?.collect::<Result<_, _>>()?;
        names.sort_by_key(std::fs::DirEntry::file_name);
        for file in names.iter().filter(|entry| entry.path().is_file()) {
            let path = file.path().canonicalize()?;
            let name = Path::new("/").join(directory).join(file.file_name());
            let _ = writeln!(table, "({name:?}, include_bytes!({path:?})),");
        }
    }
    Ok(table + "]")
}
