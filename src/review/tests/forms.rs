//! The formats for programs, and the properties of all formats.

use super::*;

fn violated() -> Review {
    review(&everything(), &policy(Some("100"), &[Deny::DestroyData, Deny::Prepaid, Deny::SecretsInState]))
}

/// A review without violations, but with remarks.
fn open() -> Review {
    let mut plan = plan_of(&[machine(&["update"], Some(1.0), Some(1.0)), machine(&["delete"], Some(1.0), None)]);
    plan["checks"] =
        json!([{"address": {"to_display": "check.health"}, "status": "fail", "problems": [{"message": "no"}]}]);
    review(&plan, &policy(Some("100"), &[Deny::Prepaid]))
}

/// The schema is a copy from the crate serde-sarif (MIT), and originally from OASIS.
#[test]
fn sarif_is_what_its_schema_says() {
    let schema: Value = serde_json::from_str(include_str!("../../../tests/fixtures/review/sarif-2.1.0.json")).unwrap();
    let mut compiler = boon::Compiler::new();
    compiler.enable_format_assertions();
    compiler.add_resource("sarif.json", schema).unwrap();
    let mut schemas = boon::Schemas::new();
    let schema = compiler.compile("sarif.json", &mut schemas).unwrap();
    for review in [violated(), open()] {
        let log: Value = serde_json::from_str(&write(&review, Format::Sarif)).unwrap();
        schemas.validate(&log, schema).unwrap_or_else(|error| panic!("{error:#}"));
        let results = log["runs"][0]["results"].as_array().unwrap();
        assert_eq!(results.len(), review.findings.len());
        for (result, finding) in results.iter().zip(&review.findings) {
            assert_eq!(result["level"] == "error", finding.level == Level::Error);
            let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(log["runs"][0]["tool"]["driver"]["rules"][index]["id"], result["ruleId"]);
        }
        let mut broken = log.clone();
        broken["runs"][0]["results"] = json!([{"level": "terrible"}]);
        assert!(schemas.validate(&broken, schema).is_err());
    }
}

/// Tools search reports for these words.
#[test]
fn an_open_gate_says_nothing_of_failing_and_a_violated_one_nothing_of_passing() {
    for format in FORMATS {
        let text = write(&open(), format).to_lowercase();
        let text = text.replace("failed_checks", "");
        // Terraform's status code in JSON.
        let text = text.replace("\"status\": \"fail\"", "");
        assert!(!text.contains("fail"), "{format:?}: {text}");
        // Names of attributes come from the plan.
        let text = write(&violated(), format).to_lowercase().replace("password", "").replace("\"passed\": false", "");
        assert!(!text.contains("pass"), "{format:?}: {text}");
    }
}

#[test]
fn the_same_input_gives_the_same_bytes_with_a_marker_if_asked() {
    for format in FORMATS {
        let style = Style { format, id: Some("prod".to_owned()), ..Style::default() };
        let text = render(&violated(), &style).unwrap();
        assert_eq!(text, render(&violated(), &style).unwrap());
        let is_marked = matches!(format, Format::Html | Format::Markdown);
        assert_eq!(text.contains("<!-- damodel-review: prod -->"), is_marked, "{format:?}");
    }
    assert!(!write(&violated(), Format::Markdown).contains("<!--"));
}

/// The gate decides the level; the fingerprint does not depend on the place where the object is configured.
#[test]
fn fingerprints_do_not_depend_on_lines() {
    let plan = ReviewedPlan::read(everything().to_string().as_bytes()).unwrap();
    let at = |line: usize| {
        let location = Location { file: "main.tf".to_owned(), line };
        let review = Review::new(vec![Reviewed::new(None, &plan)], &Policy::default(), |_| Some(location.clone()));
        review.findings.into_iter().map(|finding| finding.fingerprint).collect::<Vec<_>>()
    };
    assert_eq!(at(1), at(99));
    assert!(at(1).iter().all(|fingerprint| fingerprint.len() == 32));
}

#[test]
fn names_are_no_markup() {
    let html = write(&violated(), Format::Html);
    assert!(!html.contains("<script") && !html.contains("<i>@") && html.contains("&#60;script&#62;"), "{html}");
}

