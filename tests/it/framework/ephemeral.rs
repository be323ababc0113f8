//! The provider's ephemeral resources: a tunnel that is stopped and closed, and those of the program.

use damodel::{
    framework::{Type, Value},
    protocol::{
        codec::decode,
        tfplugin6::{
            close_ephemeral_resource, get_provider_schema, open_ephemeral_resource, provider_client::ProviderClient,
            stop_provider,
        },
    },
    provider::{Damodel, Environment},
};
use terraform_plugin::testing::{Core, DEADLINE, PluginProcess, dynamic, object};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use crate::support::{plugin::BINARY, sshd::Sshd};

const TUNNEL: &str = "damodel_llama_tunnel";

/// Sends a word, and receives its echo.
async fn echoes(stream: &mut TcpStream) {
    let echoed = async {
        stream.write_all(b"word").await.unwrap();
        let mut back = [0; 4];
        stream.read_exact(&mut back).await.unwrap();
        assert_eq!(&back, b"word");
    };
    timeout(DEADLINE, echoed).await.unwrap();
}

/// After the first Ctrl-C Terraform stops each provider, waits for running operations, and then closes.
#[tokio::test(flavor = "multi_thread")]
async fn a_tunnel_outlives_a_stop_and_ends_with_its_close() {
    let Some(sshd) = Sshd::started() else { return };
    let far = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = far.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = far.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                tokio::io::copy(&mut read, &mut write).await
            });
        }
    });
    let mut core = Core::new(Damodel::new(Environment::default()), TUNNEL);
    assert!(core.configure(&object(&core.provider_ty, [])).await.is_empty());

    let target = sshd.target();
    let key = target.credentials.private_key_file.unwrap();
    let Type::Object(attributes) = &core.ty else { panic!("a schema is an object") };
    let ssh = object(
        &attributes["ssh"],
        [
            ("host", "127.0.0.1".into()),
            ("port", i64::from(sshd.port()).into()),
            ("user", target.user.as_str().into()),
            ("private_key_file", key.to_str().unwrap().into()),
        ],
    );
    let config = object(&core.ty, [("ssh", ssh), ("port", i64::from(port).into())]);
    let request = open_ephemeral_resource::Request {
        type_name: TUNNEL.to_owned(),
        config: Some(core.dynamic(&config)),
        ..open_ephemeral_resource::Request::default()
    };
    let opened = core.client.open_ephemeral_resource(request).await.unwrap().into_inner();
    let result = decode(&core.ty, &opened.result.unwrap().msgpack).unwrap();
    let Value::String(url) = result.attribute("local_url") else { panic!("{:?}", opened.diagnostics) };
    let address = url.strip_prefix("http://").unwrap().to_owned();
    let mut before = TcpStream::connect(&address).await.unwrap();
    echoes(&mut before).await;

    core.client.stop_provider(stop_provider::Request {}).await.unwrap();
    let mut after = TcpStream::connect(&address).await.unwrap();
    echoes(&mut after).await;
    echoes(&mut before).await;

    let request = close_ephemeral_resource::Request { type_name: TUNNEL.to_owned(), private: opened.private };
    let closed = core.client.close_ephemeral_resource(request).await.unwrap().into_inner();
    assert!(closed.diagnostics.is_empty());
    for mut stream in [before, after] {
        let end = timeout(DEADLINE, stream.read(&mut [0])).await.unwrap();
        assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
    }
}

#[tokio::test]
async fn the_program_itself_offers_them() {
    let plugin = PluginProcess::start(BINARY).await;
    let mut client = ProviderClient::new(plugin.connect().await).max_decoding_message_size(64 << 20);
    let schema = client.get_provider_schema(get_provider_schema::Request {}).await.unwrap().into_inner();
    assert!(schema.ephemeral_resource_schemas.contains_key("damodel_instance_access"));
    let names = ["id", "ssh_host", "ssh_port", "ssh_user", "ssh_password", "jupyter_url", "jupyter_token"];
    let ty = Type::object(names.map(|name| (name, if name == "ssh_port" { Type::Number } else { Type::String })));
    let config = object(&ty, [("id", "ins-1".into())]);
    let request = open_ephemeral_resource::Request {
        type_name: "damodel_instance_access".to_owned(),
        config: Some(dynamic(&ty, &config)),
        ..open_ephemeral_resource::Request::default()
    };
    let opened = client.open_ephemeral_resource(request).await.unwrap().into_inner();
    let [said] = opened.diagnostics.as_slice() else { panic!("{opened:?}") };
    assert_eq!(said.summary, "The provider is not configured");
    plugin.shut_down().await;
}
