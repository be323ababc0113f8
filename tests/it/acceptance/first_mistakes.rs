//! Mistakes of a first configuration, and of the first commands.

use std::{fs, os::unix::fs::PermissionsExt as _};

use rstest::rstest;
use terraform_plugin::testing::ClientIdentity;

use crate::support::terraform::{
    Installation, Instance, Site, Workspace, config, config_with, each_cli, each_workspace, refusal, refusal_of,
};

#[rstest]
#[case::refused(|_: &Site| "http://127.0.0.1:1".to_owned(), &["127.0.0.1:1 cannot be reached", "NO_PROXY"])]
#[case::unknown_name(|_: &Site| "https://damodel.invalid".to_owned(), &["cannot resolve damodel.invalid", "base_url"])]
#[case::no_tls(|site: &Site| site.base_url().replace("http://", "https://"), &["no TLS connection", "ca_certificate_file"])]
fn a_wrong_address_is_an_error_of_the_plan_that_names_it(#[case] address: fn(&Site) -> String, #[case] words: &[&str]) {
    each_workspace(|site, workspace| {
        workspace.write(&config(Instance::new("x")));
        let address = address(site);
        workspace.set_env("DAMODEL_BASE_URL", &address);
        refusal(&workspace.try_plan(&[]), &[words, &[&address, "DAMODEL_BASE_URL"]].concat());
    });
}

/// The troubleshooting page has the texts of Terraform and OpenTofu, so that a search finds them, and the block to add.
#[test]
fn a_configuration_without_required_providers_finds_its_error_on_a_page() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guides/troubleshooting.md");
    let page = fs::read_to_string(page).unwrap();
    let hosts = ["registry.terraform.io", "registry.opentofu.org"];
    let texts = |host: &str| {
        [
            format!("provider registry {host} does not have a provider named {host}/hashicorp/damodel"),
            format!("provider {host}/hashicorp/damodel: required by this configuration but no version is selected"),
        ]
    };
    for text in hosts.iter().flat_map(|host| texts(host)) {
        assert!(page.contains(&text), "{text}");
    }
    each_workspace(|site, workspace| {
        let registry = |host: &&str| {
            let address = site.base_url();
            format!("host {host:?} {{\n  services = {{ \"providers.v1\" = \"{address}/v1/providers/\" }}\n}}\n")
        };
        let settings = workspace.beside("registries.tfrc");
        fs::write(&settings, hosts.iter().map(registry).collect::<String>()).unwrap();
        workspace.set_env("TF_CLI_CONFIG_FILE", settings.to_str().unwrap());
        let whole = config(Instance::new("x"));
        let body = &whole[whole.find("provider \"damodel\"").unwrap()..];
        let [missing, unlocked] = texts(hosts[usize::from(workspace.cli.is_tofu)]);
        for (command, text) in [("init", missing), ("plan", unlocked)] {
            workspace.write(body);
            let run = workspace.run(&[command, "-no-color", "-input=false"]);
            assert_ne!(run.code, Some(0), "{}", run.stdout);
            let printed = format!("{} {}", run.stdout, run.stderr);
            let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(printed.contains(&text), "{text}: {printed}");
        }
        let (_, block) = page.split_once("```terraform\nterraform {").unwrap();
        let (block, _) = block.split_once("```").unwrap();
        workspace.write(&format!("terraform {{{block}{body}"));
        workspace.remove_env("TF_CLI_CONFIG_FILE");
        workspace.save_plan(&[]);
    });
}

/// So do a program that cannot be started, and one that is not installed.
#[test]
fn a_provider_that_cannot_be_loaded_finds_its_error_on_a_page() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guides/troubleshooting.md");
    let page = fs::read_to_string(page).unwrap();
    each_cli(|cli| {
        let site = Site::start();
        let workspace = Workspace::installed(cli, &site, Installation::Override);
        workspace.write(&config(Instance::new("x")));
        let (settings, folder) = (workspace.beside("settings.tfrc"), workspace.beside("program"));
        workspace.set_env("TF_CLI_CONFIG_FILE", settings.to_str().unwrap());
        let prints = |texts: &[&str]| {
            let run = workspace.run(&["validate", "-no-color"]);
            let printed = format!("{} {}", run.stdout, run.stderr);
            let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
            for text in texts {
                assert!(run.code != Some(0) && printed.contains(text), "{text}: {printed}");
                assert!(page.contains(&format!("`{text}`")), "{text}");
            }
        };
        fs::write(&settings, "").unwrap();
        prints(&["Missing required provider"]);
        let addresses = ["registry.terraform.io", "registry.opentofu.org"];
        let overrides = addresses.map(|host| format!("    \"{host}/damodel/damodel\" = {folder:?}\n")).concat();
        fs::write(&settings, format!("provider_installation {{\n  dev_overrides {{\n{overrides}  }}\n}}\n")).unwrap();
        let title = "Failed to load plugin schemas";
        prints(&[title, "could not read package directory"]);
        fs::create_dir(&folder).unwrap();
        prints(&[title, "could not find executable file"]);
        let script = "#!/bin/sh\nexit 1\n";
        let of_another_processor = "\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x08\0";
        for (text, program, mode) in [
            ("permission denied", script, 0o644),
            ("exec format error", of_another_processor, 0o755),
            ("Unrecognized remote plugin message", script, 0o755),
        ] {
            let file = folder.join("terraform-provider-damodel");
            fs::write(&file, program).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            prints(&[title, text]);
        }
    });
}

