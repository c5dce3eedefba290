//! Files that are compressed with Zstandard.

use std::io::{self, BufRead, BufReader, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// The beginning of a file in the format of zstd.
pub const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The content of a compressed file: that of all its frames, one after the other. A frame whose checksum is not that of its
/// content, or that ends too early, is an error of reading.
pub struct Content<R> {
    input: BufReader<R>,
    decoder: FrameDecoder,
    /// A frame has begun and was not read to its end.
    inside: bool,
}

impl<R: Read> Content<R> {
    /// The content of `input`; nothing is read yet.
    pub fn of(input: R) -> Self {
        Content { input: BufReader::new(input), decoder: FrameDecoder::new(), inside: false }
    }

    /// Goes on to the next frame with content; `false` at the end.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.input) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    let skipped = io::copy(&mut (&mut self.input).take(length.into()), &mut io::sink())?;
                    if skipped < length.into() {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(damaged(error)),
            }
        }
        Ok(false)
    }
}

fn damaged(why: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("what is compressed is damaged: {}", why.to_string()))
}

impl<R: Read> Read for Content<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.inside {
                self.inside = self.next_frame()?;
                if !self.inside {
                    return Ok(0);
                }
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.input, one).map_err(damaged)?;
            }
            let n = self.decoder.read(buffer)?;
            if n > 0 || buffer.is_empty() {
                return Ok(n);
            }
            self.inside = false;
            let (told, found) = (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum());
            if told.is_some() && told != found {
                return Err(damaged("a checksum is not that of the content"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn packed(text: &str) -> Vec<u8> {
        compress_to_vec(text.as_bytes(), CompressionLevel::Fastest)
    }

    fn content(bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        Content::of(bytes).read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn all_frames_are_read() {
        let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
        let all = [packed("one\n"), skippable, packed(""), packed("two\n")].concat();
        assert_eq!(content(&all).expect("it is whole"), "one\ntwo\n");
        assert_eq!(content(&[]).expect("nothing"), "");
    }

    #[test]
    fn damage_is_an_error() {
        let whole = packed(&"what was said\n".repeat(100));
        for cut in 1..whole.len() {
            assert!(content(&whole[..cut]).is_err(), "cut at {cut}");
        }
        assert!(content(&[&whole[..], b"more"].concat()).is_err());
        let mut sums = 0;
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 1;
            // A bit that says nothing of the content may differ.
            sums += usize::from(content(&other).is_err_and(|e| e.to_string().contains("checksum")));
            assert!(content(&other).map_or(true, |text| text == "what was said\n".repeat(100)), "bit {at}");
        }
        assert!(sums > 0, "no checksum was compared");
    }
}
