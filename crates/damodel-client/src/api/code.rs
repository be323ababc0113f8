//! The error codes of the service, by name and number.

use std::fmt;

/// An error code (service API, Errors), in the order of that table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// 100002: a parameter is missing or invalid.
    InvalidParameter,
    /// 100006: the API token or the timestamp is invalid.
    InvalidToken,
    /// 100014: an internal error; it is unknown whether the request took effect.
    InternalError,
    /// 100038: the main account's balance is too low.
    BalanceNotEnough,
    /// 100042: the sub-account lacks permission.
    PermissionDenied,
    /// 100049: the account or its risk state forbids creating instances.
    UserCanNotCreateInstance,
    /// 130001: the image name exists.
    ImageNameExisted,
    /// 130002: another image is being created.
    ImageUploading,
    /// 130003: too many image saves.
    ImageSaveBusy,
    /// 130004: no permission for the image.
    ImageNoPrivilege,
    /// 130005: an instance that is being created uses the image.
    ImageUsedByInstance,
    /// 130006: the image does not exist.
    ImageNotFound,
    /// 130008: the daily limit of image saves is reached.
    ImageSaveCountExceeded,
    /// 160001: not enough resources.
    ResourceInsufficient,
    /// 160003: the instance does not exist in this account.
    InstanceNotExistOrNoPrivilege,
    /// 160004: no node has enough capacity.
    NoMatchNode,
    /// 160012: the status or billing type forbids a manual release.
    InstanceCanNotBeReleased,
    /// 160013: the instance does not exist or is already released.
    InstanceNotExistOrAlreadyReleased,
    /// 160014: the specification is missing, disabled or sold out.
    SpecNotExistOrDisable,
    /// 160015: the main account lacks real-name certification.
    CreateInstanceFailedForNotCertified,
    /// 160019: the image is missing, not ready or not permitted.
    FailedForInvalidImage,
    /// 160032: the image needs a newer CUDA than the specification supports.
    CreateInstanceFailedCudaNotMatch,
    /// 180007: a cloud disk could not be mounted.
    MountCloudDiskFailed,
    /// 180008: more than 8 cloud disks.
    ExceededCloudDiskMaxCount,
    /// 180009: a cloud disk could not be created.
    CreateCloudDiskError,
    /// An undocumented number; 0 if the service sent none.
    Other(i64),
}

/// Number, name and variant of every documented code.
const TABLE: [(i64, &str, Code); 25] = [
    (100002, "InvalidParameter", Code::InvalidParameter),
    (100006, "InvalidToken", Code::InvalidToken),
    (100014, "InternalError", Code::InternalError),
    (100038, "BalanceNotEnough", Code::BalanceNotEnough),
    (100042, "PermissionDenied", Code::PermissionDenied),
    (100049, "UserCanNotCreateInstance", Code::UserCanNotCreateInstance),
    (130001, "ImageNameExisted", Code::ImageNameExisted),
    (130002, "ImageUploading", Code::ImageUploading),
    (130003, "ImageSaveBusy", Code::ImageSaveBusy),
    (130004, "ImageNoPrivilege", Code::ImageNoPrivilege),
    (130005, "ImageUsedByInstance", Code::ImageUsedByInstance),
    (130006, "ImageNotFound", Code::ImageNotFound),
    (130008, "ImageSaveCountExceeded", Code::ImageSaveCountExceeded),
    (160001, "ResourceInsufficient", Code::ResourceInsufficient),
    (160003, "InstanceNotExistOrNoPrivilege", Code::InstanceNotExistOrNoPrivilege),
    (160004, "NoMatchNode", Code::NoMatchNode),
    (160012, "InstanceCanNotBeReleased", Code::InstanceCanNotBeReleased),
    (160013, "InstanceNotExistOrAlreadyReleased", Code::InstanceNotExistOrAlreadyReleased),
    (160014, "SpecNotExistOrDisable", Code::SpecNotExistOrDisable),
    (160015, "CreateInstanceFailedForNotCertified", Code::CreateInstanceFailedForNotCertified),
    (160019, "FailedForInvalidImage", Code::FailedForInvalidImage),
    (160032, "CreateInstanceFailedCudaNotMatch", Code::CreateInstanceFailedCudaNotMatch),
    (180007, "MountCloudDiskFailed", Code::MountCloudDiskFailed),
    (180008, "ExceededCloudDiskMaxCount", Code::ExceededCloudDiskMaxCount),
    (180009, "CreateCloudDiskError", Code::CreateCloudDiskError),
];

impl Code {
    /// The code of a number; an undocumented one becomes [`Code::Other`].
    #[must_use]
    pub fn from_number(number: i64) -> Self {
        TABLE.iter().find(|(known, _, _)| *known == number).map_or(Self::Other(number), |(_, _, code)| *code)
    }

    /// The code of a documented name, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|(_, known, _)| known.eq_ignore_ascii_case(name)).map(|(_, _, code)| *code)
    }

    /// The number (`code_n`).
    #[must_use]
    pub fn number(self) -> i64 {
        if let Self::Other(number) = self {
            return number;
        }
        TABLE.iter().find(|(_, _, code)| *code == self).map_or(0, |(number, _, _)| *number)
    }

    /// The documented name (`code`); `None` for an undocumented number.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        TABLE.iter().find(|(_, _, code)| *code == self).map(|(_, name, _)| *name)
    }

    /// Whether the service is busy with an image of the account (130002, 130003): the same request may succeed later.
    #[must_use]
    pub fn is_busy(self) -> bool {
        matches!(self, Self::ImageUploading | Self::ImageSaveBusy)
    }

    /// Whether the service has no stock for the request (160001, 160004, 160014): it may succeed later.
    #[must_use]
    pub fn is_out_of_stock(self) -> bool {
        matches!(self, Self::ResourceInsufficient | Self::NoMatchNode | Self::SpecNotExistOrDisable)
    }

    /// Whether another specification may be accepted (no stock, or 160032).
    #[must_use]
    pub fn is_about_the_specification(self) -> bool {
        self.is_out_of_stock() || self == Self::CreateInstanceFailedCudaNotMatch
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "code {}", self.number()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_code_goes_both_ways() {
        for (number, name, code) in TABLE {
            assert_eq!(Code::from_number(number), code);
            assert_eq!(Code::from_name(name), Some(code));
            assert_eq!(code.number(), number);
            assert_eq!(code.to_string(), name);
        }
        assert_eq!(Code::from_number(190001), Code::Other(190001));
        assert_eq!(Code::Other(190001).to_string(), "code 190001");
    }
}
