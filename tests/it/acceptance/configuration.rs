//! The sources of the provider's arguments.

use damodel::sandbox::Mutation;

use crate::support::terraform::{Diagnostic, Instance, config, config_with, each_workspace, refusal};

const X: &str = "damodel_instance.x";

fn errors(said: &[Diagnostic]) -> Vec<&Diagnostic> {
    said.iter().filter(|diagnostic| diagnostic.is_error()).collect()
}

#[test]
fn the_provider_may_be_configured_by_what_an_apply_makes() {
    each_workspace(|site, workspace| {
        workspace.remove_env("DAMODEL_BASE_URL");
        workspace.remove_env("DAMODEL_API_TOKEN");
        let body = format!(
            "resource \"terraform_data\" \"gateway\" {{\n  input = {{ url = {:?}, token = {:?}, region = \
             \"cn-east-1\", retries = 3 }}\n}}\n{}",
            site.base_url(),
            site.token(),
            Instance::new("x")
        );
        let provider = "base_url = terraform_data.gateway.output.url\napi_token = terraform_data.gateway.output.token\n\
                        region = terraform_data.gateway.output.region\n\
                        max_retries = terraform_data.gateway.output.retries";
        let plan = workspace.plan_and_apply_ok(&config_with(provider, &body));
        assert_eq!(plan.change(X).actions(), "create");
        assert!(plan.change(X).is_unknown("region"));
        assert_eq!(workspace.state().resource(X).value("region"), "cn-east-1");
        workspace.finish();
    });
}

#[test]
fn a_data_source_of_an_unconfigured_provider_names_what_is_unknown() {
    each_workspace(|site, workspace| {
        let body = format!(
            "resource \"terraform_data\" \"gateway\" {{\n  input = {:?}\n}}\n\
             data \"damodel_public_images\" \"all\" {{}}",
            site.base_url()
        );
        workspace.write(&config_with("base_url = terraform_data.gateway.output", body));
        let said = workspace.try_plan(&[]);
        let errors = errors(&said);
        assert_eq!(errors.len(), 1, "{said:?}");
        for word in ["base_url", "a literal or one from a data source", "destroy with -refresh=false"] {
            assert!(errors[0].text().contains(word), "{said:?}");
        }
    });
}

/// An apply was advised, which would buy the gateway again. A destroy removes it from the state before it fails.
#[test]
fn a_destroy_after_the_resource_of_the_address_is_gone_buys_nothing() {
    each_workspace(|site, workspace| {
        let with = |base_url: &str| {
            config(format!(
                "{}provider \"damodel\" {{\n  alias = \"inner\"\n  base_url = {base_url}\n}}\n\
                 resource \"damodel_cloud_disk\" \"data\" {{\n  provider = damodel.inner\n  name = \"data\"\n  \
                 size_gb = 20\n  spec_id = 31\n}}\n",
                Instance::new("gateway")
            ))
        };
        let literal = format!("{:?}", site.base_url());
        let unknown = with(&format!("damodel_instance.gateway.id == \"\" ? \"\" : {literal}"));
        for has_refreshed in [false, true] {
            workspace.apply_ok(&unknown);
            workspace.made_long_ago();
            let created = site.balance().created;
            site.mutate(Mutation::ReleaseInstance { uid: site.live()[0].clone() });
            if has_refreshed {
                let (done, said) = workspace.try_destroy();
                assert!(!done);
                refusal(&said, &["a literal or one from a data source", "destroy with -refresh=false while"]);
                assert_eq!(workspace.state().addresses(), ["damodel_cloud_disk.data"]);
                workspace.write(&with(&literal));
            }
            workspace.run_ok(&["destroy", "-refresh=false", "-auto-approve", "-no-color", "-input=false"]);
            assert!(workspace.state().addresses().is_empty());
            assert_eq!(site.balance().created, created);
        }
        workspace.finish();
    });
}

#[test]
fn all_that_is_missing_is_told_at_once() {
    each_workspace(|_, workspace| {
        workspace.remove_env("DAMODEL_BASE_URL");
        workspace.remove_env("DAMODEL_API_TOKEN");
        for body in ["data \"damodel_specs\" \"all\" {}".to_owned(), Instance::new("x").to_string()] {
            workspace.write(&config_with("", body));
            let said = workspace.try_plan(&[]);
            let error = refusal(&said, &["DAMODEL_REGION", "DAMODEL_BASE_URL", "DAMODEL_API_TOKEN"]);
            assert_eq!(error.attribute.as_deref(), None, "{error:?}");
        }
    });
}

#[test]
fn the_region_comes_from_the_machine_the_provider_or_the_environment() {
    each_workspace(|_, workspace| {
        let machine = || Instance::new("x").without("spec_id").text("spec_type", "gpu.a100-80g.1");
        workspace.write(&config_with("", machine()));
        let said = workspace.try_plan(&[]);
        assert!(errors(&said).iter().any(|error| error.text().contains("DAMODEL_REGION")), "{said:?}");

        workspace.set_env("DAMODEL_REGION", "cn-north-2");
        workspace.apply_ok(&config_with("", machine()));
        assert_eq!(workspace.state().resource(X).value("spec_id"), 201);
        // Another default does not move an existing instance.
        assert_eq!(workspace.applied(&config_with("region = \"cn-east-1\"", machine())), []);
        let plan =
            workspace.plan_and_apply_ok(&config_with("region = \"cn-north-2\"", machine().text("region", "cn-east-1")));
        assert_eq!(plan.change(X).replace_paths(), ["region"]);
        assert_eq!(workspace.state().resource(X).value("spec_id"), 101);
        workspace.finish();
    });
}

