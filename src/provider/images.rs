//! The image that a create selects, and whether it can be used (service API, POST /api/instance/create, rules 3 to 5).

use std::sync::LazyLock;

use regex::Regex;

use super::{ProviderClient, words::the_nearest};
use crate::api::{Context, Error, Listing, PrivateImage, PublicImage, PublicImageFilter, WithJson};

/// The CUDA version that an image needs, and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cuda {
    /// The parts of the version, without trailing zeros: 12 and 12.0 are equal.
    pub(super) version: Vec<u64>,
    /// Whether a label contains it. A name or a software's name is only a hint.
    pub(super) is_labelled: bool,
}

/// An image that a create selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WantedImage<'a> {
    /// By its full address, which shows whether it is public.
    Address { address: &'a str, public: bool },
    /// By number and kind.
    Number { id: i64, public: bool },
}

impl WantedImage<'_> {
    /// The attribute that selects it.
    pub(super) fn attribute(&self) -> &'static str {
        match self {
            Self::Address { .. } => "image",
            Self::Number { .. } => "image_id",
        }
    }

    /// The text for an image that does not exist, with the most similar known address.
    fn unknown<'a>(&self, place: &str, known: impl Iterator<Item = &'a String>) -> String {
        let kind = if self.is_public() { "public" } else { "private" };
        let (named, nearest) = match self {
            Self::Address { address, .. } => {
                (format!("image {address:?}"), the_nearest(address, known.map(String::as_str)))
            }
            Self::Number { id, .. } => (format!("image_id {id}"), String::new()),
        };
        format!("{named} is not a {kind} image of {place}.{nearest} The data source damodel_{kind}_images lists them.")
    }

    pub(super) fn is_public(&self) -> bool {
        match self {
            Self::Address { public, .. } | Self::Number { public, .. } => *public,
        }
    }
}

/// The image that a configuration selects; `None` if it is unknown, or if an address does not show its kind.
pub(super) fn wanted<'a>(id: Option<i64>, kind: Option<&str>, address: Option<&'a str>) -> Option<WantedImage<'a>> {
    match (id, kind, address) {
        (Some(id), Some(kind), _) => Some(WantedImage::Number { id, public: kind == "public" }),
        (_, _, Some(address)) => {
            let (_, path) = address.split_once('/')?;
            is_public(path).map(|public| WantedImage::Address { address, public })
        }
        _ => None,
    }
}

/// Whether an image is public, from its address without the host; `None` if the address does not show it.
fn is_public(path: &str) -> Option<bool> {
    match (path.contains("model_library"), path.contains("user_private")) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

/// The CUDA version that a public image needs, if its labels or names contain it. The error is the reason why the image
/// cannot be used.
pub(super) fn public(
    listing: &Listing<WithJson<PublicImage>>,
    wanted: &WantedImage<'_>,
) -> Result<Option<Cuda>, String> {
    let found = listing.records.iter().find(|image| match wanted {
        WantedImage::Address { address, .. } => image.image_url.as_deref() == Some(*address),
        WantedImage::Number { id, .. } => image.id == *id,
    });
    match found {
        Some(image) => {
            let labelled = newest(image.labels.iter());
            let guessed = || newest(image.softwares.iter().chain(&image.name).chain(&image.image_url));
            let is_labelled = labelled.is_some();
            Ok(labelled.or_else(guessed).map(|version| Cuda { version, is_labelled }))
        }
        None if listing.complete => {
            let addresses = listing.records.iter().filter_map(|image| image.image_url.as_ref());
            Err(wanted.unknown("this service, or it is disabled", addresses))
        }
        None => Ok(None),
    }
}

/// Like [`public`], for a private image, which must be ready.
pub(super) fn private(listing: &Listing<PrivateImage>, wanted: &WantedImage<'_>) -> Result<Option<Cuda>, String> {
    let Some(image) = find_private(listing, wanted) else {
        return if listing.complete {
            let addresses = listing.records.iter().filter_map(|image| image.image_tag.as_ref());
            Err(wanted.unknown("this account", addresses))
        } else {
            Ok(None)
        };
    };
    if image.image_status == Some(0) {
        let progress = image.push_progress.map(|percent| format!(" ({percent} % pushed)")).unwrap_or_default();
        return Err(format!("The private image is still being created{progress}."));
    }
    let guessed = newest(image.image_name.iter().chain(&image.original_image).chain(&image.image_tag));
    Ok(guessed.map(|version| Cuda { version, is_labelled: false }))
}

fn newest<'a>(texts: impl Iterator<Item = &'a String>) -> Option<Vec<u64>> {
    texts.filter_map(|text| cuda(text)).max()
}

/// The region of a private image. The service API has no rule for it (service API, Private image), so an image of
/// another region may work.
pub(super) fn region<'a>(listing: &'a Listing<PrivateImage>, wanted: &WantedImage<'_>) -> Option<&'a str> {
    find_private(listing, wanted)?.region.as_deref()
}

fn find_private<'a>(listing: &'a Listing<PrivateImage>, wanted: &WantedImage<'_>) -> Option<&'a PrivateImage> {
    listing.records.iter().find(|image| match wanted {
        WantedImage::Address { address, .. } => image.image_tag.as_deref() == Some(*address),
        WantedImage::Number { id, .. } => image.image_id == *id,
    })
}

/// The address of an image with this number and kind; `None` if the lists lack it.
pub(super) async fn address(
    id: i64,
    kind: &str,
    client: &ProviderClient,
    limits: &Context,
) -> Result<Option<String>, Error> {
    Ok(match kind {
        "public" => {
            let listing = client.api.public_images(&PublicImageFilter::default(), limits).await?;
            listing.find(&id).and_then(|image| image.image_url.clone())
        }
        "private" => {
            let listing = client.api.private_images().snapshot(limits).await?;
            listing.find(&id).and_then(|image| image.image_tag.clone())
        }
        _ => None,
    })
}

/// The parts of a version such as `12.4`, without trailing zeros.
pub(super) fn version(text: &str) -> Option<Vec<u64>> {
    let mut parts: Vec<u64> = text.trim().split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    while parts.last() == Some(&0) {
        parts.pop();
    }
    Some(parts)
}

/// The CUDA version in a text: `cuda12.4`, `CUDA 11.8`, `cuda-12`.
fn cuda(text: &str) -> Option<Vec<u64>> {
    static PATTERN: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(?i)cuda[ _:v-]{0,3}(\d{1,2}(?:\.\d{1,2})?)(?:[^0-9]|$)").ok());
    let found = PATTERN.as_ref()?.captures(text)?;
    version(found.get(1)?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pair_wins_over_the_address() {
        let address = Some("reg/model_library/a:1");
        assert_eq!(wanted(Some(7), Some("private"), address), Some(WantedImage::Number { id: 7, public: false }));
        assert!(wanted(None, None, address).is_some_and(|image| image.is_public()));
        assert_eq!(wanted(None, None, Some("reg/other/a:1")), None);
        assert_eq!(wanted(None, None, Some("reg/model_library/user_private/a:1")), None);
    }

    #[test]
    fn cuda_is_read_from_names() {
        for (text, expected) in [
            ("pytorch:2.5.1-cuda12.4", Some(vec![12, 4])),
            ("CUDA 11.8", Some(vec![11, 8])),
            ("cuda-12", Some(vec![12])),
            ("cuda12.0", Some(vec![12])),
            ("ubuntu:22.04", None),
            ("barracuda", None),
        ] {
            assert_eq!(cuda(text), expected, "{text}");
        }
    }
}
