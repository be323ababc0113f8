//! The provider of the documentation, with the core that needs no Terraform.

use terraform_plugin::{
    framework::Value,
    testing::{Core, object},
};

use crate::words::Acme;

#[tokio::test]
async fn a_word_lives_without_terraform() {
    let mut core = Core::new(Acme::default(), "acme_word");
    assert!(core.configure(&object(&core.provider_ty, [])).await.is_empty());
    let ty = core.ty.clone();
    let word = |id: &str, text: &str| object(&ty, [("id", id.into()), ("text", text.into())]);
    let config = |text: &str| object(&ty, [("text", text.into())]);
    assert_eq!(core.validate(&config("two words")).await[0].detail, "text must be one word; it is \"two words\".");

    let plan = core.plan(&config("hello"), &Value::Null, b"").await;
    let made = core.apply(&config("hello"), &Value::Null, &plan.value, &plan.private).await;
    assert!(made.value == word("1", "hello"));
    let imported = core.import("1").await;
    assert!(core.read(&imported.value, &imported.private).await.value == made.value);

    let plan = core.plan(&config("bye"), &word("2", "hello"), b"").await;
    let failed = core.apply(&config("bye"), &word("2", "hello"), &plan.value, &plan.private).await;
    assert_eq!(failed.diagnostics[0].summary, "The word is gone");
    // With an error, null means that the core keeps what it has.
    assert!(failed.value.is_null());
    let plan = core.plan(&Value::Null, &made.value, b"").await;
    assert!(core.apply(&Value::Null, &made.value, &plan.value, &plan.private).await.value.is_null());
    assert!(core.read(&made.value, b"").await.value.is_null());
}
