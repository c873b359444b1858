// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions of a library or program, and where in its file a probe of each belongs.

use object::{
    Object as _, ObjectSegment as _, ObjectSymbol as _, ReadCache, SegmentFlags, SymbolKind,
};
use std::collections::BTreeMap;
use std::fs::File;

/// A file may say that it has any number of them.
const MOST: usize = 64;

const PF_X: u32 = object::elf::PF_X;

/// Where a probe goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    /// In the file, in bytes.
    pub(super) offset: u64,
    /// The kernel cannot emulate the instruction that the probe replaces, and has to step over a copy of it: some
    /// ten times as expensive.
    pub(super) is_stepped: bool,
}

/// Those with a name that `is_wanted`, one for each address, in the order of the file; 64 at most. A symbol that
/// lies in no executable segment is none.
///
/// # Errors
/// When the file is not one of ELF, or cut short.
pub(super) fn functions(
    file: &File,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<Function>, object::Error> {
    let cache = ReadCache::new(file);
    let elf = object::File::parse(&cache)?;
    let mut found = BTreeMap::new();
    for symbol in elf.dynamic_symbols().chain(elf.symbols()) {
        let is_code = symbol.is_definition() && symbol.kind() == SymbolKind::Text;
        let Some(name) = symbol.name().ok().filter(|name| is_code && is_wanted(name)) else {
            continue;
        };
        if let Some((offset, code)) = place(&elf, symbol.address()) {
            let skipped = first_probed(&code);
            let function = Function {
                name: name.to_owned(),
                offset: offset + skipped as u64,
                is_stepped: !is_emulated(&code[skipped..]),
            };
            found.entry(function.offset).or_insert(function);
        }
        if found.len() == MOST {
            break;
        }
    }
    Ok(found.into_values().collect())
}

/// Its place in the file, and the code there.
fn place<'d>(elf: &object::File<'d, &'d ReadCache<&File>>, address: u64) -> Option<(u64, Vec<u8>)> {
    let segment = elf.segments().find(|segment| {
        let is_code =
            matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & PF_X != 0);
        let (begins, (_, bytes)) = (segment.address(), segment.file_range());
        is_code && address >= begins && address - begins < bytes
    })?;
    let (in_file, bytes) = segment.file_range();
    let within = address - segment.address();
    let length = (bytes - within).min(8);
    let code = segment.data_range(address, length).ok()??;
    Some((in_file + within, code.to_vec()))
}

/// `endbr64` (Intel CET) moves nothing on the stack: a probe behind it sees the same, and its instruction can be one that
/// the kernel emulates.
fn first_probed(code: &[u8]) -> usize {
    match code {
        [0xf3, 0x0f, 0x1e, 0xfa, _, ..] => 4,
        _ => 0,
    }
}

/// push, nop, call and jumps (arch/x86/kernel/uprobes.c: push_setup_xol_ops(), branch_setup_xol_ops()).
fn is_emulated(code: &[u8]) -> bool {
    matches!(
        code,
        [0x50..=0x57 | 0x70..=0x7f | 0x90 | 0xe8 | 0xe9 | 0xeb, ..]
            | [0x41, 0x50..=0x57, ..]
            | [0x0f, 0x80..=0x8f, ..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    fn own() -> File {
        File::open(std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    fn a_function_lies_where_the_file_has_its_code() {
        let found = functions(&own(), |name| name == "main").unwrap();
        let [main] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!(main.name, "main");
        assert!(main.offset > 0 && main.offset < own().metadata().unwrap().len());
        assert!(
            functions(&own(), |name| name == "no_such_function")
                .unwrap()
                .is_empty()
        );
        assert_eq!(functions(&own(), |_| true).unwrap().len(), MOST);
    }

    #[test]
    fn a_file_that_is_cut_short_or_lies_is_refused_or_has_none() {
        let mut head = vec![0; 1 << 16];
        own().read_exact(&mut head).unwrap();
        let tried = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            functions(&file, |_| true).unwrap_or_default().len()
        };
        for length in [0, 3, 64, 4096, 1 << 16] {
            assert_eq!(tried(&head[..length]), 0, "{length} bytes");
        }
        // Fields of the header, one after the other, all ones.
        for at in 16..64 {
            let mut lies = head.clone();
            lies[at] = 0xff;
            assert!(tried(&lies) <= MOST);
        }
    }

    #[test]
    fn the_instruction_says_what_a_probe_costs() {
        assert!(is_emulated(&[0x55]) && is_emulated(&[0x41, 0x57, 0x41]));
        assert!(!is_emulated(&[0x48, 0x83, 0xec, 0x08]) && !is_emulated(&[]));
        assert_eq!(first_probed(&[0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x57]), 4);
        assert_eq!(first_probed(&[0x41, 0x57]), 0);
    }
}
