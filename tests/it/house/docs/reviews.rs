//! The sample in the guide on reviews.

use std::{fs, process::Command};

use regex::Regex;

use super::root;
use crate::support::plugin::BINARY;

/// What scripts/review-sample wrote, also about the image, is what the program writes now with the options on the page.
/// The version may differ, because a new image needs a browser.
#[test]
fn the_sample_is_current() {
    let read = |file: &str| fs::read_to_string(root().join(file)).unwrap();
    let guide = read("docs/guides/reviews.md");
    let options = guide.split("review plan.json ").nth(1).unwrap().lines().next().unwrap();
    let version = Regex::new("terraform-provider-damodel [^,]+,").unwrap();
    let render = |format: &str| {
        let mut review = Command::new(BINARY);
        review.args(["review", "tests/fixtures/review/sample.json", "--format", format]).args(options.split(' '));
        let run = review.current_dir(root()).output().unwrap();
        assert_eq!(run.status.code(), Some(3), "{}", String::from_utf8_lossy(&run.stderr));
        String::from_utf8(run.stdout).unwrap()
    };
    let (text, drawn) = (render("text"), read("docs/images/review.txt"));
    let advice = "run scripts/review-sample --image";
    assert_eq!(version.replace(&text, ""), version.replace(&drawn, ""), "{advice}");
    let comment = render("markdown");
    let head = comment.split("\n<details>").next().unwrap();
    let sample =
        format!("<!-- sample by scripts/review-sample -->\n```markdown\n{head}```\n<!-- end of the sample -->\n");
    assert!(guide.contains(&sample), "{advice}:\n{sample}");
}
