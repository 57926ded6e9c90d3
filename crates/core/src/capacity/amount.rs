//! Amounts of resources, counted in thousandths so that no quantity is rounded to nothing.

use super::quantity::{self, NotAQuantity};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::collections::BTreeMap;
use std::fmt;

/// The name of the CPU resource.
pub const CPU: &str = "cpu";
/// The name of the memory resource.
pub const MEMORY: &str = "memory";
/// The name of the resource that is local storage.
pub(super) const EPHEMERAL_STORAGE: &str = "ephemeral-storage";
/// The name of the resource that counts pods.
pub const PODS: &str = "pods";

/// How much of each resource, in thousandths of its unit (millicores, thousandths of a byte). What is absent is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amounts(BTreeMap<String, i64>);

impl Amounts {
    /// Reads quantities as Kubernetes writes them.
    ///
    /// # Errors
    /// The name of the resource and what is wrong with its quantity.
    pub fn parse(quantities: &BTreeMap<String, Quantity>) -> Result<Self, (String, NotAQuantity)> {
        let parse = |(name, quantity): (&String, &Quantity)| match quantity::milli(&quantity.0) {
            Ok(milli) => Ok((name.clone(), milli)),
            Err(error) => Err((name.clone(), error)),
        };
        quantities.iter().map(parse).collect::<Result<_, _>>().map(Self)
    }

    /// A single amount.
    #[must_use]
    pub fn of(name: &str, milli: i64) -> Self {
        Self(BTreeMap::from([(name.to_owned(), milli)]))
    }

    /// How much of one resource, in thousandths.
    #[must_use]
    pub fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// How much of one resource, in thousandths, if anything is said about it.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<i64> {
        self.0.get(name).copied()
    }

    /// Whether nothing is said about any resource.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets one resource, in thousandths.
    pub fn set(&mut self, name: &str, milli: i64) {
        self.0.insert(name.to_owned(), milli);
    }

    /// All resources with their amounts, in order of name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(name, milli)| (name.as_str(), *milli))
    }

    /// Adds `times` times the other amounts.
    pub fn add(&mut self, other: &Self, times: i64) {
        for (name, milli) in &other.0 {
            let mine = self.0.entry(name.clone()).or_insert(0);
            *mine = mine.saturating_add(milli.saturating_mul(times));
        }
    }

    /// Takes for each resource the larger of both amounts.
    pub fn raise_to(&mut self, other: &Self) {
        for (name, milli) in &other.0 {
            let mine = self.0.entry(name.clone()).or_insert(0);
            *mine = (*mine).max(*milli);
        }
    }

    /// The amounts with zero for those that are negative.
    #[must_use]
    pub fn not_below_zero(mut self) -> Self {
        self.0.values_mut().for_each(|milli| *milli = (*milli).max(0));
        self
    }

    /// Keeps the amounts of resources that the rule lets through.
    pub fn retain(&mut self, mut keeps: impl FnMut(&str) -> bool) {
        self.0.retain(|name, _| keeps(name));
    }

    /// How many times `need` fits in these amounts; needs of zero do not count.
    #[must_use]
    pub fn times(&self, need: &Self) -> u32 {
        let fits =
            |(name, milli): (&str, i64)| u32::try_from((self.get(name) / milli).max(0)).unwrap_or(u32::MAX);
        need.iter().filter(|(_, milli)| *milli > 0).map(fits).min().unwrap_or(u32::MAX)
    }

    /// The amounts as Kubernetes writes them.
    #[must_use]
    pub fn quantities(&self) -> BTreeMap<String, Quantity> {
        self.iter().map(|(name, milli)| (name.to_owned(), Quantity(written(name, milli)))).collect()
    }
}

/// One amount as Kubernetes writes it: whole units where possible, powers of two for bytes.
pub(crate) fn written(name: &str, milli: i64) -> String {
    if milli % 1000 != 0 {
        return format!("{milli}m");
    }
    let whole = milli / 1000;
    let binary = name == MEMORY || name == EPHEMERAL_STORAGE || name.starts_with("hugepages-");
    let units = [(1i64 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki")];
    match units.iter().find(|(size, _)| binary && whole != 0 && whole % size == 0) {
        Some((size, unit)) => format!("{}{unit}", whole / size),
        None => whole.to_string(),
    }
}

impl fmt::Display for Amounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> =
            self.iter().map(|(name, milli)| format!("{name} {}", written(name, milli))).collect();
        f.write_str(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(pairs: &[(&str, &str)]) -> Amounts {
        let quantities = pairs.iter().map(|(name, text)| ((*name).to_owned(), Quantity((*text).to_owned())));
        Amounts::parse(&quantities.collect()).unwrap()
    }

    #[test]
    fn a_bad_quantity_names_its_resource() {
        let bad = BTreeMap::from([("cpu".to_owned(), Quantity("a lot".to_owned()))]);
        assert_eq!(Amounts::parse(&bad).unwrap_err().0, "cpu");
    }

    #[test]
    fn the_scarcest_resource_decides_how_often_a_need_fits() {
        let free = amounts(&[("cpu", "2"), ("memory", "4Gi")]);
        assert_eq!(free.times(&amounts(&[("cpu", "500m"), ("memory", "512Mi")])), 4);
        assert_eq!(free.times(&amounts(&[("cpu", "500m"), ("nvidia.com/gpu", "1")])), 0);
        assert_eq!(free.times(&amounts(&[("cpu", "0")])), u32::MAX);
        assert_eq!(
            Amounts::of(CPU, -100).times(&Amounts::of(CPU, 100)),
            0,
            "overcommitted is no room, not less"
        );
    }

    #[test]
    fn is_written_as_it_was_read() {
        let text = [("cpu", "1500m"), ("memory", "512Mi"), ("memory", "16Gi"), ("pods", "110"), ("cpu", "4")];
        for (name, quantity) in text {
            assert_eq!(amounts(&[(name, quantity)]).quantities()[name].0, quantity);
        }
    }
}
