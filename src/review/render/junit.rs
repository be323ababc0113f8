//! Findings as a report of tests, in the form that Jenkins, GitLab and others read: a suite for each plan, a test for
//! each rule that holds, and one for each violation.

use askama::Template;

use crate::review::{
    findings::{Finding, Level, Rule},
    report::{Review, visible},
};

/// The longest text, in characters.
const LONGEST: usize = 1000;

#[derive(Template)]
#[template(path = "report.xml", config = "src/review/render/askama.toml")]
struct Suites {
    tests: usize,
    violations: usize,
    suites: Vec<Suite>,
}

struct Suite {
    name: String,
    tests: Vec<Test>,
    violations: usize,
    /// What is no violation, a line each.
    remarks: Vec<String>,
}

struct Test {
    rule: &'static str,
    name: String,
    /// What is wrong; none when nothing is.
    violation: Option<Violation>,
}

struct Violation {
    message: String,
    text: String,
}

/// Writes the report.
pub(super) fn write(review: &Review) -> Result<String, askama::Error> {
    let of_plan = |plan: Option<&str>| {
        review.findings.iter().filter(move |finding| finding.plan.as_deref() == plan).collect::<Vec<_>>()
    };
    let mut suites: Vec<Suite> = review
        .plans
        .iter()
        .map(|plan| suite(plan.name.as_deref().unwrap_or("plan"), &of_plan(plan.name.as_deref())))
        .collect();
    let of_all = of_plan(None);
    if review.is_of_several() && !of_all.is_empty() {
        suites.push(suite("all plans", &of_all));
    }
    let page = Suites {
        tests: suites.iter().map(|suite| suite.tests.len()).sum(),
        violations: suites.iter().map(|suite| suite.violations).sum(),
        suites,
    };
    Ok(page.render()? + "\n")
}

fn suite(name: &str, findings: &[&Finding]) -> Suite {
    let mut tests = Vec::new();
    for rule in Rule::ALL {
        let mut violations =
            findings.iter().filter(|finding| finding.rule == rule && finding.level == Level::Error).peekable();
        if violations.peek().is_none() {
            tests.push(Test { rule: rule.as_str(), name: rule.as_str().to_owned(), violation: None });
        }
        tests.extend(violations.map(|finding| violated(finding)));
    }
    let remarks = findings.iter().filter(|finding| finding.level != Level::Error);
    Suite {
        name: xml(name),
        violations: tests.iter().filter(|test| test.violation.is_some()).count(),
        remarks: remarks.map(|finding| xml(&finding.to_string())).collect(),
        tests,
    }
}

fn violated(finding: &Finding) -> Test {
    let place = finding.location.as_ref().map(|place| format!("\n{}:{}", xml(&place.file), place.line));
    Test {
        rule: finding.rule.as_str(),
        name: finding.address.as_deref().map_or_else(|| "the plan".to_owned(), xml),
        violation: Some(Violation {
            message: xml(&finding.sentence(LONGEST)),
            text: format!("{}{}", xml(&finding.to_string()), place.unwrap_or_default()),
        }),
    }
}

/// Text without what no document of XML 1.0 may hold.
fn xml(text: &str) -> String {
    visible(text, LONGEST).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}
