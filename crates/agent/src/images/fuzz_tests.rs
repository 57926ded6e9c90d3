//! Images that nobody wrote: no bytes end in a panic, and no change of a right is overlooked.

use super::build::{CAPABILITIES, Msg, allowed, config, healthy, write};
use super::image::{Image, Magic};
use super::wire::Fields;
use super::{Damage, Refusal, check};
use proptest::prelude::*;
use proptest::sample::Index;

/// Reads a message in all ways.
fn read(fields: &Fields<'_>, depth: u32) {
    for field in 0..24 {
        let _ = (fields.number(field), fields.u32(field), fields.signed(field), fields.flag(field));
        let _ = (fields.text(field), fields.texts(field), fields.u32s(field), fields.bytes(field));
        if let (Ok(messages), true) = (fields.messages(field), depth > 0) {
            messages.iter().for_each(|message| read(message, depth - 1));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn bytes_that_are_no_message_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(fields) = Fields::decode("x", &bytes) {
            read(&fields, 2);
        }
        let image = Image::new("x".to_owned(), bytes);
        let _ = (image.all(Magic::Core).is_ok(), image.one(Magic::Inventory).is_ok(), image.first(Magic::GhostFile).is_ok());
    }

    #[test]
    fn images_of_arbitrary_bytes_do_not_panic(which in any::<Index>(), bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let mut files = healthy().files();
        let name = which.get(&files.keys().cloned().collect::<Vec<_>>()).clone();
        files.insert(name, bytes);
        let _ = check(write(&files).path(), &allowed(&config()));
    }

    #[test]
    fn changed_bytes_do_not_panic(
        which in any::<Index>(),
        at in any::<Index>(),
        to in any::<u8>(),
        cut in proptest::option::of(any::<Index>()),
    ) {
        let mut files = healthy().files();
        let name = which.get(&files.keys().cloned().collect::<Vec<_>>()).clone();
        let bytes = files.get_mut(&name).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = to;
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let _ = check(write(&files).path(), &allowed(&config()));
    }

    #[test]
    fn no_number_of_the_credentials_gives_more(tid in 1_u32..=3, field in 9_u32..=19, number in any::<u32>()) {
        let mut built = healthy();
        built.credentials(tid).set(field, u64::from(number));
        let accepted = built.check(&allowed(&config())).is_ok();
        let fits = match field {
            10..=12 => u64::from(number) & !CAPABILITIES == 0,
            9 | 19 => number == 0,
            13 => number & !16 == 0,
            // The spec has CAP_SETGID.
            14 => true,
            18 => number != 0,
            // A number where a text is expected.
            _ => false,
        };
        prop_assert_eq!(accepted, fits);
    }

    #[test]
    fn no_number_of_a_mount_gives_more(index in 0_usize..9, field in 2_u32..=18, number in any::<u32>()) {
        let mut built = healthy();
        let mount = built.message("mountpoints-13.img", index);
        let (parent, flags) = (mount.number(4), mount.number(5));
        mount.set(field, u64::from(number));
        let lost = flags & !mount.number(5);
        let parent_is = mount.number(4);
        if built.check(&allowed(&config())).is_ok() {
            // The spec has no options for /data, a masked file, and a read-only path but "ro".
            prop_assert!(lost == 0 || [4, 6].contains(&index) || (index == 8 && lost & 1 == 0), "lost {:#x}", lost);
            prop_assert!(index == 0 || parent_is == parent, "on mount {}", parent_is);
            prop_assert!(![12, 16].contains(&field) || number == 0, "a plugin, or a deleted folder");
        }
    }
}

fn damage(bytes: &[u8]) -> Option<Damage> {
    match Fields::decode("x", bytes) {
        Err(Refusal::Damaged { damage, .. }) => Some(damage),
        _ => None,
    }
}

#[test]
fn what_two_decoders_could_understand_in_two_ways_is_refused() {
    assert_eq!(damage(&[8, 0x80, 0]), Some(Damage::Varint), "a number that is longer than it must be");
    assert_eq!(damage(&[8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2]), Some(Damage::Varint), "65 bits");
    assert_eq!(damage(&[8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]), None, "64 bits");
    assert_eq!(damage(&[0, 1]), Some(Damage::WireType { wire_type: 0 }), "field 0");
    assert_eq!(damage(&[11]), Some(Damage::WireType { wire_type: 3 }), "a group");
    assert_eq!(damage(&[10, 2, 1]), Some(Damage::Truncated));
    assert_eq!(damage(&[10, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]), Some(Damage::Truncated));
    let twice = [8, 1, 8, 2];
    let fields = Fields::decode("x", &twice).unwrap();
    assert!(matches!(fields.u32(1), Err(Refusal::Damaged { damage: Damage::Twice { field: 1 }, .. })));
    let zero = Msg::default().with(1, "/data\0/../..").encode();
    assert!(Fields::decode("x", &zero).unwrap().text(1).is_err(), "a text with a zero byte");
    let large = Msg::default().with(1, 1_u64 << 32).encode();
    assert!(Fields::decode("x", &large).unwrap().u32(1).is_err(), "a number of 33 bits");
}

#[test]
fn messages_lie_in_each_other_to_a_limit() {
    let mut message = Msg::default();
    for _ in 0..40 {
        message = Msg::default().with(1, message);
    }
    let bytes = message.encode();
    let mut fields = Fields::decode("x", &bytes).unwrap();
    let refused = loop {
        match fields.message(1) {
            Ok(Some(inner)) => fields = inner,
            other => break other,
        }
    };
    assert!(matches!(refused, Err(Refusal::Damaged { damage: Damage::TooDeep { .. }, .. })));
}
