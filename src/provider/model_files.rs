//! Sources of model files: this computer, or an address; `login` reads those of an instance. Used by the data source
//! and by the plan of a server.

use std::path::PathBuf;

use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

use crate::{
    api::{RemoteError, RemoteFile},
    llama::{self, GgufModel, ModelBytes},
    ssh,
};

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    /// The command in the instance failed.
    #[error("the command in the instance failed: {0}")]
    Command(String),
    /// The file on this computer cannot be read.
    #[error("{0}")]
    Local(#[from] std::io::Error),
    /// It does not exist.
    #[error("no such file in the instance")]
    Missing,
    /// It is a folder or a device.
    #[error("the path is not a regular file")]
    NotAFile,
    /// The file at the address cannot be read.
    #[error("{0}")]
    Remote(#[from] RemoteError),
    /// SSH failed.
    #[error("{0}")]
    Ssh(#[from] ssh::Error),
    /// The user of the login has no permission to read it.
    #[error("the SSH user has no permission to read the file")]
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

impl RemoteFiles {
    /// The model. If another version of the file is sent meanwhile, the reading begins again, at most twice.
    pub(super) async fn read(self) -> Result<GgufModel, llama::ModelError<FileError>> {
        let (path, mut source, mut times) = (self.0.path().to_owned(), self, 0);
        loop {
            match llama::read_model(&source, &path).await {
                Err(llama::ModelError::Source { error: FileError::Remote(RemoteError::Changed), .. }) if times < 2 => {
                    times += 1;
                    source = Self(source.0.afresh());
                }
                read => return read,
            }
        }
    }
}

impl ModelBytes for RemoteFiles {
    type Error = FileError;

    async fn size(&self, name: &str) -> Result<u64, FileError> {
        Ok(self.0.size(name).await?)
    }

    async fn bytes(&self, name: &str, offset: u64, length: usize) -> Result<Vec<u8>, FileError> {
        Ok(self.0.bytes(name, offset, length).await?)
    }
}
