//! The filters that the service does not offer, or whose effect it does not promise.

use std::cmp::Ordering;

use regex::Regex;

use super::{Specs, record::SpecRecord};
use crate::{
    framework::{Attr, Diagnostic, Path},
    provider::images::version,
};

/// What a configuration asks for.
#[derive(Debug)]
pub(super) struct Filter {
    wanted: Specs,
    gpu_name: Option<Regex>,
    min_cuda: Option<Vec<u64>>,
}

impl Filter {
    pub(super) fn of(wanted: &Specs) -> Result<Self, Diagnostic> {
        let gpu_name = wanted.gpu_name.as_str().map(Regex::new).transpose().map_err(|error| {
            Diagnostic::error("Invalid value", format!("gpu_name is no regular expression: {error}."))
                .at(Path::to("gpu_name"))
        })?;
        Ok(Self { wanted: wanted.clone(), gpu_name, min_cuda: wanted.min_cuda.as_str().and_then(version) })
    }

    /// Whether a specification is asked for. One that does not say what is asked of it does not match.
    pub(super) fn accepts(&self, spec: &SpecRecord) -> bool {
        let wanted = &self.wanted;
        equals(&wanted.capacity_type, &spec.capacity_type)
            && equals(&wanted.rush_sale, &spec.rush_sale)
            && at_least(&wanted.min_gpu_num, &spec.max_gpu_count)
            && at_least(&wanted.min_gpu_mem_mb, &spec.gpu_mem_mb)
            && at_least(&wanted.min_cpu_per_gpu, &spec.cpu_per_gpu)
            && at_least(&wanted.min_mem_per_gpu_gb, &spec.mem_per_gpu_gb)
            && at_most(&wanted.max_hourly_price, &spec.hourly_price)
            && (wanted.available_only.known() != Some(&true) || spec.available.known() == Some(&true))
            && self
                .gpu_name
                .as_ref()
                .is_none_or(|regex| spec.gpu_name.as_str().is_some_and(|name| regex.is_match(name)))
            && self.min_cuda.as_ref().is_none_or(|least| {
                spec.highest_cuda.as_str().and_then(version).is_some_and(|highest| highest >= *least)
            })
    }

    /// The order that is asked for, then by number, so that it is the same every time.
    pub(super) fn order(&self, a: &SpecRecord, b: &SpecRecord) -> Ordering {
        let order = match self.wanted.sort_by.as_str() {
            Some("price") => unset_last(&a.hourly_price, &b.hourly_price, Ord::cmp),
            Some("gpu_mem") => unset_last(&a.gpu_mem_mb, &b.gpu_mem_mb, |a, b| b.cmp(a)),
            _ => Ordering::Equal,
        };
        order.then_with(|| a.spec_id.cmp(&b.spec_id))
    }
}

fn equals<T: PartialEq>(wanted: &Attr<T>, actual: &Attr<T>) -> bool {
    wanted.known().is_none_or(|wanted| actual.known() == Some(wanted))
}

fn at_least<T: PartialOrd>(least: &Attr<T>, actual: &Attr<T>) -> bool {
    least.known().is_none_or(|least| actual.known().is_some_and(|actual| actual >= least))
}

fn at_most<T: PartialOrd>(most: &Attr<T>, actual: &Attr<T>) -> bool {
    most.known().is_none_or(|most| actual.known().is_some_and(|actual| actual <= most))
}

fn unset_last<T>(a: &Attr<T>, b: &Attr<T>, compare: impl Fn(&T, &T) -> Ordering) -> Ordering {
    match (a.known(), b.known()) {
        (Some(a), Some(b)) => compare(a, b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(id: i64, gpu: &str, count: i64, cuda: &str, price: &str) -> SpecRecord {
        SpecRecord {
            spec_id: id.into(),
            gpu_name: gpu.into(),
            max_gpu_count: count.into(),
            available: (count > 0).into(),
            highest_cuda: cuda.into(),
            hourly_price: Attr::Known(price.parse().unwrap()),
            ..SpecRecord::default()
        }
    }

    fn specs() -> Vec<SpecRecord> {
        vec![
            spec(3, "H100", 8, "12.8", "12.5"),
            spec(1, "A100-80G", 4, "12.10", "6.9"),
            spec(2, "V100", 0, "11.8", "1.2"),
        ]
    }

    fn ids(wanted: &Specs) -> Vec<i64> {
        let filter = Filter::of(wanted).unwrap();
        let mut found: Vec<_> = specs().into_iter().filter(|spec| filter.accepts(spec)).collect();
        found.sort_by(|a, b| filter.order(a, b));
        found.iter().filter_map(|spec| spec.spec_id.known().copied()).collect()
    }

    #[test]
    fn the_order_is_by_number_unless_asked_otherwise() {
        assert_eq!(ids(&Specs::default()), [1, 2, 3]);
        assert_eq!(ids(&Specs { sort_by: "price".into(), ..Specs::default() }), [2, 1, 3]);
    }

    #[test]
    fn versions_are_compared_part_by_part() {
        assert_eq!(ids(&Specs { min_cuda: "12.9".into(), ..Specs::default() }), [1]);
        assert_eq!(ids(&Specs { min_cuda: "11".into(), ..Specs::default() }), [1, 2, 3]);
    }

    #[test]
    fn filters_narrow() {
        assert_eq!(ids(&Specs { available_only: true.into(), ..Specs::default() }), [1, 3]);
        assert_eq!(ids(&Specs { gpu_name: "^[AH]100".into(), ..Specs::default() }), [1, 3]);
        assert_eq!(ids(&Specs { min_gpu_num: 5.into(), ..Specs::default() }), [3]);
        let cheap = Specs { max_hourly_price: Attr::Known("6.9".parse().unwrap()), ..Specs::default() };
        assert_eq!(ids(&cheap), [1, 2]);
    }

    #[test]
    fn what_a_specification_does_not_say_does_not_match() {
        assert!(ids(&Specs { min_gpu_mem_mb: 1.into(), ..Specs::default() }).is_empty());
        assert!(ids(&Specs { rush_sale: true.into(), ..Specs::default() }).is_empty());
    }
}
