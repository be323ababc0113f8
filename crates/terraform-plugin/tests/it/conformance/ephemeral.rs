//! Terraform's rules for an ephemeral resource's result (plugin protocol, ephemeral resources): a plan without a prior
//! object, wholly known.

use proptest::prelude::*;
use terraform_plugin::{
    framework::Value,
    protocol::{
        codec::decode,
        tfplugin6::{open_ephemeral_resource, validate_ephemeral_resource_config},
    },
    testing::{dynamic, plan_faults},
};

use super::{
    anything::{AnyResource, TYPE_NAME, core_of, without_write_only},
    random::{self, Choices},
    runtime, tape,
};

proptest! {
    #![proptest_config(super::cases(500))]

    #[test]
    fn every_result_obeys_the_core(shape in tape(40), config in tape(30), service in tape(60)) {
        let schema = without_write_only(random::schema(&mut Choices::new(shape)));
        let resource = AnyResource::new(schema.clone(), Choices::new(service), false);
        runtime().block_on(async {
            let mut core = core_of(resource).await;
            let config = random::config(&mut Choices::new(config), &schema);
            let request = validate_ephemeral_resource_config::Request {
                type_name: TYPE_NAME.to_owned(),
                config: Some(dynamic(&schema.ty(), &config)),
            };
            let said = core.client.validate_ephemeral_resource_config(request).await.unwrap().into_inner();
            assert!(said.diagnostics.is_empty(), "{said:?}");
            let request = open_ephemeral_resource::Request {
                type_name: TYPE_NAME.to_owned(),
                config: Some(dynamic(&schema.ty(), &config)),
                ..open_ephemeral_resource::Request::default()
            };
            let opened = core.client.open_ephemeral_resource(request).await.unwrap().into_inner();
            assert!(opened.diagnostics.is_empty() && opened.deferred.is_none(), "{opened:?}");
            let result = decode(&schema.ty(), &opened.result.unwrap().msgpack).unwrap();
            assert!(result.is_wholly_known());
            let faults = plan_faults(&schema, &Value::Null, &config, &result);
            assert!(faults.is_empty(), "inconsistent result: {faults:?}");
        });
    }
}
