//! Pages of small schemas.

use super::{
    attribute,
    examples::Examples,
    page::{self, Kind},
    schema,
};
use crate::framework::{
    Schema, Type,
    schema::{Attribute, AttributeType, Block, Nesting, Presence, Replacement, validator},
};

#[test]
fn a_line_adds_what_the_description_leaves_to_the_schema() {
    let bare = Attribute::with_default("size", Type::Number, 20, "The size in GB.")
        .replaces(Replacement::IfKnown)
        .validate(validator::between(20..=100));
    assert_eq!(
        attribute::line(&bare),
        "- `size` (Number) The size in GB. Default: `20`. Must be a whole number from 20 to 100. Forces replacement."
    );
    let said = Attribute::with_default("size", Type::String, "s", "`s` or `l`. Default: `s`.")
        .validate(validator::one_of(&["s", "l"]));
    assert_eq!(attribute::line(&said), "- `size` (String) `s` or `l`. Default: `s`.");
    let half = Attribute::optional("size", Type::String, "Such as `s`.").validate(validator::one_of(&["s", "l"]));
    assert_eq!(attribute::line(&half), "- `size` (String) Such as `s`. Must be one of `s`, `l`.");
}

#[test]
fn a_line_says_how_a_value_is_kept() {
    let mut secret = Attribute::optional("key", Type::list(Type::map(Type::Bool)), "The key.")
        .sensitive()
        .write_only()
        .validate(validator::text("a key", |_| true));
    let line = attribute::line(&secret);
    assert!(line.starts_with("- `key` (List of Map of Boolean, Sensitive, [Write-only](https://"), "{line}");
    assert!(line.ends_with(") The key. Each must be a key."), "{line}");
    secret = secret.replaces(Replacement::Always);
    assert!(attribute::line(&secret).contains("also when it is set for the first time"));
    secret.presence = Presence::Required;
    assert!(!attribute::line(&secret).contains("also when it is set for the first time"));
}

#[test]
fn further_paragraphs_stay_in_their_line() {
    let attribute = Attribute::computed("it", Type::String, "First.\n\nSecond\nline.");
    assert_eq!(attribute::line(&attribute), "- `it` (String) First.\n\n  Second\n  line.");
}

#[test]
fn groups_and_nested_lists_are_the_registrys() {
    let deep = vec![Attribute::required("x", Type::Bool, "X.")];
    let inner = vec![
        Attribute::required("size", Type::Number, "Size."),
        Attribute::optional("deep", AttributeType::Nested(Nesting::List, deep), "Deep."),
    ];
    let timeouts = Block {
        name: "timeouts".to_owned(),
        description: "Timeouts.".to_owned(),
        attributes: vec![Attribute::optional("create", Type::String, "Create.")],
    };
    let schema = Schema::new(
        "A thing.",
        vec![
            Attribute::computed("id", Type::String, "The id."),
            Attribute::optional("disks", AttributeType::Nested(Nesting::List, inner), "Disks."),
            Attribute::required("name", Type::String, "The name."),
        ],
    )
    .with_block(timeouts);
    let expected = "## Schema

### Required

- `name` (String) The name.

### Optional

- `disks` (Attributes List) Disks. (see [below for nested schema](#nestedatt--disks))
- `timeouts` (Block, Optional) Timeouts. (see [below for nested schema](#nestedblock--timeouts))

### Read-Only

- `id` (String) The id.

<a id=\"nestedatt--disks\"></a>
### Nested Schema for `disks`

Required:

- `size` (Number) Size.

Optional:

- `deep` (Attributes List) Deep. (see [below for nested schema](#nestedatt--disks--deep))

<a id=\"nestedatt--disks--deep\"></a>
### Nested Schema for `disks.deep`

Required:

- `x` (Boolean) X.

<a id=\"nestedblock--timeouts\"></a>
### Nested Schema for `timeouts`

Optional:

- `create` (String) Create.
";
    assert_eq!(page::text(&schema::section(&schema)), expected);
}

#[test]
fn a_thing_without_its_example_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let examples = Examples::new(folder.path().to_owned());
    let kind = Kind::RESOURCE;
    let error = page::page(kind, "damodel_thing", &Schema::new("A thing.", vec![]), None, &examples).unwrap_err();
    assert!(error.to_string().ends_with("resources/damodel_thing/resource.tf"), "{error}");
    assert_eq!(kind.path("damodel_thing").to_str(), Some("resources/thing.md"));
}
