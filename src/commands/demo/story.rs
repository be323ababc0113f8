//! The steps of the demo (create, chat, an empty plan, destroy), and their output.

use std::{io::Write, time::Duration};

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use serde_json::{Value, json};
use tokio::time::{Instant, interval};
use tokio_util::sync::CancellationToken;

use super::{Workspace, of_cli, unexpected};
use crate::{
    commands::{
        Failure,
        terraform::{Cli, ProgramOutput},
        watch,
    },
    creation::progress::{Follower, RunEvent},
    sandbox::{LedgerObject, Mutation, Running},
};

/// The instance of the example.
const INSTANCE: &str = "damodel_instance.first";

/// The model server in it.
const SERVER: &str = "damodel_llama_server.chat[0]";

/// The interval between looks at the waits of a command.
const LOOKS: Duration = Duration::from_millis(200);

/// The steps for one instance and its model server. Each is verified with Terraform's output and the objects of the
/// service.
#[derive(Debug)]
pub(super) struct Story<'a, 'out, W> {
    pub(super) cli: &'a Cli,
    pub(super) workspace: &'a Workspace,
    pub(super) service: &'a Running,
    pub(super) narrator: &'a mut Narrator<'out, W>,
    pub(super) stop: CancellationToken,
    /// The provider's progress events.
    pub(super) follower: Follower,
}

impl<W: Write + Send> Story<'_, '_, W> {
    pub(super) async fn tell(mut self) -> Result<(), Failure> {
        self.init().await?;
        self.plan().await?;
        let instance = self.apply().await?;
        self.plan_again().await?;
        self.repair(instance).await?;
        self.destroy().await
    }

    async fn init(&mut self) -> Result<(), Failure> {
        let output = self.step(&["init"]).await?;
        let installed = output.line("- Installed damodel/damodel").unwrap_or("- Installed damodel/damodel");
        self.narrator.proves(installed.trim_start_matches("- "))
    }

    async fn plan(&mut self) -> Result<(), Failure> {
        let output = self.step(&["plan", "-out=create.tfplan"]).await?;
        self.quote(&output, "Plan:")?;
        let plan = self.json(&["show", "-json", "create.tfplan"]).await?;
        expect_actions(&plan, INSTANCE, "create")?;
        expect_actions(&plan, SERVER, "create")?;
        self.expect_instances(0)?;
        let price = &plan["planned_values"]["outputs"]["hourly_cost"]["value"];
        expect("the plan contains the price", &json!(true), &json!(price.is_number()))?;
        self.narrator.proves(&format!(
            "Nothing was created yet. The plan quotes {price} an hour; the apply buys at no higher price."
        ))
    }

    /// Returns the instance's UID.
    async fn apply(&mut self) -> Result<String, Failure> {
        let output = self.step(&["apply", "create.tfplan"]).await?;
        self.quote(&output, "Apply complete!")?;
        let outputs = self.outputs().await?;
        self.expect_instances(1)?;
        let uid = self.expect_instance("quickstart")?;
        let expected = json!([uid, "Running", "quickstart"]);
        let shown = json!([outputs["id"]["value"], outputs["status"]["value"], outputs["name"]["value"]]);
        expect("the outputs show the instance that the service has", &expected, &shown)?;
        let gpu = outputs["gpu"]["value"].as_str().unwrap_or_default();
        self.narrator.proves(&format!("{uid} is Running with {gpu}: the apply waited for that."))?;
        self.answer(&outputs)?;
        Ok(uid)
    }

    async fn plan_again(&mut self) -> Result<(), Failure> {
        // The exit code is 2 if the plan has changes.
        let output = self.step(&["plan", "-detailed-exitcode"]).await?;
        self.quote(&output, "No changes.")?;
        self.narrator.proves("The refresh found no difference between the state and the service.")
    }

