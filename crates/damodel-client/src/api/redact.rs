//! Request and response bodies for the log. Only values of fields that are known to be harmless are shown.

use std::collections::BTreeSet;

use serde_json::Value;

/// Replaces a value whose field is not on the list.
const HIDDEN: &str = "…";

/// The longest body that is written to a log, in characters.
const LONGEST: usize = 16 * 1024;

/// Names of the envelope, of requests and of an instance's detail whose values may be logged. Those of other records
/// come from the caller. Deliberately missing: passwords, tokens, `jupyter_url` and `services` (which contain tokens),
/// and messages (which may repeat what was sent).
pub const LOGGABLE: [&str; 36] = [
    "action",
    "auto_renew",
    "cloud_disks",
    "code",
    "code_n",
    "cpu_core",
    "data",
    "data_disk_expand_size",
    "data_disk_mount_path",
    "data_disk_price",
    "disk_name",
    "error",
    "exist_disks",
    "gpu_memory",
    "gpu_price",
    "image",
    "instance_hostname",
    "instance_id",
    "label",
    "memory_size",
    "new_disks",
    "page",
    "page_size",
    "purchase_duration",
    "query",
    "rent_deadline",
    "request_id",
    "response_metadata",
    "result",
    "service",
    "ssh_pubkey_id",
    "support_power_type",
    "total",
    "total_page",
    "trace_id",
    "version",
];

/// A JSON body as one line for the log. `fields` are the names of record fields that may be logged.
pub(super) fn body(bytes: &[u8], fields: &BTreeSet<&str>) -> String {
    match serde_json::from_slice::<Value>(bytes) {
        Ok(value) => {
            let mut line = shown(value, fields).to_string();
            if let Some((end, _)) = line.char_indices().nth(LONGEST) {
                line.truncate(end);
                line.push_str(HIDDEN);
            }
            line
        }
        Err(_) => format!("{} bytes that are not JSON", bytes.len()),
    }
}

fn shown(value: Value, fields: &BTreeSet<&str>) -> Value {
    let is_loggable = |name: &str| LOGGABLE.contains(&name) || fields.contains(name);
    match value {
        Value::Object(object) => Value::Object(
            object
                .into_iter()
                .map(|(name, value)| {
                    let value = if is_loggable(&name) { shown(value, fields) } else { Value::from(HIDDEN) };
                    (name, value)
                })
                .collect(),
        ),
        Value::Array(values) => Value::Array(values.into_iter().map(|value| shown(value, fields)).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_on_the_list_is_hidden_with_all_below_it() {
        let line = body(
            br#"{"result":{"instance_uid":"ins-1","ssh_password":"planted","services":[{"url":"planted"}],
                "jupyter_url":"https://x/?token=planted","jupyter_token":"planted","new":{"id":"planted"}}}"#,
            &BTreeSet::from(["id", "instance_uid"]),
        );
        assert!(line.contains("ins-1"));
        assert!(!line.contains("planted"), "{line}");
    }

    #[test]
    fn what_is_not_json_is_counted() {
        assert_eq!(body(b"<html>planted</html>", &BTreeSet::new()), "20 bytes that are not JSON");
    }
}
