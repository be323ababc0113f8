//! Files that stall: the plugin still answers, and ends when it is told to.

use std::{
    fs::{self, File, OpenOptions},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use damodel::{
    framework::{Ends, OfferKind, Server, Value},
    protocol::tfplugin6::{
        Diagnostic, configure_provider, plan_resource_change, provider_client::ProviderClient, stop_provider,
    },
    provider::{Damodel, Environment},
};
use nix::{
    fcntl::OFlag,
    sys::{signal::Signal, stat::Mode},
    unistd::mkfifo,
};
use tempfile::TempDir;
use terraform_plugin::testing::{ClientIdentity, DEADLINE, PluginProcess, dynamic, object};
use tokio::time::{sleep, timeout};
use tonic::transport::Channel;

use crate::support::{plugin::BINARY, terraform::Site};

/// How long an end may take: the grace of five seconds and one more.
const END: Duration = Duration::from_secs(6);

/// How often an end is tried: a stall delays every end, and other tests delay only some.
const TRIES: usize = 3;

pub(super) fn server() -> Server<Damodel> {
    Server::new(Damodel::new(Environment::default()), Ends::default())
}

async fn configure(mut client: ProviderClient<Channel>, set: Vec<(&str, Value)>) -> Vec<Diagnostic> {
    let ty = server().schema().ty();
    let config = Some(dynamic(&ty, &object(&ty, set)));
    let request = configure_provider::Request { config, ..configure_provider::Request::default() };
    client.configure_provider(request).await.unwrap().into_inner().diagnostics
}

/// The plan of a resource: of its create with these arguments, or of the destroy of a state with them.
async fn plan(
    mut client: ProviderClient<Channel>,
    name: &'static str,
    set: Vec<(&'static str, Value)>,
    is_destroy: bool,
) -> Vec<Diagnostic> {
    let ty = server().registry().find(OfferKind::Resource, name).unwrap().ty.clone();
    let (value, null) = (dynamic(&ty, &object(&ty, set)), dynamic(&ty, &Value::Null));
    let (prior, wanted) = if is_destroy { (value, null) } else { (null, value) };
    let request = plan_resource_change::Request {
        type_name: name.to_owned(),
        prior_state: Some(prior),
        proposed_new_state: Some(wanted.clone()),
        config: Some(wanted),
        ..plan_resource_change::Request::default()
    };
    client.plan_resource_change(request).await.unwrap().into_inner().diagnostics
}

async fn stop(client: &mut ProviderClient<Channel>) {
    let stopped = timeout(Duration::from_secs(1), client.stop_provider(stop_provider::Request {}));
    stopped.await.expect("an answer within a second").unwrap();
}

/// Makes a named pipe, which a reader waits at.
fn fifo(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    mkfifo(path, Mode::S_IRWXU).unwrap();
}

/// The other end of a pipe, as soon as a reader waits at it. It is never written.
async fn reader_waits(path: &Path) -> File {
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(OFlag::O_NONBLOCK.bits());
    let opened = async {
        loop {
            // Without a reader it cannot be opened.
            match options.open(path) {
                Ok(end) => return end,
                Err(_) => sleep(Duration::from_millis(10)).await,
            }
        }
    };
    timeout(DEADLINE, opened).await.expect("a reader")
}

/// How long the plugin takes to end from now on.
async fn end_of(plugin: PluginProcess) -> Duration {
    let start = Instant::now();
    let ended = plugin.ended().await;
    assert!(ended.leftovers.is_empty(), "{ended:?}");
    start.elapsed()
}

/// Asserts that a plugin ends in time in one of a few tries.
async fn ends_in_time(try_once: impl AsyncFn() -> Duration) {
    let mut fastest = Duration::MAX;
    for _ in 0..TRIES {
        fastest = fastest.min(try_once().await);
        if fastest <= END {
            return;
        }
    }
    panic!("it took at least {fastest:?}");
}

/// A plugin whose configure waits at its certificate file.
async fn at_its_certificate(command: tokio::process::Command) -> (TempDir, PluginProcess, File) {
    let folder = tempfile::tempdir().unwrap();
    let certificate = folder.path().join("ca.pem");
    fifo(&certificate);
    let plugin = PluginProcess::launch(command, Some(ClientIdentity::generate())).await;
    let mut client = ProviderClient::new(plugin.connect().await);
    let file = certificate.display().to_string();
    let configuring = tokio::spawn(configure(client.clone(), vec![("ca_certificate_file", file.into())]));
    let end = reader_waits(&certificate).await;
    // A call beside it is answered.
    stop(&mut client).await;
    let said = timeout(Duration::from_secs(1), configuring).await.expect("an answer within a second").unwrap();
    assert!(said.is_empty(), "a stopped configure configures: {said:?}");
    (folder, plugin, end)
}

#[tokio::test]
async fn a_certificate_file_that_stalls_holds_up_neither_a_stop_nor_an_end() {
    ends_in_time(async || {
        let (_folder, plugin, _end) = at_its_certificate(PluginProcess::command(BINARY)).await;
        plugin.signal(Signal::SIGTERM);
        end_of(plugin).await
    })
    .await;
}

#[tokio::test]
async fn a_certificate_file_that_stalls_does_not_outlive_the_core() {
    ends_in_time(async || {
        // The shell stands for Terraform.
        let mut core = PluginProcess::command("sh");
        core.args(["-c", "\"$0\"; :", BINARY]).stdin(Stdio::null());
        let (_folder, plugin, _end) = at_its_certificate(core).await;
        plugin.signal(Signal::SIGKILL);
        end_of(plugin).await
    })
    .await;
}

/// A plugin whose pending directory is in a folder.
pub(super) async fn beside_pending(site: &Site, folder: &Path, mut command: tokio::process::Command) -> PluginProcess {
    command.env("DAMODEL_PENDING_DIR", folder.join("pending"));
    let plugin = PluginProcess::launch(command, None).await;
    let said = configure(
        ProviderClient::new(plugin.connect().await),
        vec![("base_url", site.base_url().into()), ("api_token", site.token().into()), ("region", "cn-east-1".into())],
    );
    assert_eq!(said.await, []);
    plugin
}

/// The arguments of an instance.
pub(super) fn instance() -> Vec<(&'static str, Value)> {
    let numbers = [("spec_id", 103), ("gpu_num", 1), ("image_id", 902)].map(|(name, number)| (name, number.into()));
    [("name", "x".into()), ("image_type", "public".into())].into_iter().chain(numbers).collect()
}

/// The plan of an instance.
async fn plan_instance(client: ProviderClient<Channel>) -> Vec<Diagnostic> {
    plan(client, "damodel_instance", instance(), false).await
}

/// Runs a test beside a sandbox.
pub(super) fn beside_a_site(test: impl AsyncFn(&Site)) {
    let site = Site::start();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(test(&site));
}

/// A plugin whose plan waits at the file of quotes; the stop has ended the plan.
async fn at_its_quotes(site: &Site, command: tokio::process::Command) -> (TempDir, PluginProcess, File) {
    let folder = tempfile::tempdir().unwrap();
    let quotes = folder.path().join("pending-quotes.jsonl");
    fifo(&quotes);
    let plugin = beside_pending(site, folder.path(), command).await;
    let mut client = ProviderClient::new(plugin.connect().await);
    let planning = tokio::spawn(plan_instance(client.clone()));
    let end = reader_waits(&quotes).await;
    stop(&mut client).await;
    timeout(Duration::from_secs(1), planning).await.expect("an answer within a second").unwrap();
    (folder, plugin, end)
}

#[test]
fn quotes_that_stall_hold_up_neither_a_stop_nor_an_end() {
    beside_a_site(async |site| {
        ends_in_time(async || {
            let (_folder, plugin, _end) = at_its_quotes(site, PluginProcess::command(BINARY)).await;
            plugin.signal(Signal::SIGTERM);
            end_of(plugin).await
        })
        .await;
    });
}

#[test]
fn quotes_that_stall_do_not_outlive_the_core() {
    beside_a_site(async |site| {
        ends_in_time(async || {
            // The shell stands for Terraform.
            let mut core = PluginProcess::command("sh");
            core.args(["-c", "\"$0\"; :", BINARY]).stdin(Stdio::null());
            let (_folder, plugin, _end) = at_its_quotes(site, core).await;
            plugin.signal(Signal::SIGKILL);
            end_of(plugin).await
        })
        .await;
    });
}