    async fn repair(&mut self, instance: String) -> Result<(), Failure> {
        self.narrator.step("Reboot the instance behind Terraform's back, plan and apply")?;
        let rebooted = self.service.sandbox.mutate(Mutation::RebootInstance { uid: instance.clone() });
        rebooted.map_err(|error| unexpected("the instance reboots", &error.to_string()))?;
        let output = self.run(&["plan", "-out=repair.tfplan"]).await?;
        self.quote(&output, "Warning: Llama server")?;
        self.quote(&output, "Plan:")?;
        expect_actions(&self.json(&["show", "-json", "repair.tfplan"]).await?, SERVER, "update")?;
        let output = self.run(&["apply", "repair.tfplan"]).await?;
        self.quote(&output, "Apply complete!")?;
        expect("the instance is the same one", &json!(instance), &json!(self.expect_instance("quickstart")?))?;
        let outputs = self.outputs().await?;
        self.answer(&outputs)
    }

    async fn destroy(&mut self) -> Result<(), Failure> {
        let output = self.step(&["destroy", "-auto-approve"]).await?;
        self.quote(&output, "Destroy complete!")?;
        self.expect_instances(0)?;
        let balance = self.service.sandbox.ledger().balance(LedgerObject::Instance);
        let counts = json!({ "created": balance.created, "released": balance.released });
        expect("one instance was created and released", &json!({ "created": 1, "released": 1 }), &counts)?;
        self.narrator.proves("The service's ledger: 1 created, 1 released, 0 left.")
    }

    /// Shows and runs a command.
    async fn step(&mut self, arguments: &[&str]) -> Result<ProgramOutput, Failure> {
        self.narrator.step(&format!("{} {}", self.cli.name(), arguments.join(" ")))?;
        self.run(arguments).await
    }

    /// Runs a command, shows its waits meanwhile, and with --verbose its output.
    async fn run(&mut self, arguments: &[&str]) -> Result<ProgramOutput, Failure> {
        let (cli, folder, stop) = (self.cli, self.workspace.configuration(), self.stop.clone());
        let arguments = plain(arguments);
        let ran = cli.run(&folder, &arguments, &stop);
        tokio::pin!(ran);
        let mut ticks = interval(LOOKS);
        let output = loop {
            tokio::select! {
                biased;
                output = &mut ran => break output.map_err(of_cli)?,
                _ = ticks.tick() => self.waits()?,
            }
        };
        self.waits()?;
        self.narrator.said(&output)?;
        Ok(output)
    }

    /// Shows the provider's progress events, as `watch` does.
    fn waits(&mut self) -> Result<(), Failure> {
        // The demo does not fail without them.
        let news = self.follower.look().unwrap_or_default().events;
        news.iter().try_for_each(|RunEvent { event, .. }| self.narrator.proves(&watch::line(event, event.at)))
    }

    /// Shows the line with this beginning, which must exist.
    fn quote(&mut self, output: &ProgramOutput, beginning: &str) -> Result<(), Failure> {
        match output.line(beginning) {
            Some(line) => self.narrator.proves(line),
            None => {
                Err(unexpected(&format!("the output has a line that begins with {beginning:?}"), &output.to_string()))
            }
        }
    }

    async fn outputs(&self) -> Result<Value, Failure> {
        self.json(&["output", "-json"]).await
    }

    /// Shows the answer of the model in the instance.
    fn answer(&mut self, outputs: &Value) -> Result<(), Failure> {
        match outputs["answer"]["value"].as_str() {
            Some(answer) if !answer.is_empty() => self
                .narrator
                .proves(&format!("A stand-in for llama-server answers, which computes nothing: {answer:?}")),
            _ => Err(unexpected("the model answers", &outputs["answer"].to_string())),
        }
    }

    async fn json(&self, arguments: &[&str]) -> Result<Value, Failure> {
        let ran = self.cli.run(&self.workspace.configuration(), &plain(arguments), &self.stop).await;
        let output = ran.map_err(of_cli)?;
        serde_json::from_str(&output.stdout)
            .map_err(|error| unexpected(&format!("{} gives JSON", arguments.join(" ")), &error.to_string()))
    }

