use std::io::Write;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Error, Narrator, Workspace};
use crate::{
    commands::terraform::{Cli, Output},
    sandbox::{Running, Thing},
};

/// The resource of the example.
const MACHINE: &str = "damodel_instance.first";

/// What the machine is renamed to.
const NEW_NAME: &str = "renamed-in-place";

/// The life of one machine, each step proved by what Terraform says and by what the service has.
#[derive(Debug)]
pub(super) struct Story<'a, 'out, W> {
    pub(super) cli: &'a Cli,
    pub(super) workspace: &'a Workspace,
    pub(super) service: &'a Running,
    pub(super) narrator: &'a mut Narrator<'out, W>,
    pub(super) stop: CancellationToken,
}

impl<W: Write + Send> Story<'_, '_, W> {
    pub(super) async fn tell(mut self) -> Result<(), Error> {
        self.init().await?;
        self.plan().await?;
        let machine = self.apply().await?;
        self.plan_again().await?;
        self.rename(&machine).await?;
        self.destroy().await
    }

    async fn init(&mut self) -> Result<(), Error> {
        let output = self.step(&["init"]).await?;
        let installed = output.line("- Installed damodel/damodel").unwrap_or("- Installed damodel/damodel");
        self.narrator.proves(installed.trim_start_matches("- "))
    }

    async fn plan(&mut self) -> Result<(), Error> {
        let output = self.step(&["plan", "-out=create.tfplan"]).await?;
        self.quote(&output, "Plan:")?;
        self.expect_actions("create.tfplan", &["create"]).await?;
        let text = "Specification and image were looked up in the service; nothing was created yet.";
        self.expect_machines(0)?;
        self.narrator.proves(text)
    }

    /// Returns the machine's UID.
    async fn apply(&mut self) -> Result<String, Error> {
        let output = self.step(&["apply", "create.tfplan"]).await?;
        self.quote(&output, "Apply complete!")?;
        let outputs = self.outputs().await?;
        self.expect_machines(1)?;
        let uid = self.expect_machine("quickstart")?;
        let expected = json!([uid, "Running", "quickstart"]);
        let shown = json!([outputs["id"]["value"], outputs["status"]["value"], outputs["name"]["value"]]);
        expect("the outputs show the machine that the service has", &expected, &shown)?;
        let gpu = outputs["gpu"]["value"].as_str().unwrap_or_default();
        self.narrator.proves(&format!("{uid} is Running with {gpu}: the apply waited for that."))?;
        Ok(uid)
    }

    async fn plan_again(&mut self) -> Result<(), Error> {
        // Ends with 2 when there is anything to do.
        let output = self.step(&["plan", "-detailed-exitcode"]).await?;
        self.quote(&output, "No changes.")?;
        self.narrator.proves("Everything was read anew, and the state is what the service has.")
    }

    async fn rename(&mut self, machine: &str) -> Result<(), Error> {
        let variable = format!("-var=name={NEW_NAME}");
        let output = self.step(&["plan", "-out=rename.tfplan", &variable]).await?;
        self.quote(&output, "Plan:")?;
        self.expect_actions("rename.tfplan", &["update"]).await?;
        let output = self.run(&["apply", "rename.tfplan"]).await?;
        self.quote(&output, "Apply complete!")?;
        let uid = self.expect_machine(NEW_NAME)?;
        expect("the machine is the same one", &json!(machine), &json!(uid))?;
        self.narrator.proves(&format!("{uid} is called {NEW_NAME}: the same machine, still Running."))
    }

    async fn destroy(&mut self) -> Result<(), Error> {
        let output = self.step(&["destroy", "-auto-approve"]).await?;
        self.quote(&output, "Destroy complete!")?;
        self.expect_machines(0)?;
        let balance = self.service.sandbox.ledger().balance(Thing::Instance);
        let counts = json!({ "created": balance.created, "released": balance.released });
        expect("one machine was created and released", &json!({ "created": 1, "released": 1 }), &counts)?;
        self.narrator.proves("The service's own ledger: 1 created, 1 released, 0 left.")
    }

    /// Tells and runs a command.
    async fn step(&mut self, arguments: &[&str]) -> Result<Output, Error> {
        self.narrator.step(&format!("{} {}", self.cli.name(), arguments.join(" ")))?;
        self.run(arguments).await
    }

    /// Runs a command and shows what it says to who wants to see it.
    async fn run(&mut self, arguments: &[&str]) -> Result<Output, Error> {
        let output = self.run_quietly(arguments).await?;
        self.narrator.said(&output)?;
        Ok(output)
    }

    async fn run_quietly(&self, arguments: &[&str]) -> Result<Output, Error> {
        let (command, rest) = arguments.split_at(1.min(arguments.len()));
        // An option goes before the name of a plan file.
        let arguments = [command, &["-no-color"], rest].concat();
        Ok(self.cli.run(&self.workspace.configuration(), &arguments, &self.stop).await?)
    }

    /// Shows the line that begins like this, which must be there.
    fn quote(&mut self, output: &Output, beginning: &str) -> Result<(), Error> {
        match output.line(beginning) {
            Some(line) => self.narrator.proves(line),
            None => Err(Error::Unexpected {
                expected: format!("the output has a line that begins with {beginning:?}"),
                instead: output.to_string(),
            }),
        }
    }

    async fn outputs(&self) -> Result<Value, Error> {
        self.json(&["output", "-json"]).await
    }

    /// What a plan does to the machine must be this.
    async fn expect_actions(&self, plan: &str, actions: &[&str]) -> Result<(), Error> {
        let plan = self.json(&["show", "-json", plan]).await?;
        let changes = plan["resource_changes"].as_array().cloned().unwrap_or_default();
        let planned =
            changes.iter().find(|change| change["address"] == MACHINE).map(|change| &change["change"]["actions"]);
        expect("the plan does this to the machine", &json!(actions), planned.unwrap_or(&Value::Null))
    }

    async fn json(&self, arguments: &[&str]) -> Result<Value, Error> {
        let output = self.run_quietly(arguments).await?;
        serde_json::from_str(&output.stdout).map_err(|error| Error::Unexpected {
            expected: format!("{} gives JSON", arguments.join(" ")),
            instead: error.to_string(),
        })
    }

    /// So many machines exist in the service.
    fn expect_machines(&self, count: usize) -> Result<(), Error> {
        let live = self.service.sandbox.ledger().live(Thing::Instance);
        expect("the service has so many machines", &json!(count), &json!(live.len()))
    }

    /// The service's only machine runs under this name. Returns its UID.
    fn expect_machine(&self, name: &str) -> Result<String, Error> {
        let state = self.service.sandbox.state();
        let machine = &state["instances"][0];
        let seen = json!([machine["alias"], machine["status"]]);
        expect("the service has the machine under this name", &json!([name, "Running"]), &seen)?;
        Ok(machine["uid"].as_str().unwrap_or_default().to_owned())
    }
}

fn expect(what: &str, expected: &Value, seen: &Value) -> Result<(), Error> {
    if expected == seen {
        return Ok(());
    }
    Err(Error::Unexpected { expected: format!("{what}: {expected}"), instead: format!("instead: {seen}") })
}
