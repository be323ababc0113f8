//! Command lines as people and the guide of the service write them.

use std::{ffi::OsString, path::PathBuf};

use rstest::rstest;

use super::*;
use crate::sandbox::stand_in::build::Generation;

/// The guide's command line, but for flash attention, which each generation takes in its own way.
const GUIDE: &str = "-m M --host 0.0.0.0 --port 8000 -c 32768 -np 1 -ngl 999 -ctk q8_0 -ctv q8_0 --jinja --metrics";

fn read_with(generation: Generation, line: &str, variables: &[(&str, &str)]) -> Result<Asked, String> {
    let variable = |name: &str| variables.iter().find(|(own, _)| *own == name).map(|(_, value)| OsString::from(value));
    let arguments = line.split_whitespace().map(str::to_owned).collect();
    let call = Call { program: PathBuf::from("llama-server"), arguments, variable: &variable };
    read(&call, &Build::prebuilt(generation))
}

fn settings(generation: Generation, line: &str, variables: &[(&str, &str)]) -> Settings {
    match read_with(generation, line, variables) {
        Ok(Asked::Serve(settings)) => *settings,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_guides_options_are_taken_by_both() {
    let new = settings(Generation::New, &format!("{GUIDE} -fa on"), &[]);
    let old = settings(Generation::Old, &format!("{GUIDE} -fa"), &[]);
    for settings in [new, old] {
        assert_eq!((settings.port, settings.context, settings.parallel), (8000, 32_768, 1));
        assert_eq!((settings.gpu_layers, settings.flash_attention), (Some(999), FlashAttention::On));
        assert_eq!((settings.cache_k.as_str(), settings.cache_v.as_str()), ("q8_0", "q8_0"));
        assert!(settings.jinja && settings.metrics && settings.keys.is_empty());
    }
}

#[rstest]
#[case(Generation::Old, "-m M -fa on", "error: invalid argument: on\n")]
#[case(Generation::New, "-m M --no-such-flag", "error: invalid argument: --no-such-flag\n")]
#[case(Generation::Old, "-m M --no-such-flag", "error: invalid argument: --no-such-flag\n")]
#[case(
    Generation::New,
    "-fa -ctk q8_0",
    "error while handling argument \"-fa\": error: unknown value for --flash-attn: '-ctk'\n\n\nusage:\n\
     -fa,   --flash-attn [on|off|auto]"
)]
#[case(
    Generation::New,
    "-m M -fa",
    "error while handling argument \"-fa\": expected value for argument\n\nusage:\n-fa,"
)]
#[case(Generation::New, "--port eight", "error while handling argument \"--port\": stoi\n\nusage:\n--port PORT")]
#[case(
    Generation::Old,
    "-ctk q9_9",
    "error while handling argument \"-ctk\": Unsupported cache type: q9_9\n\nusage:\n-ctk,"
)]
#[case(Generation::Old, "--no-jinja", "error: invalid argument: --no-jinja\n")]
fn what_is_not_understood_is_said(#[case] generation: Generation, #[case] line: &str, #[case] text: &str) {
    let error = read_with(generation, line, &[]).unwrap_err();
    assert!(error.starts_with(text), "{error}");
}

#[test]
fn the_environment_fills_what_the_line_leaves_out() {
    let variables = [("LLAMA_ARG_CTX_SIZE", "512"), ("LLAMA_ARG_PORT", "9000"), ("LLAMA_API_KEY", "k1,k2")];
    let settings = settings(Generation::New, "-m M --port 8000", &variables);
    assert_eq!((settings.context, settings.port), (512, 8000));
    assert_eq!(settings.keys, ["k1", "k2"]);
}

#[rstest]
#[case(Generation::New, "1", FlashAttention::On)]
#[case(Generation::New, "on", FlashAttention::On)]
#[case(Generation::Old, "1", FlashAttention::On)]
#[case(Generation::Old, "true", FlashAttention::On)]
#[case(Generation::Old, "on", FlashAttention::Off)]
fn flash_attention_by_the_environment(
    #[case] generation: Generation,
    #[case] value: &str,
    #[case] meant: FlashAttention,
) {
    let settings = settings(generation, "-m M", &[("LLAMA_ARG_FLASH_ATTN", value)]);
    assert_eq!(settings.flash_attention, meant);
}

#[test]
fn the_help_tells_the_generations_apart() {
    let has_values = |generation| {
        let help = help(&Build::prebuilt(generation));
        help.lines().any(|line| line.starts_with("-fa") && line.contains("[on|off|auto]"))
    };
    assert!(has_values(Generation::New) && !has_values(Generation::Old));
    assert!(matches!(read_with(Generation::New, "--help", &[]), Ok(Asked::Help)));
    assert!(matches!(read_with(Generation::New, "--version", &[]), Ok(Asked::Version)));
    assert!(matches!(read_with(Generation::Old, "--list-devices", &[]), Ok(Asked::Devices)));
}

#[test]
fn keys_come_from_a_file_too() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "one\n\n two \n").unwrap();
    let line = format!("-m M --api-key zero --api-key-file {}", file.path().display());
    assert_eq!(settings(Generation::New, &line, &[]).keys, ["zero", "one", "two"]);
}
