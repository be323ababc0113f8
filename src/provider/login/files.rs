//! The files of an instance, as sources of models.

use crate::{
    llama::ModelBytes,
    provider::model_files::FileError,
    ssh::{Exit, Session},
};

/// Files of an instance.
#[derive(Debug)]
pub(in crate::provider) struct InstanceFiles<'a>(pub(in crate::provider) &'a Session);

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
