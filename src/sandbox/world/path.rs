//! Mount paths.

/// What is wrong with an absolute path, if anything (service API, POST /api/instance/create: "valid absolute path").
pub(in crate::sandbox) fn path_problem(path: &str) -> Option<&'static str> {
    if !path.starts_with('/') {
        Some("must be an absolute path")
    } else if path.chars().any(|c| c.is_control() || c.is_whitespace()) {
        Some("must not hold white space")
    } else if path.split('/').any(|part| part == "." || part == "..") || path.contains("//") {
        Some("must be a plain path without . and ..")
    } else {
        None
    }
}

/// What is wrong with the mount path of a cloud disk, if anything (service API, POST /api/storage/cloud_disk/create:
/// forbidden paths).
pub(in crate::sandbox) fn disk_path_problem(path: &str) -> Option<&'static str> {
    const ALONE: [&str; 4] = ["", "/root", "/mnt", "/var"];
    const WITH_SUB_PATHS: [&str; 7] = ["/tmp", "/dev", "/proc", "/sys", "/etc", "/usr", "/boot"];

    let plain = path.trim_end_matches('/');
    let is_below = |root: &&str| plain.strip_prefix(*root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    path_problem(path).or_else(|| {
        (ALONE.contains(&plain) || WITH_SUB_PATHS.iter().any(is_below)).then_some("is one of the forbidden mount paths")
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/")]
    #[case("/root")]
    #[case("/root/")]
    #[case("/mnt")]
    #[case("/var")]
    #[case("/tmp")]
    #[case("/tmp/a")]
    #[case("/dev/shm")]
    #[case("/proc/1")]
    #[case("/sys/a")]
    #[case("/etc/a")]
    #[case("/usr/local")]
    #[case("/boot")]
    #[case("data")]
    #[case("")]
    #[case("/data/../etc")]
    #[case("/data disk")]
    fn forbidden_disk_paths(#[case] path: &str) {
        assert!(disk_path_problem(path).is_some());
    }

    #[rstest]
    #[case("/root/data")]
    #[case("/mnt/data")]
    #[case("/var/lib/data")]
    #[case("/tmpfiles")]
    #[case("/data")]
    fn permitted_disk_paths(#[case] path: &str) {
        assert_eq!(disk_path_problem(path), None);
    }
}
