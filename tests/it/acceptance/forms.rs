//! The forms that the document leaves open make no difference for an operator.

use damodel::sandbox::{Code, FaultAction, Form, Options, When};
use rstest::rstest;

use crate::support::terraform::{Instance, Site, config, each_workspace, each_workspace_on};

const X: &str = "damodel_instance.x";

fn form(text: &str) -> Form {
    text.parse().unwrap()
}

#[test]
fn an_error_is_understood_in_every_shape() {
    let shapes = ["array", "capitalised", "full", "nested", "numeric_code", "string_number", "text"];
    each_workspace(|site, workspace| {
        workspace.write(&config(Instance::new("x")));
        for shape in shapes {
            for status in ["always200", "matched"] {
                site.sandbox().set_form(form(&format!("error_shape={shape},error_status={status}")));
                let sold_out = FaultAction::Error { code_n: Code::SpecNotExistOrDisable, processed: false };
                site.arm("instance_create", When::Next(1), sold_out);
                let (done, said) = workspace.try_apply(&[]);
                let errors: Vec<_> = said.iter().filter(|said| said.is_error()).collect();
                assert!(!done && errors.len() == 1, "{shape}, {status}: {said:?}");
                assert_eq!(errors[0].attribute.as_deref(), Some("spec_id"), "{shape}, {status}: {said:?}");
                for word in ["160014 SpecNotExistOrDisable", "request_id"] {
                    assert!(errors[0].detail.contains(word), "{shape}, {status}, {word}: {said:?}");
                }
                site.sandbox().clear_faults();
            }
        }
    });
}

#[rstest]
#[case("integers=floats,booleans=numbers,extra_fields,image_type_as_number")]
#[case("integers=strings,booleans=strings,total_as_string,order=shuffled")]
#[case("empty=null,page_cap=1,undocumented_statuses,metadata=missing")]
#[case("empty=missing,page_cap=2,page_size_as_asked,clock_skew=-7200")]
#[case("empty=text,clock_skew=7200,order=descending")]
fn a_life_is_the_same_in_every_form(#[case] text: &str) {
    each_workspace_on(&Options { form: form(text), generate_instances: 3, ..Site::options() }, |site, workspace| {
        let machines = |name: &str| {
            let catalogue = "data \"damodel_specs\" \"all\" {}\ndata \"damodel_public_images\" \"all\" {}";
            config(format!("{}{}{catalogue}", Instance::new("x").text("name", name), Instance::new("y")))
        };
        workspace.apply_ok(&machines("first"));
        let plan = workspace.plan_and_apply_ok(&machines("second"));
        assert_eq!(plan.actions(), [(X.to_owned(), "update".to_owned())]);
        let state = workspace.state();
        assert_eq!(
            (state.resource(X).value("status"), state.resource(X).value("image_type")),
            (&"Running".into(), &"public".into())
        );
        workspace.import_ok(&machines("second"), X, &[]);
        workspace.destroy_ok();
        assert_eq!(site.live().len(), 3, "the ones that were there before");
    });
}
