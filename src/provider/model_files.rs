//! Sources of model files: this computer, an address, or an instance. Used by the data source and by the plan of a
//! server.

use std::path::PathBuf;

use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

use crate::{
    api::{RemoteError, RemoteFile},
    model::ModelBytes,
    ssh::{self, Exit, Session},
};

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    /// The command in the instance failed.
    #[error("reading it in the instance failed: {0}")]
    Command(String),
    /// The file on this computer cannot be read.
    #[error("{0}")]
    Local(#[from] std::io::Error),
    /// It does not exist.
    #[error("no such file in the instance")]
    Missing,
    /// It is a folder or a device.
    #[error("it is not a regular file")]
    NotAFile,
    /// The file at the address cannot be read.
    #[error("{0}")]
    Remote(#[from] RemoteError),
    /// SSH failed.
    #[error("{0}")]
    Ssh(#[from] ssh::Error),
    /// The user of the login has no permission to read it.
    #[error("the SSH user is not permitted to read it")]
    Unreadable,
}

/// Files of the computer that runs Terraform.
#[derive(Debug)]
pub(super) struct LocalFiles;

impl ModelBytes for LocalFiles {
    type Error = FileError;

    async fn size(&self, name: &str) -> Result<u64, FileError> {
        let data = tokio::fs::metadata(name).await?;
        if data.is_file() { Ok(data.len()) } else { Err(FileError::NotAFile) }
    }

    async fn bytes(&self, name: &str, offset: u64, length: usize) -> Result<Vec<u8>, FileError> {
        let mut file = tokio::fs::File::open(PathBuf::from(name)).await?;
        file.seek(std::io::SeekFrom::Start(offset)).await?;
        let mut bytes = vec![0; length];
        file.read_exact(&mut bytes).await?;
        Ok(bytes)
    }
}

/// A file at an address.
#[derive(Debug)]
pub(super) struct RemoteFiles(pub(super) RemoteFile);

impl ModelBytes for RemoteFiles {
    type Error = FileError;

    async fn size(&self, name: &str) -> Result<u64, FileError> {
        Ok(self.0.size(name).await?)
    }

    async fn bytes(&self, name: &str, offset: u64, length: usize) -> Result<Vec<u8>, FileError> {
        Ok(self.0.bytes(name, offset, length).await?)
    }
}

/// Files of an instance.
#[derive(Debug)]
pub(super) struct InstanceFiles<'a>(pub(super) &'a Session);

/// Reads cover whole blocks of this size: `dd` seeks in blocks.
const BLOCK: u64 = 4096;

/// Prints the size of a file, by its path.
const SIZE: &str = r#"path=$1
case $path in "~/"*) path=$HOME/${path#"~/"};; esac
[ -e "$path" ] || exit 3
[ -f "$path" ] || exit 4
[ -r "$path" ] || exit 5
stat -L -c %s "$path""#;
/// Prints blocks of a file, by its path, the number of blocks before them, and their number.
const BYTES: &str = r#"path=$1
case $path in "~/"*) path=$HOME/${path#"~/"};; esac
exec dd if="$path" bs=4096 skip="$2" count="$3" 2>/dev/null"#;

impl InstanceFiles<'_> {
    async fn run(&self, script: &str, arguments: &[&str]) -> Result<Vec<u8>, FileError> {
        let output = self.0.script(script, arguments).await?;
        match &output.exit {
            Exit::Code(0) if output.left_out == 0 => Ok(output.stdout),
            Exit::Code(0) => Err(FileError::Command("the answer is incomplete".to_owned())),
            Exit::Code(3) => Err(FileError::Missing),
            Exit::Code(4) => Err(FileError::NotAFile),
            Exit::Code(5) => Err(FileError::Unreadable),
            other => Err(FileError::Command(other.to_string())),
        }
    }
}

impl ModelBytes for InstanceFiles<'_> {
    type Error = FileError;

    async fn size(&self, name: &str) -> Result<u64, FileError> {
        let said = self.run(SIZE, &[name]).await?;
        let size = String::from_utf8_lossy(&said).trim().parse();
        size.map_err(|_| FileError::Command("stat reports no size".to_owned()))
    }

    async fn bytes(&self, name: &str, offset: u64, length: usize) -> Result<Vec<u8>, FileError> {
        let (skip, lead) = (offset / BLOCK, offset % BLOCK);
        let blocks = (lead + length as u64).div_ceil(BLOCK);
        let said = self.run(BYTES, &[name, &skip.to_string(), &blocks.to_string()]).await?;
        let lead = usize::try_from(lead).unwrap_or_default();
        match said.get(lead..lead + length) {
            Some(bytes) => Ok(bytes.to_vec()),
            None => Err(FileError::Command("the file ends too early".to_owned())),
        }
    }
}
