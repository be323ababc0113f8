//! What a create does about the record of an earlier one, as a pure function of what the service shows of its object.

use super::{CreatePhase, Evidence, Found, pending::Place};
use crate::api::Object;

/// The account of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// Another token or another address.
    Other,
    /// The token of this create.
    Own,
    /// Another token of the same program, which is waited for as one's own.
    SameProgram,
}

/// What a create does about a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// It takes the record and its object.
    Adopt,
    /// It removes the record: nothing was made, or the object is gone.
    Forget,
    /// It goes on, and the record stays.
    Leave,
    /// It sends the request of the record again.
    SendAgain,
    /// It ends, unless its caller permits another object beside that of the record.
    Stop(Evidence),
}

/// Decides about a record. `is_same` means that it has the request of this create, and that its object is in no other
/// state for certain: a finished one may be in any, and is never adopted.
pub(super) fn decide<K: Object>(
    found: &Found<K>,
    phase: CreatePhase,
    whose: Whose,
    place: Place,
    is_same: bool,
) -> Decision {
    let is_same = is_same && phase != CreatePhase::Finished;
    match found {
        // What this token shows is known, whoever made it.
        Found::Living(_) if is_same => Decision::Adopt,
        Found::Living(object) if object.is_living() && place != Place::OtherState => Decision::Stop(Evidence::Seen),
        Found::Released(_) if is_same => Decision::Forget,
        Found::Nothing if is_same && whose == Whose::Own => Decision::SendAgain,
        Found::Gone | Found::Nothing | Found::Released(_) if whose == Whose::Own => Decision::Forget,
        Found::Gone | Found::Living(_) | Found::Nothing | Found::Released(_) => Decision::Leave,
        // It may be in another account.
        Found::Several(_) | Found::Unknown { .. } | Found::Young if whose == Whose::Other => Decision::Leave,
        Found::Unknown { .. } if is_same && whose == Whose::Own && phase == CreatePhase::Accepted => Decision::Adopt,
        Found::Several(_) | Found::Unknown { .. } | Found::Young if !is_same && place == Place::OtherState => {
            Decision::Leave
        }
        Found::Young => Decision::Stop(Evidence::Lacking),
        Found::Several(_) | Found::Unknown { .. } => Decision::Stop(Evidence::Unknown),
    }
}
