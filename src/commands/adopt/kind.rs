//! The kinds of object that `adopt` can write.

use clap::ValueEnum;

/// What can be adopted: everything that has a list resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Kind {
    /// Instances.
    Instance,
    /// Cloud disks.
    CloudDisk,
    /// Private images.
    PrivateImage,
}

impl Kind {
    /// Those that are asked for, each once; all where none is named.
    pub(in crate::commands) fn asked(named: &[Self]) -> Vec<Self> {
        let all = Self::value_variants().iter().copied();
        all.filter(|kind| named.is_empty() || named.contains(kind)).collect()
    }

    /// The type of the resource.
    pub(in crate::commands) fn type_name(self) -> &'static str {
        match self {
            Self::CloudDisk => "damodel_cloud_disk",
            Self::Instance => "damodel_instance",
            Self::PrivateImage => "damodel_private_image",
        }
    }

    /// The file that they are written to.
    pub(super) fn file(self) -> &'static str {
        match self {
            Self::CloudDisk => "cloud_disks.tf",
            Self::Instance => "instances.tf",
            Self::PrivateImage => "private_images.tf",
        }
    }

    /// One of them, in words.
    pub(in crate::commands) fn noun(self) -> &'static str {
        match self {
            Self::CloudDisk => "cloud disk",
            Self::Instance => "instance",
            Self::PrivateImage => "private image",
        }
    }

    /// What stands before a label that must not begin with a digit.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::CloudDisk => "disk",
            Self::Instance => "instance",
            Self::PrivateImage => "image",
        }
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::{
        framework::{self, Ends, Server},
        provider::{Damodel, Environment},
    };

    #[test]
    fn everything_that_can_be_listed_can_be_adopted() {
        let server = Server::new(Damodel::new(Environment::default()), Ends::default());
        let mut kinds: Vec<_> = Kind::asked(&[]).into_iter().map(Kind::type_name).collect();
        kinds.sort_unstable();
        let listed = server.registry().of(framework::Kind::ListResource);
        assert_eq!(kinds, listed.map(|entry| entry.name).collect::<Vec<_>>());
    }

    #[test]
    fn a_kind_is_asked_for_once() {
        assert_eq!(Kind::asked(&[Kind::CloudDisk, Kind::Instance, Kind::CloudDisk]), [Kind::Instance, Kind::CloudDisk]);
    }
}
