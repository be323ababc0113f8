//! The resource `damodel_private_image`: the saved system disk of an instance (service API, Images).

mod listed;

use serde::{Deserialize, Serialize};

use super::{
    PlanContext, ProviderClient,
    client::planning_limits,
    columns::{self, Column, decimal, moment, text, whole, word},
    errors::{Failure, database_id_advice, missing_instance},
    images,
    lifecycle::{self, AfterRefusal, Common, Free, ImportTarget, Kind, Managed, ManagedExt as _, Release, absence},
    protection, rules,
    words::{capitalized, image_status, image_type, keep, keep_or_delete, time},
};
use crate::{
    api::{self, Code, Context, InstanceUid, ObjectKind, SaveImage},
    creation::{Accepted, WhileBusy},
    framework::{
        Attr, CreatePlan, Diagnostic, Diagnostics, IdentityAttribute, Path, Schema, Type, UpdatePlan,
        schema::{Attribute, Replacement},
        timeouts::{DefaultTimeouts, Timeouts, minutes},
        value::Number,
    },
};

pub(super) use self::listed::{list_all, plural, singular};

pub(super) type Resource = lifecycle::Resource<PrivateImage>;

/// A private image of a list (service API, Private image).
pub(super) static COLUMNS: &[Column] = &[
    whole("image_id", "The image's number; an instance takes it as `image_id` with `image_type = \"private\"`.")
        .logged(),
    text("image_uuid", "The image's UUID.").logged(),
    text("name", "The image's name.").of_field("image_name").logged(),
    text("image_tag", "The full address; an instance takes it as `image`.").logged(),
    word("status", image_status, "`creating` or `ready`.").of_field("image_status").logged(),
    whole("push_progress", "How far the image is pushed, 0 to 100.").logged(),
    decimal("image_size", "The size, as the service reports it."),
    text("original_image", "The image that the instance used.").logged(),
    text("region", "The image's region.").logged(),
    moment("create_time", "When it was created (RFC 3339, UTC).").logged(),
    moment("updated_at", "When it was last changed (RFC 3339, UTC).").logged(),
    whole("upperdir_files", "How many files the instance's writable layer had."),
    whole("upperdir_bytes", "How many bytes the instance's writable layer had."),
];

fn schema() -> Schema {
    let mut attributes = vec![
        Attribute::computed("id", Type::String, "The image's number, as text."),
        Attribute::optional(
            "instance_id",
            Type::String,
            "The instance whose system disk is saved (`id` of `damodel_instance`). Needed to create an image; null \
             after an import.",
        )
        .replaces(Replacement::IfKnown)
        .validate(rules::instance_uid()),
        Attribute::with_default(
            "deletion_protection",
            Type::Bool,
            false,
            "If `true`, destroying or replacing the image fails. To destroy it, first set this to `false` and apply. \
             Recommended: replacing the image's instance also replaces the image.",
        ),
        Attribute::required("name", Type::String, "The image's name, unique in the account. Changed in place.")
            .validate(rules::non_empty()),
    ];
    let reported = columns::reported(COLUMNS, &attributes);
    attributes.extend(reported);
    Schema::new(
        "A private image: a saved system disk of an instance. The apply waits until it is pushed and ready, so that \
         the same apply can create an instance from it. Images are billed for as long as they are stored.",
        attributes,
    )
}

/// A `damodel_private_image`, as configured, planned or stored. Its attributes are described in the schema.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct PrivateImage {
    id: Attr<String>,
    instance_id: Attr<String>,
    deletion_protection: Attr<bool>,
    timeouts: Attr<Timeouts>,
    image_id: Attr<i64>,
    image_uuid: Attr<String>,
    name: Attr<String>,
    image_tag: Attr<String>,
    status: Attr<String>,
    push_progress: Attr<i64>,
    image_size: Attr<Number>,
    original_image: Attr<String>,
    region: Attr<String>,
    create_time: Attr<String>,
    updated_at: Attr<String>,
    upperdir_files: Attr<i64>,
    upperdir_bytes: Attr<i64>,
}

impl Managed for PrivateImage {
    type Object = api::PrivateImage;
    type Request = SaveImage;

