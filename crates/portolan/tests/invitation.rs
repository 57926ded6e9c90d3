//! `invite`, `accept`, `peer` with a line and `unpeer` as two administrators meet them.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::json;
use support::{World, namespace, text, workload};

#[test]
fn a_line_is_all_that_a_consumer_needs_and_it_is_good_once() {
    let mut world = World::start("invitation", 3);
    world.control();
    world.control_of("c2");
    let invited = world.run(&["invite", "--context", "c2", "-n", "shop", "--sharing", "100%"]);
    assert!(invited.status.success(), "{}", text(&invited.stderr));
    let line = text(&invited.stdout);
    assert!(line.trim().bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{line}");
    assert!(text(&invited.stderr).contains("can be used once"), "{}", text(&invited.stderr));

    let joined = world.with_input("c1", &["peer", "-", "-o", "name"], &line);
    assert!(joined.status.success(), "{}", text(&joined.stderr));
    assert_eq!(text(&joined.stdout), "foreigncluster.portolan.dev/c2\n");
    assert!(text(&joined.stderr).contains("certificate is valid until"), "{}", text(&joined.stderr));
    world.apply("c1", &namespace("shop"));
    world.apply("c1", &workload("web", 2, "100m", &json!({"locations": ["c2"]})));
    world.until(&["get", "mcd", "-n", "shop"], &["2/2"]);

    let other = world.portolan(&["peer", "--remote-context", "c2", "-n", "shop"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(text(&other.stderr).contains("c2 has peered by an invitation"), "{}", text(&other.stderr));
    let occupied = world.run(&["invite", "--context", "c2", "-n", "shop"]);
    assert_eq!(occupied.status.code(), Some(2));
    assert!(text(&occupied.stderr).contains("2 pods run there already"), "{}", text(&occupied.stderr));
    let allowed = world.run(&["invite", "--context", "c2", "-n", "shop", "--with-pods"]);
    assert!(allowed.status.success(), "{}", text(&allowed.stderr));

    let stolen = world.with_input("c3", &["peer", "-"], &line);
    assert_eq!(stolen.status.code(), Some(1));
    let told = text(&stolen.stderr);
    assert!(told.contains("used") && told.contains("portolan invite"), "{told}");

    let consumers = text(&world.run(&["get", "clusters", "--context", "c2", "-o", "name"]).stdout);
    assert_eq!(consumers, "foreigncluster.portolan.dev/c1\n");
    let held = world.portolan(&["unpeer", "c2"]);
    assert!(text(&held.stderr).contains("multiclusterdeployment/web"), "{}", text(&held.stderr));
    world.succeeds(&["unpeer", "c2", "--force"]);
    world.until_in("c2", &["get", "clusters", "-o", "name"], |told| told.is_empty());
}

#[test]
fn what_is_no_line_and_what_a_consumer_cannot_say_is_refused_before_anything_is_made() {
    let world = World::start("no-invitation", 1);
    for (line, word) in [("nonsense!", "position 9"), ("bm9uc2Vuc2U", "not complete"), ("", "empty")] {
        let refused = world.with_input("c1", &["peer", "-"], line);
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains(word), "{}", text(&refused.stderr));
    }
    let refused = world.run(&["invite", "--context", "c1", "--expires", "30d"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("seven days"), "{}", text(&refused.stderr));
    let refused = world.run(&["invite", "--context", "c1", "-n", "kube-system"]);
    assert!(text(&refused.stderr).contains("a namespace of its own"), "{}", text(&refused.stderr));
    let command = world.run(&["generate", "peer-command", "--context", "c1", "--only-command"]);
    let command = text(&command.stdout);
    let line = command.trim().strip_prefix("portolan peer ").unwrap();
    let refused = world.run(&["peer", line, "--context", "c1", "-n", "shop"]);
    assert!(text(&refused.stderr).contains("the provider decides"), "{}", text(&refused.stderr));
    let mut later = portolan_core::tenancy::InvitationLine::decode(line).unwrap();
    later.program = Some("99.0.0".to_owned());
    let refused = world.with_input("c1", &["peer", "-"], &later.encode());
    let told = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{told}");
    assert!(told.contains("was made by Portolan 99.0.0") && told.contains("can still be used"), "{told}");
    let itself = world.run(&["peer", line, "--context", "c1"]);
    assert!(text(&itself.stderr).contains("one cluster"), "{}", text(&itself.stderr));
}

#[test]
fn two_clusters_are_members_of_each_other_by_one_command() {
    let mut world = World::start("bidirectional", 2);
    world.control();
    world.control_of("c2");
    world.succeeds(&["peer", "--remote-context", "c2", "-n", "shop", "--bidirectional"]);
    assert_eq!(world.succeeds(&["get", "clusters", "-o", "name"]), "foreigncluster.portolan.dev/c2\n");
    let back = text(&world.run(&["get", "clusters", "--context", "c2", "-o", "name"]).stdout);
    assert_eq!(back, "foreigncluster.portolan.dev/c1\n");
}
