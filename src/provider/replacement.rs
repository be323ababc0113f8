//! What the second plan of a replacement knows of the thing whose place the new one takes. It sees no state; what the
//! first plan keeps in the private data is all that it is handed (plugin protocol, planning).

use crate::framework::Private;

const KEY: &str = "replaced";

/// Notes, in a plan that may become a replacement, which thing it is. Forced ones look like any update.
pub(super) fn note(private: &mut Private, id: &str) {
    private.insert(KEY, id);
}

/// The id of the thing that the planned one replaces.
pub(super) fn replaced(private: &Private) -> Option<String> {
    private.entry(KEY)
}
