//! Which file of a folder imports which, and the circles in that.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The files of a folder, each with those that it imports and the items that it takes from them.
#[derive(Default)]
pub(super) struct Graph {
    imports: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
}

impl Graph {
    pub(super) fn add(&mut self, file: &str, imported: &str, item: &str) {
        let items = self.imports.entry(file.to_owned()).or_default().entry(imported.to_owned()).or_default();
        items.insert(item.to_owned());
    }

    /// The shortest circle through each file that is in one, in words. A file of a circle that is named already is not named again.
    pub(super) fn circles(&self) -> Vec<String> {
        let mut named = BTreeSet::new();
        let mut circles = Vec::new();
        for start in self.imports.keys() {
            if named.contains(start) {
                continue;
            }
            if let Some(circle) = self.circle(start) {
                circles.push(self.describe(&circle));
                named.extend(circle);
            }
        }
        circles
    }

    /// The files of the shortest circle that begins and ends in a file, which is given once.
    fn circle<'a>(&'a self, start: &'a String) -> Option<Vec<&'a String>> {
        let mut came_from: BTreeMap<&String, &String> = BTreeMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(file) = queue.pop_front() {
            for imported in self.imports.get(file).into_iter().flat_map(BTreeMap::keys) {
                if imported == start {
                    let mut circle = vec![file];
                    while let Some(before) = came_from.get(circle[circle.len() - 1]) {
                        circle.push(before);
                    }
                    circle.reverse();
                    return Some(circle);
                }
                if !came_from.contains_key(imported) {
                    came_from.insert(imported, file);
                    queue.push_back(imported);
                }
            }
        }
        None
    }

    /// For example `a imports b (B), b imports a (A)`.
    fn describe(&self, circle: &[&String]) -> String {
        let next = circle.iter().cycle().skip(1);
        let step = |(file, imported): (&&String, &&String)| {
            let items = self.imports.get(*file).and_then(|imports| imports.get(*imported));
            let items: Vec<&str> = items.into_iter().flatten().map(String::as_str).collect();
            format!("{file} imports {imported} ({})", items.join(", "))
        };
        circle.iter().zip(next).map(step).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(imports: &[(&str, &str)]) -> Vec<String> {
        let mut graph = Graph::default();
        for (file, imported) in imports {
            graph.add(file, imported, "Item");
        }
        graph.circles()
    }

    #[test]
    fn files_that_import_in_one_direction_are_no_circle() {
        assert!(circles(&[("a", "b"), ("a", "c"), ("b", "c")]).is_empty());
    }

    #[test]
    fn a_circle_is_found_over_several_files_and_named_once() {
        let found = circles(&[("a", "b"), ("b", "c"), ("c", "b"), ("c", "d"), ("d", "b")]);
        assert_eq!(
            found,
            [
                "b imports c (Item), c imports b (Item)",
                "d imports b (Item), b imports c (Item), c imports d (Item)",
            ]
        );
    }

    #[test]
    fn every_circle_of_a_folder_is_named() {
        assert_eq!(circles(&[("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")]).len(), 2);
    }
}
