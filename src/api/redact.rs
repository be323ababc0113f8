//! Request and response bodies for the log. Only values of fields that are known to be harmless are shown.

use serde_json::{Map, Value};

/// Replaces a value whose field is not on the list.
const HIDDEN: &str = "…";

/// The longest body that is written to a log, in characters.
const LONGEST: usize = 16 * 1024;

/// Field names whose values may be logged, sorted. Deliberately missing: passwords, tokens, `jupyter_url` and
/// `services` (which contain tokens), and messages (which may repeat what was sent).
const ALLOWED: [&str; 79] = [
    "action",
    "auto_renew",
    "capacity_type",
    "cloud_disks",
    "code",
    "code_n",
    "cpu_core",
    "create_time",
    "data",
    "data_disk_expand_size",
    "data_disk_mount_path",
    "data_disk_price",
    "data_disk_size",
    "disk_name",
    "error",
    "exist_disks",
    "external_ip",
    "gpu_mem",
    "gpu_memory",
    "gpu_name",
    "gpu_num",
    "gpu_price",
    "highest_cuda",
    "id",
    "image",
    "image_id",
    "image_name",
    "image_status",
    "image_tag",
    "image_type",
    "image_uuid",
    "instance_alias",
    "instance_hostname",
    "instance_id",
    "instance_uid",
    "internal_ip",
    "label",
    "login_method",
    "max_gpu_count",
    "max_size_g",
    "memory_size",
    "mount_path",
    "multiple_mounting",
    "name",
    "new_disks",
    "original_image",
    "page",
    "page_size",
    "payment_type",
    "purchase_duration",
    "push_progress",
    "query",
    "region",
    "release_time",
    "release_with_instance",
    "rent_deadline",
    "request_id",
    "response_metadata",
    "result",
    "service",
    "size_gb",
    "spec_alias",
    "spec_id",
    "spec_type",
    "ssh_host",
    "ssh_port",
    "ssh_pubkey_id",
    "ssh_pubkey_name",
    "start_time",
    "status",
    "stop_time",
    "storage_class_type",
    "support_power_type",
    "total",
    "total_page",
    "trace_id",
    "uid",
    "updated_at",
    "version",
];

/// A JSON body as one line for the log.
pub(super) fn body(bytes: &[u8]) -> String {
    match serde_json::from_slice::<Value>(bytes) {
        Ok(value) => {
            let mut line = shown(value).to_string();
            if let Some((end, _)) = line.char_indices().nth(LONGEST) {
                line.truncate(end);
                line.push_str(HIDDEN);
            }
            line
        }
        Err(_) => format!("{} bytes that are not JSON", bytes.len()),
    }
}

fn shown(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(name, value)| {
                    if ALLOWED.binary_search(&name.as_str()).is_ok() {
                        (name, shown(value))
                    } else {
                        (name, Value::from(HIDDEN))
                    }
                })
                .collect::<Map<_, _>>(),
        ),
        Value::Array(values) => Value::Array(values.into_iter().map(shown).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted() {
        assert!(ALLOWED.is_sorted());
    }

    #[test]
    fn what_is_not_on_the_list_is_hidden_with_all_below_it() {
        let line = body(
            br#"{"result":{"instance_uid":"ins-1","ssh_password":"planted","services":[{"url":"planted"}],
                "jupyter_url":"https://x/?token=planted","jupyter_token":"planted","new":{"id":"planted"}}}"#,
        );
        assert!(line.contains("ins-1"));
        assert!(!line.contains("planted"), "{line}");
    }

    #[test]
    fn what_is_not_json_is_counted() {
        assert_eq!(body(b"<html>planted</html>"), "20 bytes that are not JSON");
    }
}
