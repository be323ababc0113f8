//! Terraform's own provisioners in an instance, which ask for a terminal.

use std::{fs, path::Path};

use crate::support::terraform::{Instance, config, each_workspace};

#[test]
fn files_and_commands_reach_an_instance() {
    each_workspace(|site, workspace| {
        fs::write(workspace.directory().join("script.sh"), "#!/bin/sh\ntest -t 1 && echo \"script $*\" >>~/done\n")
            .unwrap();
        let instance = Instance::new("gpu").set("store_credentials", true);
        let steps = r#"resource "terraform_data" "steps" {
  triggers_replace = damodel_instance.gpu.id

  connection {
    host     = damodel_instance.gpu.ssh_host
    port     = damodel_instance.gpu.ssh_port
    user     = "root"
    password = damodel_instance.gpu.ssh_password
  }

  provisioner "file" {
    content     = "copied\n"
    destination = "copied"
  }

  provisioner "remote-exec" {
    inline = ["test -t 0", "cat ~/copied >>~/done", "echo \"inline $HOME\" >>~/done"]
  }

  provisioner "remote-exec" {
    script = "script.sh"
  }
}
"#;
        workspace.apply_ok(&config(format!("{instance}{steps}")));
        let machine = site.sandbox().machines().remove(0);
        let done = fs::read_to_string(Path::new(&machine.home).join("done")).unwrap();
        assert_eq!(done, format!("copied\ninline {}\nscript \n", machine.home.display()));
        workspace.finish();
    });
}
