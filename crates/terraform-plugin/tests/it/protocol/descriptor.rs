//! The compiled wire definitions against the plugin protocol's own tables of messages, enums and calls.

use std::fmt::Write as _;

use prost::Message as _;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};

const PACKAGE: &str = ".tfplugin6.";

#[test]
fn the_wire_definitions_are_those_of_the_protocol() {
    let bytes: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
    let set = FileDescriptorSet::decode(bytes).unwrap();
    let file = set.file.iter().find(|file| file.package() == "tfplugin6").unwrap();
    let expected = include_str!("../../fixtures/tfplugin6.txt");
    let compiled = print(file);
    for (expected, compiled) in expected.lines().zip(compiled.lines()) {
        assert_eq!(expected, compiled);
    }
    assert_eq!(expected, compiled);
}

fn print(file: &FileDescriptorProto) -> String {
    let (mut messages, mut enums) = (Vec::new(), Vec::new());
    for message in &file.message_type {
        collect(message, "", &mut messages, &mut enums);
    }
    enums.extend(file.enum_type.iter().map(|e| (e.name().to_owned(), e)));
    messages.sort_by(|a, b| a.0.cmp(&b.0));
    enums.sort_by(|a, b| a.0.cmp(&b.0));
    let mut text = String::new();
    for (name, message) in messages {
        writeln!(text, "message {name}").unwrap();
        for field in &message.field {
            writeln!(text, "  {}", print_field(message, field)).unwrap();
        }
    }
    for (name, values) in enums {
        writeln!(text, "enum {name}").unwrap();
        for value in &values.value {
            writeln!(text, "  {} {}", value.number(), value.name()).unwrap();
        }
    }
    for service in &file.service {
        writeln!(text, "service {}", service.name()).unwrap();
        let mut methods: Vec<_> = service.method.iter().collect();
        methods.sort_by_key(|method| method.name());
        for method in methods {
            let stream = |streams| if streams { "stream " } else { "" };
            writeln!(
                text,
                "  {} {}{} -> {}{}",
                method.name(),
                stream(method.client_streaming()),
                local(method.input_type()),
                stream(method.server_streaming()),
                local(method.output_type()),
            )
            .unwrap();
        }
    }
    text
}

fn collect<'a>(
    message: &'a DescriptorProto,
    parent: &str,
    messages: &mut Vec<(String, &'a DescriptorProto)>,
    enums: &mut Vec<(String, &'a EnumDescriptorProto)>,
) {
    if is_map_entry(message) {
        return;
    }
    let name = format!("{parent}{}", message.name());
    messages.push((name.clone(), message));
    let parent = format!("{name}.");
    for inner in &message.nested_type {
        collect(inner, &parent, messages, enums);
    }
    enums.extend(message.enum_type.iter().map(|e| (format!("{parent}{}", e.name()), e)));
}

fn print_field(message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    let entry = message
        .nested_type
        .iter()
        .filter(|nested| is_map_entry(nested))
        .find(|nested| field.type_name().ends_with(&format!(".{}", nested.name())));
    let ty = match entry {
        Some(entry) => {
            let [key, value] = entry.field.as_slice() else { panic!("a map entry has a key and a value") };
            format!("map<{},{}>", type_name(key), type_name(value))
        }
        None if field.label() == Label::Repeated => format!("repeated {}", type_name(field)),
        None if field.proto3_optional() && field.r#type() != Type::Message => {
            format!("optional {}", type_name(field))
        }
        None => type_name(field),
    };
    let oneof = match field.oneof_index {
        Some(index) if !field.proto3_optional() => {
            let oneof = &message.oneof_decl[usize::try_from(index).unwrap()];
            format!(" oneof {}", oneof.name())
        }
        _ => String::new(),
    };
    let deprecated = match &field.options {
        Some(options) if options.deprecated() => " deprecated",
        _ => "",
    };
    format!("{} {} {ty}{oneof}{deprecated}", field.number(), field.name())
}

fn type_name(field: &FieldDescriptorProto) -> String {
    match field.r#type() {
        Type::Bool => "bool".to_owned(),
        Type::Bytes => "bytes".to_owned(),
        Type::Int64 => "int64".to_owned(),
        Type::String => "string".to_owned(),
        Type::Message | Type::Enum => local(field.type_name()).to_owned(),
        other => format!("{other:?}"),
    }
}

fn local(name: &str) -> &str {
    name.strip_prefix(PACKAGE).unwrap_or_else(|| name.trim_start_matches('.'))
}

fn is_map_entry(message: &DescriptorProto) -> bool {
    message.options.as_ref().is_some_and(|options| options.map_entry())
}