#[test]
fn a_certificate_file_that_is_no_pem_is_an_error_of_its_argument() {
    each_workspace(|_, workspace| {
        let pem = ClientIdentity::generate().pem();
        let units: Vec<u8> = format!("\u{feff}{pem}").encode_utf16().flat_map(u16::to_le_bytes).collect();
        let provider = "region = \"cn-east-1\"\nca_certificate_file = \"gateway.crt\"";
        workspace.write(&config_with(provider, Instance::new("x")));
        // The encoding of Windows PowerShell 5 is read.
        fs::write(workspace.directory().join("gateway.crt"), units).unwrap();
        workspace.save_plan(&[]);
        fs::write(workspace.directory().join("gateway.crt"), [0x30, 0x82, 1, 2]).unwrap();
        let said = workspace.try_plan(&[]);
        let error = refusal(&said, &["Not a PEM file", "gateway.crt", "-----BEGIN CERTIFICATE-----"]);
        assert_eq!(error.attribute.as_deref(), Some("ca_certificate_file"));
    });
}

#[test]
fn a_server_whose_certificate_is_an_authority_is_told_how_to_make_another() {
    each_workspace(|_, workspace| {
        let identity = ClientIdentity::generate();
        fs::write(workspace.directory().join("gateway.crt"), identity.pem()).unwrap();
        let address = format!("https://localhost:{}", identity.listen());
        workspace.set_env("DAMODEL_BASE_URL", &address);
        let provider = "region = \"cn-east-1\"\nca_certificate_file = \"gateway.crt\"";
        let model = format!("data \"damodel_model\" \"x\" {{\n  url = \"{address}/m.gguf\"\n}}\n");
        for body in [Instance::new("x").to_string(), model] {
            workspace.write(&config_with(provider, body));
            let words = ["-addext basicConstraints=CA:FALSE", "a server certificate", "ca_certificate_file"];
            refusal(&workspace.try_plan(&[]), &words);
        }
    });
}

#[test]
fn an_unknown_region_of_a_data_source_names_those_in_use() {
    each_workspace(|_, workspace| {
        let sources = ["damodel_spec", "damodel_specs"];
        let source = |source: &str| format!("data {source:?} \"x\" {{\n  region = \"mars\"\n}}\n");
        workspace.write(&config(sources.map(source).concat()));
        let said = workspace.try_plan(&[]);
        for source in sources {
            let words = ["Region \"mars\" has no specifications", "this account's instances and images: cn-"];
            refusal_of(&said, &format!("data.{source}.x"), &words);
        }
    });
}

#[test]
fn a_wrong_token_is_an_error_of_the_plan_that_names_its_variable() {
    each_workspace(|_, workspace| {
        workspace.write(&config(Instance::new("x")));
        workspace.set_env("DAMODEL_API_TOKEN", "not-the-token");
        refusal(&workspace.try_plan(&[]), &["API token", "DAMODEL_API_TOKEN", "request_id"]);
    });
}

/// Two instances and a disk, each of which has several checks.
fn several() -> String {
    let disk = "resource \"damodel_cloud_disk\" \"x\" {\n  name = \"x\"\n  size_gb = 20\n  spec_id = 31\n}\n";
    config(format!("{}{}{disk}", Instance::new("x"), Instance::new("y")))
}

#[test]
fn a_missing_token_is_one_error_for_the_provider() {
    each_workspace(|_, workspace| {
        workspace.write(&several());
        workspace.remove_env("DAMODEL_API_TOKEN");
        let said = workspace.try_plan(&[]);
        assert_eq!(said.len(), 1, "{said:#?}");
        refusal(&said, &["Provider damodel: the API token is not set", "DAMODEL_API_TOKEN", "api_token_command"]);
        workspace.remove_env("DAMODEL_BASE_URL");
        let said = workspace.try_plan(&[]);
        assert_eq!(said.len(), 1, "{said:#?}");
        refusal(
            &said,
            &["Provider damodel: the service's address is not set", "DAMODEL_BASE_URL", "DAMODEL_API_TOKEN"],
        );
    });
}

#[test]
fn a_refresh_without_a_token_is_one_error_and_keeps_the_state() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&several());
        workspace.remove_env("DAMODEL_API_TOKEN");
        let said = workspace.try_plan(&[]);
        assert_eq!(said.len(), 1, "{said:#?}");
        refusal(&said, &["Provider damodel: the API token is not set", "The state is unchanged"]);
        workspace.set_env("DAMODEL_API_TOKEN", site.token());
        workspace.settled();
        workspace.finish();
    });
}
