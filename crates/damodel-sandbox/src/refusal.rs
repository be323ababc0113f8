//! What the service refuses: its error codes, and a refused request.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An error code of the service (service API, Errors), in the document's order of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// 100002: a parameter is missing or invalid.
    InvalidParameter,
    /// 100006: the key or the timestamp is invalid.
    InvalidToken,
    /// 100014: a downstream task failed.
    InternalError,
    /// 100038: the main account's balance is too low.
    BalanceNotEnough,
    /// 100042: the sub-account lacks the permission.
    PermissionDenied,
    /// 100049: the account or its risk state forbids instance creation.
    UserCanNotCreateInstance,
    /// 130001: the image name exists.
    ImageNameExisted,
    /// 130002: an image is already being created.
    ImageUploading,
    /// 130003: save requests come too often.
    ImageSaveBusy,
    /// 130004: no image permission.
    ImageNoPrivilege,
    /// 130005: an instance being created uses the image.
    ImageUsedByInstance,
    /// 130006: the image does not exist.
    ImageNotFound,
    /// 130008: the daily number of saves is reached.
    ImageSaveCountExceeded,
    /// 160001: not enough resources.
    ResourceInsufficient,
    /// 160003: the instance is missing or belongs to another account.
    InstanceNotExistOrNoPrivilege,
    /// 160004: no node fits.
    NoMatchNode,
    /// 160012: status or billing type forbids manual release.
    InstanceCanNotBeReleased,
    /// 160013: the instance is released already.
    InstanceNotExistOrAlreadyReleased,
    /// 160014: the specification is missing, disabled or sold out.
    SpecNotExistOrDisable,
    /// 160015: the main account lacks real-name certification.
    CreateInstanceFailedForNotCertified,
    /// 160019: the image is missing, not ready or not permitted.
    FailedForInvalidImage,
    /// 160032: the image's CUDA version is higher than the specification supports.
    CreateInstanceFailedCudaNotMatch,
    /// 180007: a cloud disk could not be mounted.
    MountCloudDiskFailed,
    /// 180008: more than 8 cloud disks.
    ExceededCloudDiskMaxCount,
    /// 180009: a cloud disk could not be created.
    CreateCloudDiskError,
}

impl Code {
    /// Every code of the document, in its order.
    pub const ALL: [Self; 25] = [
        Self::InvalidParameter,
        Self::InvalidToken,
        Self::InternalError,
        Self::BalanceNotEnough,
        Self::PermissionDenied,
        Self::UserCanNotCreateInstance,
        Self::ImageNameExisted,
        Self::ImageUploading,
        Self::ImageSaveBusy,
        Self::ImageNoPrivilege,
        Self::ImageUsedByInstance,
        Self::ImageNotFound,
        Self::ImageSaveCountExceeded,
        Self::ResourceInsufficient,
        Self::InstanceNotExistOrNoPrivilege,
        Self::NoMatchNode,
        Self::InstanceCanNotBeReleased,
        Self::InstanceNotExistOrAlreadyReleased,
        Self::SpecNotExistOrDisable,
        Self::CreateInstanceFailedForNotCertified,
        Self::FailedForInvalidImage,
        Self::CreateInstanceFailedCudaNotMatch,
        Self::MountCloudDiskFailed,
        Self::ExceededCloudDiskMaxCount,
        Self::CreateCloudDiskError,
    ];

    /// Returns the numeric code, `code_n`.
    #[must_use]
    pub fn number(self) -> i64 {
        self.row().0
    }

    /// Returns the name, `code`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Returns the HTTP status that fits the error; the document does not name one (service API, Errors).
    #[must_use]
    pub fn fitting_status(self) -> u16 {
        self.row().2
    }

    fn row(self) -> (i64, &'static str, u16) {
        match self {
            Self::InvalidParameter => (100_002, "InvalidParameter", 400),
            Self::InvalidToken => (100_006, "InvalidToken", 401),
            Self::InternalError => (100_014, "InternalError", 500),
            Self::BalanceNotEnough => (100_038, "BalanceNotEnough", 402),
            Self::PermissionDenied => (100_042, "PermissionDenied", 403),
            Self::UserCanNotCreateInstance => (100_049, "UserCanNotCreateInstance", 403),
            Self::ImageNameExisted => (130_001, "ImageNameExisted", 409),
            Self::ImageUploading => (130_002, "ImageUploading", 409),
            Self::ImageSaveBusy => (130_003, "ImageSaveBusy", 409),
            Self::ImageNoPrivilege => (130_004, "ImageNoPrivilege", 403),
            Self::ImageUsedByInstance => (130_005, "ImageUsedByInstance", 409),
            Self::ImageNotFound => (130_006, "ImageNotFound", 404),
            Self::ImageSaveCountExceeded => (130_008, "ImageSaveCountExceeded", 409),
            Self::ResourceInsufficient => (160_001, "ResourceInsufficient", 409),
            Self::InstanceNotExistOrNoPrivilege => (160_003, "InstanceNotExistOrNoPrivilege", 404),
            Self::NoMatchNode => (160_004, "NoMatchNode", 409),
            Self::InstanceCanNotBeReleased => (160_012, "InstanceCanNotBeReleased", 409),
            Self::InstanceNotExistOrAlreadyReleased => (160_013, "InstanceNotExistOrAlreadyReleased", 404),
            Self::SpecNotExistOrDisable => (160_014, "SpecNotExistOrDisable", 409),
            Self::CreateInstanceFailedForNotCertified => (160_015, "CreateInstanceFailedForNotCertified", 403),
            Self::FailedForInvalidImage => (160_019, "FailedForInvalidImage", 400),
            Self::CreateInstanceFailedCudaNotMatch => (160_032, "CreateInstanceFailedCudaNotMatch", 400),
            Self::MountCloudDiskFailed => (180_007, "MountCloudDiskFailed", 409),
            Self::ExceededCloudDiskMaxCount => (180_008, "ExceededCloudDiskMaxCount", 400),
            Self::CreateCloudDiskError => (180_009, "CreateCloudDiskError", 500),
        }
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.number())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(deserializer)?;
        Self::ALL
            .into_iter()
            .find(|code| code.number() == number)
            .ok_or_else(|| serde::de::Error::custom(format_args!("{number} is no documented error code")))
    }
}

/// A request that the service refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServiceRefusal {
    pub(super) code: Code,
    pub(super) message: String,
}

impl ServiceRefusal {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// A refusal with 100002; the message names the parameter.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidParameter, message)
    }

    /// The account has no instance of this uid.
    pub(super) fn no_instance(uid: &str) -> Self {
        Self::new(Code::InstanceNotExistOrNoPrivilege, format!("the instance {uid:?} does not exist"))
    }
}
