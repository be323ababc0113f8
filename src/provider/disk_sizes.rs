//! The size of a cloud disk and its specification (service API, Cloud disk specification).

use crate::{
    api::{CloudDiskSpec, Listing, WithJson},
    framework::{Diagnostic, Path},
};

/// The error for a size that a specification does not allow, at its attribute.
pub(super) fn check(
    size_gb: i64,
    spec_id: i64,
    specs: &Listing<WithJson<CloudDiskSpec>>,
    path: impl Fn(&'static str) -> Path,
) -> Option<Diagnostic> {
    match specs.find(&spec_id) {
        None if specs.complete => Some(
            Diagnostic::error(
                "No such disk specification",
                format!(
                    "Cloud disk specification {spec_id} does not exist. The data source damodel_cloud_disk_specs lists \
                     them."
                ),
            )
            .at(path("spec_id")),
        ),
        None => None,
        Some(spec) => {
            let most = spec.max_size_g.filter(|most| size_gb > *most)?;
            let detail =
                format!("A disk of specification {spec_id} has at most {most} GB; {size_gb} GB are requested.");
            Some(Diagnostic::error("The disk would be too large", detail).at(path("size_gb")))
        }
    }
}
