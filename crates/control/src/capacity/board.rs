//! The room of all clusters for the shapes that were asked for lately, side by side.
//!
//! A decision asks every cluster of the fleet for its room. What each one knows stands in many places of the memory; here the
//! answers for one shape stand in one row, in order of the clusters' names, and are written again when a cluster changes.

use portolan_core::capacity::{ClusterIndex, Shape, View, WorkloadFilter};

/// For so many shapes there is a row; each costs a little at every change of a cluster.
const ROWS: usize = 32;

/// The answers of all clusters that need not be counted for.
#[derive(Debug, Default)]
pub(super) struct Board {
    names: Names,
    /// Which workloads each cluster may know.
    filters: Vec<WorkloadFilter>,
    rows: Vec<Row>,
    /// The row that was asked for last.
    row: usize,
    /// The cluster that comes after the one that was asked for last: clusters are asked in order.
    next: usize,
    uses: u64,
}

/// What each cluster has for one shape; nothing where that has to be counted.
#[derive(Debug)]
struct Row {
    shape: Shape,
    used: u64,
    views: Vec<Option<View>>,
    /// Where the shape was found in the cluster that was looked at last.
    hint: usize,
}

impl Board {
    /// A cluster as a workload sees it, if nothing has to be counted for that.
    pub(super) fn view(&mut self, cluster: &str, uid: &str, shape: &Shape) -> Option<View> {
        if self.rows.get(self.row).is_none_or(|row| row.shape != *shape) {
            self.row = self.rows.iter().position(|row| row.shape == *shape)?;
            self.uses += 1;
            self.rows.get_mut(self.row)?.used = self.uses;
        }
        let place = self.place(cluster)?;
        self.next = place + 1;
        if self.filters.get(place)?.may_contain(uid) {
            return None;
        }
        *self.rows.get(self.row)?.views.get(place)?
    }

    /// A shape was asked for and had to be counted in a cluster: the next one who asks finds it here.
    pub(super) fn learn(&mut self, cluster: &str, index: &ClusterIndex, shape: &Shape) {
        let Some(place) = self.place(cluster) else { return };
        if !self.rows.iter().any(|row| row.shape == *shape) {
            if self.rows.len() >= ROWS
                && let Some(oldest) = (0..self.rows.len()).min_by_key(|row| self.rows[*row].used)
            {
                self.rows.swap_remove(oldest);
            }
            self.uses += 1;
            let views = vec![None; self.filters.len()];
            self.rows.push(Row { shape: shape.clone(), used: self.uses, views, hint: 0 });
        }
        let row = self.rows.iter_mut().find(|row| row.shape == *shape);
        row.into_iter().for_each(|row| row.write(place, index));
    }

    /// A cluster has changed.
    pub(super) fn changed(&mut self, cluster: &str, index: &ClusterIndex) {
        let Some(place) = self.place(cluster) else { return };
        if let Some(filter) = self.filters.get_mut(place) {
            *filter = index.workload_filter();
        }
        self.rows.iter_mut().for_each(|row| row.write(place, index));
    }

    /// A cluster is there, or another one of the same name.
    pub(super) fn insert(&mut self, cluster: &str, index: &ClusterIndex) {
        if let Err(place) = self.names.find(cluster) {
            self.names.insert(place, cluster);
            self.filters.insert(place, WorkloadFilter::default());
            self.rows.iter_mut().for_each(|row| row.views.insert(place, None));
        }
        self.changed(cluster, index);
    }

    /// A cluster is gone.
    pub(super) fn remove(&mut self, cluster: &str) {
        if let Ok(place) = self.names.find(cluster) {
            self.names.remove(place);
            self.filters.remove(place);
            for row in &mut self.rows {
                row.views.remove(place);
            }
        }
    }

    fn place(&self, cluster: &str) -> Option<usize> {
        if self.names.get(self.next) == Some(cluster) {
            return Some(self.next);
        }
        self.names.find(cluster).ok()
    }
}

impl Row {
    fn write(&mut self, place: usize, index: &ClusterIndex) {
        if let Some(view) = self.views.get_mut(place) {
            *view = index.kept_view(&self.shape, &mut self.hint);
        }
    }
}

/// Names in order, one behind the other, so that reading them in order is reading on.
#[derive(Debug, Default)]
struct Names {
    text: String,
    ends: Vec<usize>,
}

impl Names {
    fn get(&self, place: usize) -> Option<&str> {
        self.text.get(self.start(place)..*self.ends.get(place)?)
    }

    fn start(&self, place: usize) -> usize {
        place.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0)
    }

    /// Where a name is, or where it would be.
    fn find(&self, name: &str) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.get(middle).unwrap_or_default().cmp(name) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Ok(middle),
            }
        }
        Err(low)
    }

    fn insert(&mut self, place: usize, name: &str) {
        let start = self.start(place);
        self.text.insert_str(start, name);
        self.ends.insert(place, start);
        self.ends.iter_mut().skip(place).for_each(|end| *end += name.len());
    }

    fn remove(&mut self, place: usize) {
        let Some(length) = self.get(place).map(str::len) else { return };
        let start = self.start(place);
        self.text.replace_range(start..start + length, "");
        self.ends.remove(place);
        self.ends.iter_mut().skip(place).for_each(|end| *end -= length);
    }
}

#[cfg(test)]
#[path = "board_tests.rs"]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_stay_in_order_whoever_comes_and_goes() {
        let mut names = Names::default();
        let mut known = BTreeSet::new();
        for (number, name) in ["m", "a", "zz", "", "b", "aa", "m2", "é"].into_iter().enumerate() {
            let place = names.find(name).unwrap_err();
            names.insert(place, name);
            known.insert(name);
            if number % 3 == 2 {
                let gone = *known.iter().nth(number / 2).unwrap();
                names.remove(names.find(gone).unwrap());
                known.remove(gone);
            }
            let listed: Vec<&str> = (0..names.ends.len()).map(|place| names.get(place).unwrap()).collect();
            assert_eq!(listed, known.iter().copied().collect::<Vec<_>>());
            assert!(listed.iter().enumerate().all(|(place, name)| names.find(name) == Ok(place)));
            assert_eq!(names.get(listed.len()), None);
        }
    }
}
