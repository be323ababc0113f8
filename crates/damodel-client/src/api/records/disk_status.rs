//! The statuses of a cloud disk (service API, States, Cloud disk).

/// It is being created or resized.
pub const STARTING: i64 = 1;
/// No instance has mounted it.
pub const AVAILABLE: i64 = 2;
/// It is being mounted.
pub const MOUNTING: i64 = 3;
/// It is being unmounted.
pub const UNMOUNTING: i64 = 4;
/// It is being released.
pub const RELEASING: i64 = 5;
/// An instance has mounted it.
pub const MOUNTED: i64 = 6;
/// Released. This is final.
pub const RELEASED: i64 = 7;
/// The account owes money for it.
pub const IN_ARREARS: i64 = 8;

/// Number and word of every status.
pub const DISK_STATUSES: [(i64, &str); 8] = [
    (STARTING, "starting"),
    (AVAILABLE, "available"),
    (MOUNTING, "mounting"),
    (UNMOUNTING, "unmounting"),
    (RELEASING, "releasing"),
    (MOUNTED, "mounted"),
    (RELEASED, "released"),
    (IN_ARREARS, "in_arrears"),
];
