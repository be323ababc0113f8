//! The function `cheapest_spec`.

use serde::Deserialize;

use super::record::{self, SpecRecord};
use crate::framework::{Attr, Function, FunctionError, Parameter, Signature, Type, schema::validator};

/// `cheapest_spec(specs, gpu_num, min_gpu_mem_mb...)`.
#[derive(Debug)]
pub(in crate::provider) struct CheapestSpec;

#[derive(Debug, Deserialize)]
pub(in crate::provider) struct Arguments {
    specs: Vec<Attr<SpecRecord>>,
    gpu_num: i64,
    min_gpu_mem_mb: Vec<i64>,
}

impl Function for CheapestSpec {
    type Arguments = Arguments;
    type Output = SpecRecord;

    fn name(&self) -> &'static str {
        "cheapest_spec"
    }

    fn signature(&self) -> Signature {
        let record =
            Type::object(record::attributes().into_iter().map(|attribute| (attribute.name, attribute.ty.ty())));
        Signature {
            summary: "The cheapest specification that can be created now".to_owned(),
            description: "Finds, among specifications, the one with the lowest `hourly_price` that has `gpu_num` GPUs \
                          available in one instance now; of several at the same price the one with the lowest \
                          `spec_id`. With `min_gpu_mem_mb`, only specifications whose GPUs have at least that much \
                          memory. Stock and prices change: `ignore_changes = [spec_id]` keeps the specification of an \
                          instance that was created with the result."
                .to_owned(),
            parameters: vec![
                Parameter::new(
                    "specs",
                    Type::list(record.clone()),
                    "The specifications to choose from: `specs` of `damodel_specs`, or some of them.",
                ),
                Parameter::new("gpu_num", Type::Number, "How many GPUs the instance needs.")
                    .validate(validator::between(1..=i64::MAX)),
            ],
            variadic: Some(
                Parameter::new("min_gpu_mem_mb", Type::Number, "The minimum memory of one GPU in MB.")
                    .validate(validator::between(0..=i64::MAX)),
            ),
            returns: record,
        }
    }

    fn call(&self, arguments: Arguments) -> Result<SpecRecord, FunctionError> {
        let least = arguments.min_gpu_mem_mb.iter().max().copied();
        let has_memory = |spec: &SpecRecord| {
            least.is_none_or(|least| spec.gpu_mem_mb.known().is_some_and(|memory| *memory >= least))
        };
        let specs = arguments.specs.into_iter().filter_map(Attr::into_known).filter(has_memory);
        let specs: Vec<SpecRecord> = specs.collect();
        let most = specs.iter().filter_map(|spec| spec.max_gpu_count.known()).max().copied().unwrap_or(0);
        if most <= 0 {
            let text = match least {
                Some(least) => format!("no specification with {least} MB of memory for each GPU is available now"),
                None => "none of these specifications is available now".to_owned(),
            };
            return Err(FunctionError::on("specs", text));
        }
        let fits = |spec: &SpecRecord| spec.max_gpu_count.known().is_some_and(|count| *count >= arguments.gpu_num);
        if most < arguments.gpu_num {
            let text = format!("no instance with that many GPUs is available now: at most {most} fit in one");
            return Err(FunctionError::on("gpu_num", text));
        }
        let priced = specs.into_iter().filter(fits).filter(|spec| spec.hourly_price.known().is_some());
        priced
            .min_by(|a, b| (&a.hourly_price, &a.spec_id).cmp(&(&b.hourly_price, &b.spec_id)))
            .ok_or_else(|| FunctionError::on("specs", "no specification that is available now has an hourly price"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(id: i64, count: i64, price: Option<&str>) -> Attr<SpecRecord> {
        Attr::Known(SpecRecord {
            spec_id: id.into(),
            max_gpu_count: count.into(),
            hourly_price: price.map(|price| price.parse().unwrap()).into(),
            ..SpecRecord::default()
        })
    }

    fn cheapest(specs: Vec<Attr<SpecRecord>>, gpu_num: i64) -> Result<i64, FunctionError> {
        cheapest_with(specs, gpu_num, &[])
    }

    fn cheapest_with(specs: Vec<Attr<SpecRecord>>, gpu_num: i64, memory: &[i64]) -> Result<i64, FunctionError> {
        CheapestSpec
            .call(Arguments { specs, gpu_num, min_gpu_mem_mb: memory.to_vec() })
            .map(|spec| *spec.spec_id.known().unwrap())
    }

    #[test]
    fn the_cheapest_that_fits_is_found() {
        let specs = || {
            vec![
                spec(4, 8, Some("2")),
                spec(3, 8, Some("2.0")),
                spec(2, 1, Some("1")),
                spec(1, 0, Some("0.5")),
                Attr::Null,
            ]
        };
        assert_eq!(cheapest(specs(), 1), Ok(2));
        assert_eq!(cheapest(specs(), 2), Ok(3), "of equal prices the first by number");
    }

    #[test]
    fn only_cards_with_the_memory_count() {
        let with = |id: i64, price, memory: i64| {
            Attr::Known(SpecRecord { gpu_mem_mb: memory.into(), ..spec(id, 8, Some(price)).into_known().unwrap() })
        };
        let specs = || vec![with(1, "1", 24_576), with(2, "2", 81_920), spec(3, 8, Some("0.1"))];
        assert_eq!(cheapest_with(specs(), 1, &[24_577]), Ok(2));
        assert_eq!(cheapest_with(specs(), 1, &[10, 24_576]), Ok(1));
        assert_eq!(cheapest(specs(), 1), Ok(3));
        let none = cheapest_with(specs(), 1, &[81_921]).unwrap_err();
        assert_eq!(none.parameter.as_deref(), Some("specs"));
        assert!(none.text.contains("81921 MB"), "{}", none.text);
    }

    #[test]
    fn what_is_not_found_is_the_right_arguments_fault() {
        let blamed = |specs, gpu_num| cheapest(specs, gpu_num).unwrap_err().parameter.unwrap();
        assert_eq!(blamed(vec![], 1), "specs");
        assert_eq!(blamed(vec![spec(1, 0, Some("1"))], 1), "specs");
        assert_eq!(blamed(vec![spec(1, 8, None)], 1), "specs");
        assert_eq!(blamed(vec![spec(1, 4, Some("1")), spec(2, 8, None)], 9), "gpu_num");
        assert!(cheapest(vec![spec(1, 4, Some("1"))], 9).unwrap_err().text.contains("at most 4"));
    }
}