    /// Checks the number of instances in the service.
    fn expect_instances(&self, count: usize) -> Result<(), Failure> {
        let live = self.service.sandbox.ledger().live(LedgerObject::Instance);
        expect("the number of instances in the service", &json!(count), &json!(live.len()))
    }

    /// Checks that the service's only instance runs under this name. Returns its UID.
    fn expect_instance(&self, name: &str) -> Result<String, Failure> {
        let state = self.service.sandbox.state();
        let instance = &state["instances"][0];
        let seen = json!([instance["alias"], instance["status"]]);
        expect("the name of the instance in the service", &json!([name, "Running"]), &seen)?;
        Ok(instance["uid"].as_str().unwrap_or_default().to_owned())
    }
}

/// An option goes before the name of a plan file.
fn plain<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let (command, rest) = arguments.split_at(1.min(arguments.len()));
    [command, &["-no-color"], rest].concat()
}

/// Checks the planned action for a resource.
fn expect_actions(plan: &Value, address: &str, action: &str) -> Result<(), Failure> {
    let mut changes = plan["resource_changes"].as_array().into_iter().flatten();
    let planned = changes.find(|change| change["address"] == address).map(|change| &change["change"]["actions"]);
    expect(&format!("the action of the plan for {address}"), &json!([action]), planned.unwrap_or(&Value::Null))
}

fn expect(what: &str, expected: &Value, seen: &Value) -> Result<(), Failure> {
    if expected == seen {
        return Ok(());
    }
    Err(unexpected(&format!("{what}: {expected}"), &format!("instead: {seen}")))
}

/// The number of steps.
const STEPS: usize = 8;

/// The template of the bar below the text on a terminal.
const BAR: &str = "{spinner} [{bar:24}] {pos}/{len} {elapsed} {wide_msg}";

/// The interval of its spinner.
const TURN: Duration = Duration::from_millis(120);

/// Prints a line for each step, and its results below. On a terminal a bar shows the progress.
#[derive(Debug)]
pub(super) struct Narrator<'a, W> {
    out: &'a mut W,
    step: usize,
    start: Instant,
    /// Drawn on standard error, if that is a terminal.
    bar: ProgressBar,
    /// Whether the whole output of each step is shown.
    pub(super) verbose: bool,
}

impl<'a, W: Write> Narrator<'a, W> {
    pub(super) fn new(out: &'a mut W) -> Self {
        // With an invalid template the library's default is used.
        let style = ProgressStyle::with_template(BAR).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new(STEPS as u64).with_style(style).with_finish(ProgressFinish::AndClear);
        Self { out, step: 0, start: Instant::now(), bar, verbose: false }
    }

    pub(super) fn begin(&mut self, title: &str) -> Result<(), Failure> {
        self.line(title)
    }

    /// Prints the title of the next step.
    pub(super) fn step(&mut self, title: &str) -> Result<(), Failure> {
        self.bar.set_position(self.step as u64);
        self.bar.set_message(title.to_owned());
        self.bar.enable_steady_tick(TURN);
        self.step += 1;
        self.line(&format!("\n[{}/{STEPS}] {title}", self.step))
    }

    /// Prints the output of a step, with --verbose.
    pub(super) fn said(&mut self, output: &ProgramOutput) -> Result<(), Failure> {
        if self.verbose {
            for line in output.to_string().lines() {
                self.line(&format!("      | {line}"))?;
            }
        }
        Ok(())
    }

    /// Prints a result of a step.
    pub(super) fn proves(&mut self, text: &str) -> Result<(), Failure> {
        self.line(&format!("      {text}"))
    }

    pub(super) fn end(&mut self) -> Result<(), Failure> {
        self.bar.finish_and_clear();
        let seconds = self.start.elapsed().as_secs();
        self.line(&format!("\nDone in {seconds} s. Nothing is left on this computer."))
    }

    fn line(&mut self, text: &str) -> Result<(), Failure> {
        let out = &mut self.out;
        self.bar.suspend(|| writeln!(out, "{text}").and_then(|()| out.flush())).map_err(Failure::terminal)
    }
}