    const KIND: Kind = Kind {
        type_name: "damodel_private_image",
        schema,
        timeouts: DefaultTimeouts { create: minutes(120), read: minutes(2), update: minutes(5), delete: minutes(10) },
        // While the service is busy with another save, the request is repeated; the daily limit is final (service API,
        // POST /api/instance/save_image_v2).
        while_busy: WhileBusy::Wait,
        releases_later: false,
        identity: || IdentityAttribute::required("image_id", "image_id", Type::Number, "The image's number."),
        import_id: "the image's number (image_id), not its name",
    };

    fn planned_request(&self, _client: &ProviderClient) -> Option<SaveImage> {
        Some(SaveImage::new(InstanceUid::new(self.instance_id.as_str()?), self.name()?))
    }

    async fn request(&mut self, client: &ProviderClient, limits: &Context) -> Result<SaveImage, Diagnostic> {
        let Some(request) = self.planned_request(client) else {
            let detail = "A new image needs instance_id.";
            return Err(Diagnostic::error("Missing required argument", detail).at(Path::to("instance_id")));
        };
        let original_images = original_images(&request.instance_uid, client, limits).await;
        Ok(SaveImage { original_images, ..request })
    }

    async fn plan_create(plan: &mut CreatePlan<Self>, context: &PlanContext<'_>) {
        if plan.planned.instance_id.is_null() {
            plan.diagnostics.error_at(
                Path::to("instance_id"),
                "Missing required argument",
                "A new image needs instance_id: the instance whose system disk is saved.",
            );
        }
        // The name of a replaced image is free when the new image needs it.
        let replaced = protection::replaced(&plan.private).and_then(|id| id.parse().ok());
        check_name(&plan.planned, replaced, context, &mut plan.diagnostics).await;
    }

    async fn explain_refusal(&self, error: &api::Error, client: &ProviderClient, limits: &Context) -> Option<String> {
        if error.code() != Some(Code::ImageNameExisted) {
            return database_id_advice(error, self.instance_id.as_str()?);
        }
        let listing = client.api.private_images().fresh(limits).await.ok()?;
        let holder = listing.records.iter().find(|image| image.image_name.as_deref() == self.name())?;
        Some(taken(holder, client))
    }

    fn creation_ended(image: &api::PrivateImage) -> bool {
        image.image_status.is_some_and(|status| status != 0)
    }

    fn unfit(&self, image: &api::PrivateImage, accepted: &Accepted<api::PrivateImage>) -> Option<Diagnostic> {
        (!image.is_ready()).then(|| {
            Diagnostic::warning(
                format!(
                    "{} is {}",
                    capitalized(&self.title()),
                    image.image_status.map(image_status).unwrap_or_default()
                ),
                format!(
                    "The service accepted the save, but the status is not ready. The image is in the state: check it \
                     in the console{}.",
                    accepted.ids
                ),
            )
        })
    }

    fn common(&self) -> Common<'_> {
        Common {
            id: &self.id,
            name: &self.name,
            status: &self.status,
            deletion_protection: &self.deletion_protection,
            uid: Some(&self.image_uuid),
        }
    }

    fn name_mut(&mut self) -> &mut Attr<String> {
        &mut self.name
    }

    fn take_record(&mut self, image: &api::PrivateImage) {
        self.id = Attr::Known(image.image_id.to_string());
        self.image_id = image.image_id.into();
        keep(&mut self.image_uuid, image.image_uuid.clone());
        keep(&mut self.name, image.image_name.clone());
        self.image_tag = image.image_tag.clone().into();
        self.status = image.image_status.map(image_status).into();
        self.push_progress = image.push_progress.into();
        self.image_size = image.image_size.clone().map(Into::into).into();
        self.original_image = image.original_image.clone().into();
        self.region = image.region.clone().into();
        self.create_time = time(image.create_time).into();
        self.updated_at = time(image.updated_at).into();
        self.upperdir_files = image.upperdir_files.into();
        self.upperdir_bytes = image.upperdir_bytes.into();
    }

    async fn plan_update(plan: &mut UpdatePlan<Self>, context: &PlanContext<'_>) {
        protection::note(&mut plan.private, plan.prior.id.as_str().unwrap_or_default());
        protection::warn_of_loss(plan, "The old image is deleted permanently.");
        let now = format!("{} was not deleted.", capitalized(&plan.prior.title()));
        let missing = missing_instance(&plan.config.instance_id, &plan.replace, &now, context).await;
        plan.diagnostics.extend(missing.map(Into::into).unwrap_or_default());
        if plan.prior.name != plan.planned.name {
            check_name(&plan.planned, plan.prior.key(), context, &mut plan.diagnostics).await;
        }
    }

    async fn until_free(release: &Release<'_, Self>) -> Result<Free, Diagnostic> {
        let another = absence::is_another(&release.current.state, release.client, &release.limits).await;
        another.map_or(Ok(Free::Ready), Err)
    }

    fn may_be_gone(code: Code) -> bool {
        code == Code::ImageNotFound
    }

    fn after_refusal(_error: &api::Error, _image: &api::PrivateImage) -> AfterRefusal {
        AfterRefusal::Fail
    }

    async fn find(id: &str, client: &ProviderClient, limits: &Context) -> Result<ImportTarget<Self>, api::Error> {
        lifecycle::in_list(client, limits, |image: &api::PrivateImage| image.image_id.to_string() == id).await
    }
}

