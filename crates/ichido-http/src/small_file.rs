//! Small files that a person names: secrets, certificates, configurations.
//!
//! Guarantee: a read ends, and returns no more than its limit.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Maximum size of a secret or of certificates.
pub const MAX_BYTES: usize = 1 << 20;

/// Reads a small file, up to [`MAX_BYTES`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_within(path, MAX_BYTES)
}

/// Reads a file up to a limit.
///
/// Devices and pipes are refused: they may have no end, or block.
fn read_within(path: &Path, max_bytes: usize) -> io::Result<Vec<u8>> {
    // Checked before opening, because opening a pipe waits for a writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(max_bytes as u64 + 1).read_to_end(&mut bytes)?;
    if max_bytes < bytes.len() {
        return Err(io::Error::other(format!("it is larger than {max_bytes} bytes")));
    }
    Ok(bytes)
}

/// Reads a small file of text, up to [`MAX_BYTES`].
pub fn read_text(path: &Path) -> io::Result<String> {
    read_text_within(path, MAX_BYTES)
}

/// Reads a file of text up to a limit.
pub fn read_text_within(path: &Path, max_bytes: usize) -> io::Result<String> {
    String::from_utf8(read_within(path, max_bytes)?).map_err(|_| io::Error::other("it is not valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_an_end_and_large_ones_are_refused() {
        let path = std::env::temp_dir().join(format!("ichido-small-file-{}", std::process::id()));
        std::fs::write(&path, vec![b'x'; MAX_BYTES]).unwrap();
        assert_eq!(read_text(&path).unwrap().len(), MAX_BYTES);
        std::fs::write(&path, vec![b'x'; MAX_BYTES + 1]).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("larger than"));
        std::fs::remove_file(&path).unwrap();
        #[cfg(unix)]
        assert!(read(Path::new("/dev/zero")).unwrap_err().to_string().contains("regular file"));
    }
}
