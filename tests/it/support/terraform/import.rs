//! The import step of terraform-plugin-testing.

use super::{Plan, Workspace};

impl Workspace<'_> {
    /// Imports a resource into a fresh state with the same configuration, and checks that its attributes are the same
    /// as here, except those that the service never reports. Returns the workspace with the imported state.
    pub(crate) fn import_ok(&self, config: &str, address: &str, never_reported: &[&str]) -> Self {
        let state = self.state();
        let known = state.resource(address);
        let fresh = Self::new(self.cli, self.site);
        fresh.write(config);
        fresh.run_ok(&["import", "-no-color", "-input=false", address, &known.id()]);
        let imported_state = fresh.state();
        let imported = imported_state.resource(address);
        // An import does not know the cost at the time of the create, or whether credentials may be stored.
        let unknown = ["estimated_cost", "price_ceiling", "ssh_password", "jupyter_token"];
        let ignored: Vec<&str> = never_reported.iter().copied().chain(unknown).collect();
        let compared = |mut flat: std::collections::BTreeMap<String, String>| {
            flat.retain(|name, _| !ignored.iter().any(|ignored| name.starts_with(ignored)));
            flat
        };
        assert_eq!(compared(imported.flat()), compared(known.flat()), "import of {address}");
        for attribute in never_reported {
            assert!(imported.value(attribute).is_null(), "{attribute} is reported after all");
        }
        fresh
    }

    /// Plans the import of a resource by an `import` block in a fresh state.
    pub(crate) fn import_block(&self, config: &str, address: &str) -> (Self, Plan) {
        let id = self.state().resource(address).id();
        let fresh = Self::new(self.cli, self.site);
        fresh.write(&format!("{config}\nimport {{\n  to = {address}\n  id = {id:?}\n}}\n"));
        let plan = fresh.plan(&[]);
        (fresh, plan)
    }
}