/// The text about the image that already has the configured name.
fn taken(holder: &api::PrivateImage, client: &ProviderClient) -> String {
    let (id, name) = (holder.image_id, holder.image_name.as_deref().unwrap_or_default());
    let entries = client.journal.list().map(|report| report.entries).unwrap_or_default();
    let left = entries.iter().find(|listed| {
        let record = &listed.record;
        record.kind == ObjectKind::PrivateImage
            && (record.marker == name || record.ids.as_ref().is_some_and(|ids| ids.id == id.to_string()))
    });
    let origin = if left.is_some() {
        " An earlier run created it, possibly from an instance that was replaced since, and its pending record still \
         exists."
    } else {
        ""
    };
    format!(
        "Private image {id} has this name.{origin} If another configuration, workspace or stage manages it, use \
         another name here. If no state has it:\n{}",
        keep_or_delete(ObjectKind::PrivateImage, &id.to_string())
    )
}

/// The names of the instance's own image, its address and its display name, which distinguish the image of this save
/// from another one with the same name. Without the address the result is empty: a display name alone does not prove
/// that an address belongs to another image.
async fn original_images(uid: &InstanceUid, client: &ProviderClient, limits: &Context) -> Vec<String> {
    match original_address(uid, client, limits).await {
        Ok(Some((address, name))) => [address].into_iter().chain(name).collect(),
        Ok(None) => Vec::new(),
        Err(error) => {
            tracing::debug!(%error, "the instance's image is unknown");
            Vec::new()
        }
    }
}

/// The address and the display name of an instance's image.
async fn original_address(
    uid: &InstanceUid,
    client: &ProviderClient,
    limits: &Context,
) -> Result<Option<(String, Option<String>)>, api::Error> {
    let instance = client.api.instances().detail(uid, limits).await?.instance;
    let (Some(id), Some(kind)) = (instance.image_id, instance.image_type.as_deref().map(image_type)) else {
        return Ok(None);
    };
    let address = images::address(id, &kind, client, limits).await?;
    Ok(address.map(|address| (address, instance.image_name)))
}

/// Checks that no image but `own` has the name, which the service would refuse (130001), before the apply creates
/// anything.
async fn check_name(
    planned: &PrivateImage,
    own: Option<i64>,
    context: &PlanContext<'_>,
    diagnostics: &mut Diagnostics,
) {
    let client = context.client.filter(|client| client.preflight);
    let (Some(client), Some(name)) = (client, planned.name.as_str()) else { return };
    let limits = planning_limits(context);
    match client.api.private_images().snapshot(&limits).await {
        Ok(listing) => {
            let holder = listing
                .records
                .iter()
                .find(|image| image.image_name.as_deref() == Some(name) && Some(image.image_id) != own);
            // A tainted image is deleted before its replacement is created.
            if let Some(holder) = holder
                && !client.is_tainted(ObjectKind::PrivateImage, &holder.image_id.to_string())
            {
                diagnostics.error_at(
                    Path::to("name"),
                    format!("The image name {name:?} exists"),
                    format!("Names of private images are unique in an account. {}", taken(holder, client)),
                );
            }
        }
        Err(error) => {
            let now = "The plan continues without this check.".to_owned();
            let failure = Failure { error: &error, tried: "check the image's name".to_owned(), now };
            diagnostics.extend(failure.of_a_check(client));
        }
    }
}
