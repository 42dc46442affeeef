//! Small files that a person names: secrets and certificates.
//!
//! Guarantee: a read ends, and returns at most [`MAX_BYTES`].

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Maximum size of a secret or of certificates.
pub const MAX_BYTES: usize = 1 << 20;

/// Reads a small file.
///
/// Devices and pipes are refused: they may have no end, or block.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Checked before opening, because opening a pipe waits for a writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if MAX_BYTES < bytes.len() {
        return Err(io::Error::other(format!("it is larger than {MAX_BYTES} bytes")));
    }
    Ok(bytes)
}

/// Reads a small file of text.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|_| io::Error::other("it is not valid UTF-8"))
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