#[test]
fn a_page_needs_nothing_else_and_tells_what_is_destroyed_first() {
    let html = write(&violated(), Format::Html);
    for asking in ["src=", "href=", "url(", "@import", "<script", "<link", "<svg"] {
        assert!(!html.contains(asking), "{asking}");
    }
    assert!(html.contains("default-src 'none'") && html.contains("@media (max-width: 640px)"));
    let place = |what: &str| html.find(what).unwrap_or_else(|| panic!("{what}"));
    assert!(
        place("<h2>Destroyed") < place("Instances per month") && place("<h2>Destroyed") < place("<h2>Cost per month")
    );
    let long = format!("damodel_instance.{}", "x".repeat(300));
    let mut change = machine(&["create"], None, Some(2000.0));
    change["address"] = long.clone().into();
    let html = write(&review(&plan_of(&[change]), &Policy::default()), Format::Html);
    assert!(html.matches(&long).count() >= 3 && html.contains("1,460,000.00") && !html.contains("1460000"), "{html}");
}

/// A plan in which all names are `name`.
fn called(name: &str) -> Value {
    let mut plan = everything();
    for key in ["resource_changes", "resource_drift"] {
        for change in plan[key].as_array_mut().unwrap() {
            let address = change["address"].as_str().unwrap().split('[').next().unwrap();
            change["address"] = format!("{address}{name}").into();
            change["action_reason"] = name.into();
            for (parent, part) in [("", "previous_address"), ("/change/importing", "id")] {
                if let Some(text) = change.pointer_mut(parent).and_then(|parent| parent.get_mut(part)) {
                    *text = name.into();
                }
            }
        }
    }
    plan["checks"][0]["instances"][0]["problems"][0]["message"] = name.into();
    plan["deferred_changes"] = json!([{"reason": name, "resource_change": {"address": name}}]);
    plan["action_invocations"] = json!([{"address": name, "type": name, "config_values": {"model": name, name: 1},
        "lifecycle_action_trigger": {"triggering_resource_address": name, "action_trigger_event": "AfterCreate"}}]);
    plan
}

/// The structure of a comment does not depend on names.
#[test]
fn names_do_not_change_the_structure_of_a_comment() {
    use pulldown_cmark::{Event, Options, Parser, TextMergeStream};

    let comment = |name: &str| {
        let excepted = Exception {
            matching: vec!["**".parse().unwrap()],
            rules: Some(vec![Rule::SecretsInState]),
            owner: name.to_owned(),
            reason: name.to_owned(),
            expires: "2027-01-01".to_owned(),
            is_expired: false,
        };
        let limits = policy(Some("0"), &[Deny::DestroyData, Deny::SecretsInState]).limits;
        let plan = called(name);
        let review = review_all(&[&plan, &plan], &Policy { limits, exceptions: vec![excepted], ..Policy::default() });
        write(&review, Format::Markdown)
    };
    let structure = |text: &str| {
        let events = TextMergeStream::new(Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_GFM));
        let kind = |event: Event<'_>| match event {
            Event::Code(_) => "code".to_owned(),
            event => format!("{event:?}"),
        };
        events.map(kind).collect::<Vec<_>>()
    };
    let plain = structure(&comment("[\"plain\"]"));
    for hostile in [
        "[\"a|b`c<i>@team\"]",
        "[\"``` | \\\\| --> <!-- </details>\"]",
        "[\"\n\n# x\n| a | b |\n\"]",
        "[\"![x](http://x.y) **b** ~~s~~ &lt; $1 #2\"]",
        "`",
        "\\",
    ] {
        assert_eq!(structure(&comment(hostile)), plain, "{hostile}");
    }
}

#[test]
fn a_terminal_gets_colours_only_if_it_has_them() {
    let text =
        |is_coloured| render(&violated(), &Style { format: Format::Text, is_coloured, ..Style::default() }).unwrap();
    assert!(text(true).contains("\u{1b}[") && !text(false).contains('\u{1b}'));
    assert!(text(false).contains("\nFailed: "), "{}", text(false));
}
