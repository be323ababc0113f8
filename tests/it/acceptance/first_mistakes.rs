//! Mistakes of a first configuration, and of the first commands.

use std::{fmt::Write as _, net::TcpListener, process::Command};

use regex::Regex;
use rstest::rstest;

use crate::support::{
    plugin::BINARY,
    terraform::{Diagnostic, Instance, Site, Started, Workspace, config, each_cli, refusal},
};

#[rstest]
#[case::refused(|_: &Site| "http://127.0.0.1:1".to_owned())]
#[case::unknown_name(|_: &Site| "https://damodel.invalid".to_owned())]
#[case::no_tls(|site: &Site| site.base_url().replace("http://", "https://"))]
fn a_wrong_address_is_an_error_of_the_plan_that_names_it(#[case] address: fn(&Site) -> String) {
    each_cli(|cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        workspace.write(&config(Instance::new("x")));
        let address = address(&site);
        workspace.set_env("DAMODEL_BASE_URL", &address);
        refusal(&workspace.try_plan(&[]), &["cannot be reached", &address, "DAMODEL_BASE_URL"]);
    });
}

#[test]
fn a_wrong_token_is_an_error_of_the_plan_that_names_its_variable() {
    each_cli(|cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
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
    each_cli(|cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
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
    each_cli(|cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
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

/// The output for each mistake, in order.
struct Page<'a> {
    workspace: &'a Workspace<'a>,
    text: String,
}

impl Page<'_> {
    fn add(&mut self, mistake: &str, text: &str) {
        let text = text
            .replace(&self.workspace.directory().display().to_string(), "<folder>")
            .replace(self.workspace.site.base_url(), "<address>");
        let text = Regex::new("(request_id|trace_id) [0-9a-z-]+").unwrap().replace_all(&text, "$1 <id>");
        let text = Regex::new("ins-[0-9a-z]{12}").unwrap().replace_all(&text, "<uid>");
        let text = Regex::new("x-[0-9a-f]{12}").unwrap().replace_all(&text, "x-<marker>");
        writeln!(self.text, "# {mistake}\n\n{}\n", text.trim()).unwrap();
    }

    fn diagnostics(&mut self, mistake: &str, said: &[Diagnostic]) {
        let texts = said.iter().map(|said| format!("{:?}: {}\n\n{}", said.severity, said.summary, said.detail));
        self.add(mistake, &texts.collect::<Vec<_>>().join("\n\n"));
    }

    fn plan(&mut self, mistake: &str, config: &str) {
        self.workspace.write(config);
        let said = self.workspace.try_plan(&[]);
        self.diagnostics(mistake, &said);
    }

    /// Runs a command of the program in the folder of the configuration.
    fn command(&mut self, mistake: &str, arguments: &[&str]) {
        let mut command = Command::new(BINARY);
        let output = command.args(arguments).current_dir(self.workspace.directory()).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        self.add(mistake, &format!("{said}\nExit code {}", output.status.code().unwrap()));
    }
}

#[test]
fn each_first_mistake_reads_as_it_is_written_down() {
    each_cli(|cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        let mut page = Page { workspace: &workspace, text: String::new() };
        let x = || Instance::new("x");

        page.command("`pending` before the first create", &["pending"]);
        page.command("`watch` before the first create", &["watch", "--last"]);
        workspace.set_env("DAMODEL_BASE_URL", "api.damodel.test");
        page.plan("An address without a scheme", &config(x()));
        workspace.set_env("DAMODEL_BASE_URL", "http://127.0.0.1:1");
        page.plan("An address where nothing listens", &config(x()));
        workspace.set_env("DAMODEL_BASE_URL", site.base_url());
        workspace.set_env("DAMODEL_API_TOKEN", "not-the-token");
        page.plan("A wrong token", &config(x()));
        workspace.remove_env("DAMODEL_API_TOKEN");
        workspace.remove_env("DAMODEL_BASE_URL");
        page.plan("Neither address nor token", &config(x()));
        workspace.set_env("DAMODEL_API_TOKEN", site.token());
        workspace.set_env("DAMODEL_BASE_URL", site.base_url());
        page.plan("A slip in a specification", &config(x().without("spec_id").text("spec_type", "gpu.rtx409.1")));
        page.plan("A slip in a region", &config(x().text("region", "cn-est-1")));
        page.plan("An image that does not exist", &config(x().set("image_id", 9000)));

        let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = taken.local_addr().unwrap().port().to_string();
        let before = page.text.len();
        page.command("`sandbox` on a port that is taken", &["sandbox", "--listen", &format!("127.0.0.1:{port}")]);
        let shown = page.text.split_off(before).replace(&port, "<port>");
        page.text.push_str(&shown);

        workspace.apply_ok(&config(x()));
        workspace.plan(&["-destroy"]);
        page.command("`review` of a state file", &["review", "terraform.tfstate"]);
        page.command("`review` of a saved plan", &["review", "plan"]);
        workspace.finish();

        site.stick();
        workspace.write(&config(x().set("count", 2)));
        let mut started = Started::apply(&workspace);
        let accepted = || workspace.notes().iter().filter(|note| note.phase() == "accepted").count();
        site.await_ledger("both creates are accepted", |_| accepted() == 2);
        started.interrupt();
        let mut said = Diagnostic::of_lines(&started.ended(true));
        said.retain(|said| said.summary != "execution halted");
        page.diagnostics("Ctrl-C while two instances are created", &said);

        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("pages");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!("first_mistakes", page.text));
    });
}
