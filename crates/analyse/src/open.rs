// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opens a capture: a file or standard input, decompressed when its first bytes say so, with progress on a terminal.

use anyhow::{Context, Result};
use flate2::read::MultiGzDecoder;
use indicatif::{ProgressBar, ProgressStyle};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;

/// RFC 1952, section 2.3.1.
const GZIP_MAGIC: [u8; 4] = [0x1f, 0x8b, 0x08, 0];
/// RFC 8878, section 3.1.1.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// RFC 8878, section 3.1.2: the first byte of its sixteen magic numbers differs in its lower half.
const SKIPPABLE_MAGIC: [u8; 4] = [0x50, 0x2a, 0x4d, 0x18];

/// A file below this is read in less than a second.
const PROGRESS_FROM_BYTES: u64 = 1 << 30;

/// The bytes of the capture itself.
pub fn open(path: &Path) -> Result<Box<dyn Read>> {
    let name = || path.display().to_string();
    let mut input = raw(path).with_context(name)?;
    let mut first = Vec::new();
    input
        .by_ref()
        .take(4)
        .read_to_end(&mut first)
        .with_context(name)?;
    let is_gzip = first.get(..3) == Some(&GZIP_MAGIC[..3]);
    let is_zstd = first == ZSTD_MAGIC || is_skippable(&first);
    let whole = io::Cursor::new(first).chain(input);
    if is_gzip {
        return Ok(Box::new(MultiGzDecoder::new(io::BufReader::new(whole))));
    }
    if is_zstd {
        let frames = Frames::new(Box::new(io::BufReader::new(whole)));
        return Ok(Box::new(frames.with_context(name)?));
    }
    Ok(Box::new(whole))
}

fn raw(path: &Path) -> Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    if bytes < PROGRESS_FROM_BYTES || !io::stderr().is_terminal() {
        return Ok(Box::new(file));
    }
    let style = ProgressStyle::with_template("{bar:30} {percent} %, {eta} left");
    let bar = ProgressBar::new(bytes).with_style(style.expect("a valid template"));
    Ok(Box::new(bar.wrap_read(file)))
}

fn is_skippable(magic: &[u8]) -> bool {
    magic.len() == 4 && magic[0] & 0xf0 == SKIPPABLE_MAGIC[0] && magic[1..] == SKIPPABLE_MAGIC[1..]
}

/// The frames of a zstd file, one after the other: parallel compressors and appended files have several, and skippable
/// ones among them, with tables of where each begins.
struct Frames {
    decoder: Option<StreamingDecoder<Ahead, FrameDecoder>>,
}

impl Frames {
    fn new(input: Box<dyn Read>) -> io::Result<Frames> {
        let first = Vec::new();
        Frames::next(Ahead { first, input })
    }

    fn next(mut input: Ahead) -> io::Result<Frames> {
        let decoder = match input.find_frame()? {
            true => Some(StreamingDecoder::new(input).map_err(io::Error::other)?),
            false => None,
        };
        Ok(Frames { decoder })
    }
}

impl Read for Frames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(decoder) = &mut self.decoder else {
                return Ok(0);
            };
            let count = decoder.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let rest = self.decoder.take().expect("it was there").into_inner();
            self.decoder = Frames::next(rest)?.decoder;
        }
    }
}

/// An input of which the first bytes have been looked at.
struct Ahead {
    first: Vec<u8>,
    input: Box<dyn Read>,
}

impl Ahead {
    /// Passes over skippable frames; whether another follows.
    fn find_frame(&mut self) -> io::Result<bool> {
        loop {
            let mut magic = Vec::new();
            self.take(4).read_to_end(&mut magic)?;
            if !is_skippable(&magic) {
                self.first = magic;
                return Ok(!self.first.is_empty());
            }
            let mut length = [0; 4];
            self.read_exact(&mut length)?;
            let length = u64::from(u32::from_le_bytes(length));
            if io::copy(&mut self.take(length), &mut io::sink())? < length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

impl Read for Ahead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.first.is_empty() {
            return self.input.read(buffer);
        }
        let count = self.first.as_slice().read(buffer)?;
        self.first.drain(..count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(bytes: &[u8]) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("capture");
        File::create(&path).unwrap().write_all(bytes).unwrap();
        let mut all = Vec::new();
        open(&path).unwrap().read_to_end(&mut all).unwrap();
        all
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    }

    #[test]
    fn compressed_files_are_told_by_their_first_bytes() {
        let text = b"capture ".repeat(10_000);
        assert_eq!(read(&text), text);
        for compress in [gzip, zstd] {
            assert_eq!(read(&compress(&text)), text);
            let twice = [compress(&text), compress(b"more")].concat();
            assert_eq!(read(&twice), [&text[..], b"more"].concat());
        }
        assert_eq!(read(b"ab"), b"ab", "shorter than a magic number");
    }

    #[test]
    fn skippable_frames_of_zstd_are_passed_over_wherever_they_stand() {
        let skippable = |number: u8, content: &[u8]| {
            let length = (content.len() as u32).to_le_bytes();
            [&[0x50 | number, 0x2a, 0x4d, 0x18], &length[..], content].concat()
        };
        let (text, more) = (b"capture ".repeat(10_000), b"more");
        let parts = [
            skippable(0, b"size"),
            zstd(&text),
            skippable(15, &[]),
            zstd(more),
            skippable(14, b"a table of where frames begin"),
        ];
        assert_eq!(read(&parts.concat()), [&text[..], more].concat());
        assert_eq!(read(&skippable(3, b"alone")), b"");
    }
}
