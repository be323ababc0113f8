//! The function `estimate_cost`.

use super::pricing::{self, EstimatedCost, PAYMENT_TYPES, PriceTerms, Prices, cost};
use crate::framework::{Function, FunctionError, Parameter, Signature, Type, Value, schema::Validator};

/// `estimate_cost(spec, gpu_num, data_disk_expand_size_gb, payment_type, purchase_duration)`.
#[derive(Debug)]
pub(super) struct EstimateCost;

impl Function for EstimateCost {
    type Arguments = Value;
    type Output = EstimatedCost;

    fn name(&self) -> &'static str {
        "estimate_cost"
    }

    fn signature(&self) -> Signature {
        Signature {
            summary: "Estimated cost of an instance of a specification".to_owned(),
            description: "Computes the `estimated_cost` of a `damodel_instance` from the prices of a specification: \
                          `payment_type`, `unit_price`, `data_disk_price`, `period_total`, `hourly_equivalent`, \
                          `discount` and `discount_status`. Parts for which the specification has no price are null; \
                          for `Weekly` all are null. Discounts are not applied, and a month has 730 hours."
                .to_owned(),
            parameters: vec![
                Parameter::new(
                    "spec",
                    spec_type(),
                    "A specification: an element of `specs` of `damodel_specs`, or the data source `damodel_spec` \
                     itself.",
                ),
                Parameter::new("gpu_num", Type::Number, "How many GPUs.").validate(Validator::between(1..=i64::MAX)),
                Parameter::new(
                    "data_disk_expand_size_gb",
                    Type::Number,
                    "Additional size of the local data disk in GB; null means 0.",
                )
                .takes_null()
                .validate(Validator::between(0..=i64::MAX)),
                Parameter::new(
                    "payment_type",
                    Type::String,
                    "`Hourly`, `Daily`, `Weekly` or `Monthly`; null means `Hourly`.",
                )
                .takes_null()
                .validate(Validator::one_of(PAYMENT_TYPES)),
                Parameter::new(
                    "purchase_duration",
                    Type::Number,
                    "How many days, weeks or months. For `Hourly` it has no effect and may be null.",
                )
                .takes_null()
                .validate(Validator::between(1..=i64::MAX)),
            ],
            returns: pricing::ty(),
        }
    }

    fn call(&self, arguments: Value) -> Result<EstimatedCost, FunctionError> {
        let number = |value: &Value| if let Value::Number(number) = value { Some(number.clone()) } else { None };
        let whole = |name: &str| number(arguments.attribute(name)).and_then(|number| number.to_i64());
        let payment_type = arguments.attribute("payment_type").as_str().unwrap_or("Hourly");
        let purchase_duration = match whole("purchase_duration") {
            Some(duration) => duration,
            None if payment_type == "Hourly" => 1,
            None => {
                return Err(FunctionError::on("purchase_duration", "must not be null unless payment_type is Hourly"));
            }
        };
        let order = PriceTerms {
            payment_type,
            purchase_duration,
            gpu_num: whole("gpu_num").unwrap_or_default(),
            data_disk_expand_size_gb: whole("data_disk_expand_size_gb").unwrap_or_default(),
        };
        let spec = arguments.attribute("spec");
        let decimal = |field: &str| number(spec.attribute(field)).map(Into::into);
        let word = |field: &str| spec.attribute(field).as_str().map(str::to_owned);
        Ok(cost(&Prices::read(payment_type, decimal, word), &order))
    }
}

fn spec_type() -> Type {
    let fields = ["price", "data_disk_price", "discount", "discount_status"];
    let of = |field: &str| if field == "discount_status" { Type::String } else { Type::Number };
    let periods = ["hourly", "daily", "monthly"].into_iter();
    Type::object(periods.flat_map(|period| fields.map(|field| (format!("{period}_{field}"), of(field)))))
}