#[test]
fn the_token_may_come_from_a_program() {
    each_workspace(|site, workspace| {
        workspace.remove_env("DAMODEL_API_TOKEN");
        let file = workspace.beside("token");
        std::fs::write(&file, site.token()).unwrap();
        let provider = |file: &std::path::Path| {
            format!("region = \"cn-east-1\"\napi_token_command = [\"cat\", {:?}]", file.display().to_string())
        };
        workspace.apply_ok(&config_with(&provider(&file), Instance::new("x")));
        // Or from a program that a variable names; an argument takes precedence over the variables.
        let program = workspace.token_program(&format!("printf %s {}", site.token()));
        let program = program.split('"').nth(1).unwrap();
        workspace.set_env("DAMODEL_API_TOKEN_COMMAND", program);
        workspace.apply_ok(&config(Instance::new("x")));
        workspace.set_env("DAMODEL_API_TOKEN", "wrong");
        refusal(&workspace.try_plan(&[]), &["DAMODEL_API_TOKEN and DAMODEL_API_TOKEN_COMMAND are both set"]);
        workspace.apply_ok(&config_with(&provider(&file), Instance::new("x")));
        workspace.remove_env("DAMODEL_API_TOKEN");
        workspace.remove_env("DAMODEL_API_TOKEN_COMMAND");
        workspace.write(&config_with(&provider(&file), Instance::new("x")));
        workspace.finish();
        workspace
            .write(&config_with(&provider(&workspace.beside("missing")), "data \"damodel_public_images\" \"all\" {}"));
        let said = workspace.try_plan(&[]);
        assert!(errors(&said).iter().any(|error| error.text().contains("api_token_command")), "{said:?}");
    });
}

#[test]
fn a_wrong_word_in_a_variable_is_refused() {
    each_workspace(|_, workspace| {
        workspace.write(&config(Instance::new("x")));
        for (variable, word, valid) in [
            ("DAMODEL_ON_UNRELEASABLE", "forget", r#""fail" or "abandon""#),
            ("DAMODEL_PREFLIGHT", "no", r#""true", "1", "false" or "0""#),
        ] {
            workspace.set_env(variable, word);
            refusal(&workspace.try_plan(&[]), &[&format!("{variable} is {word:?}"), valid]);
            workspace.remove_env(variable);
        }
    });
}

#[test]
fn without_a_home_no_folder_is_made_for_the_pending_records() {
    each_workspace(|_, workspace| {
        workspace.set_env("HOME", "");
        workspace.set_env("DAMODEL_PENDING_DIR", "~/pending");
        workspace.write(&config(Instance::new("x")));
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done && !workspace.directory().join("~").exists(), "{said:#?}");
        refusal(&said, &["HOME", "~/pending", "DAMODEL_PENDING_DIR"]);
    });
}

#[test]
fn white_space_around_values_is_ignored() {
    each_workspace(|site, workspace| {
        let machine = Instance::new("x").without("spec_id").text("spec_type", "gpu.a100-80g.1");
        workspace.set_env("DAMODEL_BASE_URL", &format!(" {}\r\n", site.base_url()));
        workspace.set_env("DAMODEL_API_TOKEN", &format!("{}\r\n", site.token()));
        workspace.set_env("DAMODEL_REGION", "cn-north-2\n");
        workspace.apply_ok(&config_with("", &machine));
        assert_eq!(workspace.state().resource(X).value("region"), "cn-north-2");
        workspace.remove_env("DAMODEL_API_TOKEN");
        let arguments = format!(
            "region = \"cn-north-2\\r\\n\"\napi_token = \"{}\\n\"\nchat_api_key = \"\\t{}\\n\"",
            site.token(),
            site.chat_key()
        );
        let chat = "data \"damodel_chat_completion\" \"c\" {\n  model = \"deepseek-r1\"\n  \
                    messages = [{ role = \"user\", content = \"x\" }]\n}\n";
        assert_eq!(workspace.applied(&config_with(&arguments, format!("{machine}{chat}"))), []);
        workspace.finish();
    });
}

#[test]
fn white_space_inside_a_value_is_an_error_at_its_argument() {
    each_workspace(|_, workspace| {
        for (argument, value, words) in [
            ("region", "cn\\neast", "it is \"cn\\neast\""),
            ("region", " ", "must be one word"),
            ("base_url", "https://api.exa\\nmple.com", "white space"),
        ] {
            workspace.write(&config_with(&format!("{argument} = \"{value}\""), Instance::new("x")));
            let said = workspace.try_plan(&[]);
            assert_eq!(refusal(&said, &[argument, words]).attribute.as_deref(), Some(argument));
        }
        workspace.set_env("DAMODEL_REGION", "cn east");
        workspace.write(&config_with("", Instance::new("x")));
        refusal(&workspace.try_plan(&[]), &["DAMODEL_REGION", "must be one word"]);
        workspace.remove_env("DAMODEL_REGION");
        for argument in ["api_token", "chat_api_key"] {
            workspace.write(&config_with(&format!("{argument} = \"planted\\nline\""), Instance::new("x")));
            let said = workspace.try_plan(&[]);
            let error = refusal(&said, &[argument, "line break"]);
            assert_eq!(error.attribute.as_deref(), Some(argument));
            assert!(!error.text().contains("planted"), "{error:?}");
            let variable = format!("DAMODEL_{}", argument.to_uppercase());
            workspace.set_env(&variable, "planted\nline");
            workspace.write(&config_with("", Instance::new("x")));
            refusal(&workspace.try_plan(&[]), &[&variable, "line break"]);
            workspace.remove_env(&variable);
        }
    });
}
