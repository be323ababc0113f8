//! The endpoints are exactly those of the document.

use super::ENDPOINTS;

/// Name, method and path (service API, Endpoints).
const DOCUMENTED: [(&str, &str, &str); 17] = [
    ("cloud_disk_create", "POST", "/api/storage/cloud_disk/create"),
    ("cloud_disk_list", "GET", "/api/storage/cloud_disk/list"),
    ("cloud_disk_release", "POST", "/api/storage/cloud_disk/release"),
    ("cloud_disk_rename", "POST", "/api/storage/cloud_disk/rename"),
    ("cloud_disk_resize", "POST", "/api/storage/cloud_disk/resize"),
    ("cloud_disk_spec_list", "GET", "/api/storage/cloud_disk/spec"),
    ("image_delete", "DELETE", "/api/image/delete/{image_id}"),
    ("image_rename", "PUT", "/api/image/update"),
    ("image_save", "POST", "/api/instance/save_image_v2"),
    ("instance_create", "POST", "/api/instance/create"),
    ("instance_detail", "GET", "/api/instance/detail"),
    ("instance_list", "GET", "/api/instance/list"),
    ("instance_release", "POST", "/api/instance/release"),
    ("instance_rename", "POST", "/api/instance/rename"),
    ("private_image_list", "GET", "/api/image/privates"),
    ("public_image_list", "GET", "/api/image/publics_v2"),
    ("spec_list", "GET", "/api/spec/list"),
];

#[test]
fn the_endpoints_are_the_documents() {
    let mut endpoints = ENDPOINTS.map(|endpoint| (endpoint.name, endpoint.method.as_str(), endpoint.path));
    endpoints.sort_unstable();
    assert_eq!(endpoints, DOCUMENTED);
}
