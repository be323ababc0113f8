//! The forms for programs, and the properties of all forms.

use super::*;

fn violated() -> Review<'static> {
    review(&everything(), &policy(Some("100"), &[Rule::DestroyData, Rule::Prepaid, Rule::SecretsInState]))
}

/// The schema is a copy from the crate serde-sarif (MIT), and originally from OASIS.
#[test]
fn sarif_is_what_its_schema_says() {
    let schema: Value =
        serde_json::from_str(include_str!("../../../../tests/fixtures/review/sarif-2.1.0.json")).unwrap();
    let mut compiler = boon::Compiler::new();
    compiler.enable_format_assertions();
    compiler.add_resource("sarif.json", schema).unwrap();
    let mut schemas = boon::Schemas::new();
    let schema = compiler.compile("sarif.json", &mut schemas).unwrap();
    let log = |review: &Review<'_>| serde_json::from_str::<Value>(&write(review, Format::Sarif)).unwrap();
    for review in [violated(), review(&everything(), &Policy::default())] {
        let mut log = log(&review);
        schemas.validate(&log, schema).unwrap_or_else(|error| panic!("{error:#}"));
        let results = log["runs"][0]["results"].as_array().unwrap();
        let shown: Vec<_> = review.findings.iter().filter(|judged| judged.level != Level::Note).collect();
        assert_eq!(results.len(), shown.len());
        assert_eq!(results.iter().filter(|result| result["level"] == "error").count(), review.violations().count());
        assert_eq!(results[0]["ruleId"], "destroy-data");
        for result in results {
            let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(log["runs"][0]["tool"]["driver"]["rules"][index]["id"], result["ruleId"]);
            assert_eq!(result["partialFingerprints"]["damodelReview/v1"].as_str().unwrap().len(), 32);
        }
        log["runs"][0]["results"] = json!([{"level": "terrible"}]);
        assert!(schemas.validate(&log, schema).is_err());
    }
    // Brackets make no link; at most 5,000 results, data first.
    let gone = |index: usize| {
        let mut change = instance(&["delete"], Some(1.0), None);
        change["address"] = format!("damodel_instance.m[{index}]").into();
        change
    };
    let mut plan = plan_of(&(0..6000).map(gone).collect::<Vec<_>>());
    plan["errored"] = true.into();
    let log = log(&review(&plan, &policy(None, &[Rule::DestroyData])));
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert_eq!((results.len(), &results[4999]["ruleId"]), (5000, &"destroy-data".into()));
    let text = results[0]["message"]["text"].as_str().unwrap();
    assert!(text.starts_with("damodel_instance.m\\[0\\]: destroyed: "), "{text}");
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

#[test]
fn a_page_needs_nothing_else_and_is_read_from_the_top() {
    let html = write(&violated(), Format::Html);
    assert!(!html.contains("<script") && !html.contains("<i>@") && html.contains("&#60;script&#62;"), "{html}");
    for asking in ["src=", "href=", "url(", "@import", "<script", "<link", "<svg"] {
        assert!(!html.contains(asking), "{asking}");
    }
    assert!(html.contains("default-src 'none'") && html.contains("@media (max-width: 640px)"));
    let places = [
        "<h1 class=\"bad\">❌ +4,306.17",
        "Still billed afterwards",
        "destroy-data",
        "5 created",
        "Instances by \
        cost",
        "<details class=\"card\" open><summary>Cost of 14",
    ];
    let places = places.map(|what| html.find(what).unwrap_or_else(|| panic!("{what}: {html}")));
    assert!(places.is_sorted(), "{places:?}");
    let long = format!("damodel_instance.{}", "x".repeat(300));
    let mut change = instance(&["create"], None, Some(2000.0));
    change["address"] = long.clone().into();
    let html = write(&review(&plan_of(&[change]), &Policy::default()), Format::Html);
    assert!(html.matches(&long).count() >= 3 && html.contains("1,460,000.00"), "{html}");
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
    plan["terraform_version"] = name.into();
    plan["timestamp"] = name.into();
    plan["action_invocations"] = json!([{"address": name, "type": name, "config_values": {"model": name, name: 1},
        "lifecycle_action_trigger": {"triggering_resource_address": name, "action_trigger_event": "AfterCreate"}}]);
    plan
}

/// The structure of a comment does not depend on names, for comrak, which GitLab uses.
#[test]
fn names_do_not_change_the_structure_of_a_comment() {
    let comment = |name: &str| {
        let excepted = Exception {
            matching: vec!["**".parse().unwrap()],
            rules: vec![Rule::SecretsInState],
            owner: name.to_owned(),
            reason: name.to_owned(),
            expires: jiff::civil::date(2027, 1, 1),
            is_expired: false,
        };
        let gate =
            Policy { exceptions: vec![excepted], ..policy(Some("0"), &[Rule::DestroyData, Rule::SecretsInState]) };
        let plan = called(name);
        let facts =
            [format!("{name}1"), format!("{name}2")].map(|name| Facts::of(Some(name), &read(&plan), &arguments()));
        let locate = |_: &Finding<'_>| Some(Location { file: name.to_owned(), line: 1 });
        render(&Review::new(&facts, &gate, locate), &Style::default()).unwrap()
    };
    let structure = |text: &str| {
        let arena = comrak::Arena::new();
        let mut options = comrak::Options::default();
        options.extension.table = true;
        options.extension.strikethrough = true;
        options.extension.autolink = true;
        let root = comrak::parse_document(&arena, text, &options);
        let kind = |node: &comrak::nodes::AstNode<'_>| match &node.data.borrow().value {
            comrak::nodes::NodeValue::Code(_) => "code".to_owned(),
            value => format!("{value:?}"),
        };
        root.descendants().map(kind).collect::<Vec<_>>()
    };
    let plain = structure(&comment("[\"plain\"]"));
    assert!(plain.iter().filter(|node| node.starts_with("Table(")).count() >= 9);
    // They are short: what is long is cut.
    for hostile in [
        "[\"a|b`c<i>@team\"]",
        "[\"``` \\\\| -->\"]",
        "[\"<!-- </details>\"]",
        "[\"\n\n# x\n| a |\n\"]",
        "![x](http://x.y) **b** ~~s~~",
        "&lt; $1 #2 </sub> http://x.y",
        "`",
        "\\",
    ] {
        let nodes = structure(&comment(hostile));
        let other = nodes.iter().zip(&plain).position(|(one, other)| one != other).unwrap_or(nodes.len());
        assert_eq!(nodes, plain, "{hostile}: {:?}", &nodes[other.saturating_sub(9)..]);
    }
}

#[test]
fn a_terminal_gets_colours_only_if_it_has_them() {
    let text =
        |is_coloured| render(&violated(), &Style { format: Format::Text, is_coloured, ..Style::default() }).unwrap();
    assert!(text(true).contains("\u{1b}[") && !text(false).contains('\u{1b}'));
    // No line ends a block of code around it.
    let plan = called("```");
    let text = write(&review(&plan, &policy(Some("0"), &[Rule::DestroyData])), Format::Text);
    assert!(
        text.contains("```")
            && !text
                .lines()
                .any(|line| line.trim_start_matches(' ').len() + 4 > line.len() && line.trim().starts_with("```")),
        "{text}"
    );
}
