//! The image that a create selects, and whether it can be used (service API, POST /api/instance/create, rules 3 to 5).

use std::sync::LazyLock;

use regex::Regex;

use super::{
    ProviderClient,
    source::{self, Filter},
    words::the_nearest,
};
use crate::{
    api::{Context, Error, PrivateImage, PublicImage, PublicImageFilter},
    framework::{Type, schema::Attribute},
};

/// The filters by an image's name: the exact name, a part of it, and a pattern. `part` describes the part, and
/// `on_part` makes its filter.
pub(super) fn name_filters(part: &str, on_part: fn(Attribute) -> Filter) -> [Filter; 3] {
    [
        Filter::Exact("name"),
        on_part(Attribute::optional("name_contains", Type::String, part)),
        source::pattern("name", "name_regex", "A regular expression that the name must match."),
    ]
}

/// The CUDA version that an image needs, and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cuda {
    /// The parts of the version, without trailing zeros: 12 and 12.0 are equal.
    pub(super) version: Vec<u64>,
    /// Whether a label contains it. A name or a software's name is only a hint.
    pub(super) is_labelled: bool,
}

/// An image that a create selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WantedImage<'a> {
    /// By its full address, which one of the two lists has exactly.
    Address(&'a str),
    /// By number and kind.
    Number { id: i64, public: bool },
}

impl WantedImage<'_> {
    /// The attribute that selects it.
    pub(super) fn attribute(self) -> &'static str {
        match self {
            Self::Address(_) => "image",
            Self::Number { .. } => "image_id",
        }
    }

    fn is(self, number: i64, listed: Option<&str>) -> bool {
        match self {
            Self::Address(address) => listed == Some(address),
            Self::Number { id, .. } => number == id,
        }
    }

    /// The text for an image that does not exist, with the most similar known address.
    fn unknown(self, known: &[String]) -> String {
        match self {
            Self::Address(address) => format!(
                "image {address:?} is not the address of a public or private image of this account, or the image is \
                 disabled.{} The data sources damodel_public_images and damodel_private_images list the addresses.",
                the_nearest(address, known.iter().map(String::as_str))
            ),
            Self::Number { id, public: true } => format!(
                "image_id {id} is not a public image of this service, or it is disabled. The data source \
                 damodel_public_images lists them."
            ),
            Self::Number { id, public: false } => format!(
                "image_id {id} is not a private image of this account. The data source damodel_private_images lists \
                 them."
            ),
        }
    }
}

/// The image that a configuration selects; `None` if it is unknown.
pub(super) fn wanted<'a>(id: Option<i64>, kind: Option<&str>, address: Option<&'a str>) -> Option<WantedImage<'a>> {
    match (id, kind) {
        (Some(id), Some(kind)) => Some(WantedImage::Number { id, public: kind == "public" }),
        _ => address.map(WantedImage::Address),
    }
}

/// What the lists show of an image.
#[derive(Debug, Default)]
pub(super) struct ListedImage {
    /// The CUDA version that it needs, if its labels or names contain it.
    pub(super) cuda: Option<Cuda>,
    /// The region of a private image. The service API has no rule for it (service API, Private image), so an image of
    /// another region may work.
    pub(super) region: Option<String>,
    /// Why it cannot be used, as a sentence.
    pub(super) fault: Option<String>,
}

/// Looks up an image: a number in the list of its kind, an address in both lists.
pub(super) async fn look_up(
    wanted: WantedImage<'_>,
    client: &ProviderClient,
    limits: &Context,
) -> Result<ListedImage, Error> {
    let (mut known, mut complete) = (Vec::new(), true);
    if !matches!(wanted, WantedImage::Number { public: false, .. }) {
        let listing = client.api.public_images(&PublicImageFilter::default(), limits).await?;
        if let Some(image) = listing.records.iter().find(|image| wanted.is(image.id, image.image_url.as_deref())) {
            return Ok(public(image));
        }
        complete &= listing.complete;
        known.extend(listing.records.iter().filter_map(|image| image.image_url.clone()));
    }
    if !matches!(wanted, WantedImage::Number { public: true, .. }) {
        let listing = client.api.private_images().snapshot(limits).await?;
        let mut records = listing.records.iter();
        if let Some(image) = records.find(|image| wanted.is(image.image_id, image.image_tag.as_deref())) {
            return Ok(private(image));
        }
        complete &= listing.complete;
        known.extend(listing.records.iter().filter_map(|image| image.image_tag.clone()));
    }
    Ok(ListedImage { fault: complete.then(|| wanted.unknown(&known)), ..ListedImage::default() })
}

fn public(image: &PublicImage) -> ListedImage {
    let labelled = newest(image.labels.iter());
    let guessed = || newest(image.softwares.iter().chain(&image.name).chain(&image.image_url));
    let is_labelled = labelled.is_some();
    let cuda = labelled.or_else(guessed).map(|version| Cuda { version, is_labelled });
    ListedImage { cuda, ..ListedImage::default() }
}

/// A private image must be ready.
fn private(image: &PrivateImage) -> ListedImage {
    let fault = (image.image_status == Some(0)).then(|| {
        let progress = image.push_progress.map(|percent| format!(" ({percent} % pushed)")).unwrap_or_default();
        let name = image.image_name.as_deref().unwrap_or_default();
        format!("Private image {name:?} is still being created{progress}. Run again when it is ready.")
    });
    let guessed = newest(image.image_name.iter().chain(&image.original_image).chain(&image.image_tag));
    let cuda = guessed.map(|version| Cuda { version, is_labelled: false });
    ListedImage { cuda, region: image.region.clone(), fault }
}

fn newest<'a>(texts: impl Iterator<Item = &'a String>) -> Option<Vec<u64>> {
    texts.filter_map(|text| cuda(text)).max()
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
        assert_eq!(wanted(None, Some("private"), address), address.map(WantedImage::Address));
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
