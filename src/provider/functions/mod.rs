//! Functions that need no service: addresses and sums.

mod estimate_cost;
mod parse_image_address;

pub(super) use self::{estimate_cost::EstimateCost, parse_image_address::ParseImageAddress};
