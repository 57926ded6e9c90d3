//! Whether the silence of members is believed.
//!
//! A cluster that is lost and a hub that is cut off look the same from the hub: nobody answers. If the hub took its own
//! cut for a loss, it would start everything a second time, where it still can. So what many members seem to have lost at
//! once is not replaced until users say that it is lost, or the members answer.
//!
//! The rule: **one silent member is believed; two or more are only if they are at most half of those that count.**
//!
//! | members that count | silent and believed | silent and doubted |
//! |---|---|---|
//! | 1 | 1: there is nobody to compare it with, and the workload asks for the replacement itself | none |
//! | 2 | 1: the other one answers, so the hub has a network | 2 |
//! | 3 | 1 | 2 and more |
//! | 4 | 1, 2 | 3 and more |
//! | n | up to n / 2 | more |
//!
//! A silence that a user has explained says nothing about the hub: a member whose loss is confirmed counts neither among
//! the silent ones nor among all. While nobody answers at all, a confirmed loss makes no other one believed.

/// How many clusters a message names.
const NAMED_AT_MOST: usize = 8;

/// A member of the fleet, as far as its silence is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberSnapshot {
    /// The name of its ForeignCluster.
    pub name: String,
    /// Whether it does not answer now.
    pub silent: bool,
    /// Whether a user has confirmed that it is lost. Of a member that answers this says nothing.
    pub confirmed_lost: bool,
}

/// So many members are silent at once that the hub suspects itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The silent members whose loss nobody has confirmed, in order of name.
    pub silent: Vec<String>,
    /// How many members count.
    pub members: usize,
}

impl Doubt {
    /// Whether the silence of this member is not believed.
    #[must_use]
    pub fn is_about(&self, name: &str) -> bool {
        self.silent.binary_search_by(|each| each.as_str().cmp(name)).is_ok()
    }

    /// What users are told.
    #[must_use]
    pub fn message(&self) -> String {
        let named = self.silent.iter().take(NAMED_AT_MOST).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = match self.silent.len().saturating_sub(NAMED_AT_MOST) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!(
            "{} of {} members are silent at once ({named}{more}): the hub is probably cut off itself, so nothing is \
             replaced. If a cluster is lost, say so: `kubectl annotate foreigncluster NAME \
             portolan.dev/confirmed-lost=true`",
            self.silent.len(),
            self.members
        )
    }
}

/// Whether silence is doubted, over all members that count: those that have answered once and do not leave.
#[must_use]
pub fn doubt(members: impl IntoIterator<Item = MemberSnapshot>) -> Option<Doubt> {
    let (mut silent, mut count, mut confirmed) = (Vec::new(), 0usize, false);
    for member in members {
        if member.silent && member.confirmed_lost {
            confirmed = true;
            continue;
        }
        count += 1;
        if member.silent {
            silent.push(member.name);
        }
    }
    // With losses confirmed and nobody left that answers, the last one says as little as all of them did.
    let alone = confirmed && silent.len() == count;
    let doubted = !silent.is_empty() && (alone || (silent.len() >= 2 && silent.len() > count / 2));
    silent.sort();
    doubted.then_some(Doubt { silent, members: count })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn member(index: usize, silent: bool, confirmed_lost: bool) -> MemberSnapshot {
        MemberSnapshot { name: format!("c{index:02}"), silent, confirmed_lost }
    }

    fn fleet(silent: usize, answering: usize) -> Vec<MemberSnapshot> {
        (0..silent + answering).map(|index| member(index, index < silent, false)).collect()
    }

    #[test]
    fn the_table_of_small_fleets_holds() {
        for (silent, members, doubted) in [
            (1, 1, false),
            (1, 2, false),
            (2, 2, true),
            (1, 3, false),
            (2, 3, true),
            (3, 3, true),
            (2, 4, false),
            (3, 4, true),
            (2, 5, false),
            (3, 5, true),
        ] {
            assert_eq!(doubt(fleet(silent, members - silent)).is_some(), doubted, "{silent} of {members}");
        }
    }

    #[test]
    fn the_message_has_numbers_some_names_and_what_helps() {
        let message = doubt(fleet(12, 3)).unwrap().message();
        assert!(message.starts_with("12 of 15 members are silent at once (c00, c01,"), "{message}");
        assert!(message.contains("c07 and 4 more") && message.contains("confirmed-lost=true"), "{message}");
    }

    fn members() -> impl Strategy<Value = Vec<MemberSnapshot>> {
        proptest::collection::vec((any::<bool>(), any::<bool>()), 0..24).prop_map(|all| {
            let all = all.into_iter().enumerate();
            all.map(|(index, (silent, confirmed))| member(index, silent, confirmed)).collect()
        })
    }

    #[test]
    fn while_nobody_answers_a_confirmed_loss_makes_no_other_one_believed() {
        let alone = doubt([member(1, true, true), member(2, true, true), member(3, true, false)]).unwrap();
        assert!(alone.is_about("c03") && !alone.is_about("c01"));
        let with_another = [member(1, true, true), member(2, false, false), member(3, true, false)];
        assert_eq!(doubt(with_another), None, "one that answers shows that the hub has a network");
        assert_eq!(doubt([member(1, true, true)]), None, "nobody is left to doubt");
    }

    proptest! {
        #[test]
        fn what_is_doubted_is_a_majority_of_at_least_two_or_all_that_are_left(all in members()) {
            if let Some(doubt) = doubt(all.clone()) {
                let confirmed = all.iter().any(|each| each.silent && each.confirmed_lost);
                let all_left = confirmed && doubt.silent.len() == doubt.members;
                prop_assert!(all_left || doubt.silent.len() >= 2 && doubt.silent.len() * 2 > doubt.members);
                for each in &all {
                    prop_assert_eq!(doubt.is_about(&each.name), each.silent && !each.confirmed_lost);
                }
            }
        }

        #[test]
        fn a_member_that_falls_silent_never_ends_a_doubt(all in members(), which in 0usize..24) {
            let mut worse = all.clone();
            if let Some(each) = worse.get_mut(which).filter(|each| !each.confirmed_lost) {
                each.silent = true;
            }
            prop_assert!(doubt(all).is_none() || doubt(worse).is_some());
        }

        #[test]
        fn whoever_is_confirmed_as_lost_is_never_doubted_and_all_confirmed_doubts_nobody(all in members()) {
            let found = doubt(all.clone());
            let confirmed = all.iter().filter(|each| each.confirmed_lost);
            for each in confirmed {
                prop_assert!(!found.as_ref().is_some_and(|found| found.is_about(&each.name)));
            }
            let confirm = |each: MemberSnapshot| MemberSnapshot { confirmed_lost: true, ..each };
            prop_assert_eq!(doubt(all.into_iter().map(confirm)), None);
        }

        #[test]
        fn all_at_once_are_doubted_and_the_order_says_nothing(count in 2usize..24, mut all in members()) {
            prop_assert!(doubt(fleet(count, 0)).is_some());
            let found = doubt(all.clone());
            all.reverse();
            prop_assert_eq!(doubt(all), found);
        }
    }
}
