//! The frame of an image file: its magic numbers, then messages with their lengths before them.

use super::refusal::{Damage, Refusal};
use super::wire::Fields;

/// The first number of every image but the inventory.
const COMMON: u32 = 0x5456_4319;
/// How many messages an image may have.
const MOST_ENTRIES: usize = 1 << 17;

/// What says of which kind an image is: numbers of `criu/include/magic.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Magic {
    Inventory,
    Pstree,
    Ids,
    Core,
    FdInfo,
    Fs,
    Mm,
    Files,
    Seccomp,
    Mountpoints,
    Cgroup,
    RemapPaths,
    GhostFile,
    TtyInfo,
    Netns,
    Userns,
    Pidns,
}

impl Magic {
    pub(super) const fn number(self) -> u32 {
        match self {
            Self::Inventory => 0x5831_3116,
            Self::Pstree => 0x5027_3030,
            Self::Ids => 0x5443_2030,
            Self::Core => 0x5505_3847,
            Self::FdInfo => 0x5621_3732,
            Self::Fs => 0x5140_3912,
            Self::Mm => 0x5749_2820,
            Self::Files => 0x5630_3138,
            Self::Seccomp => 0x6441_3049,
            Self::Mountpoints => 0x5556_3928,
            Self::Cgroup => 0x5938_3330,
            Self::RemapPaths => 0x5913_3954,
            Self::GhostFile => 0x5258_3605,
            Self::TtyInfo => 0x5945_3036,
            Self::Netns => 0x5593_3752,
            Self::Userns => 0x5547_4906,
            Self::Pidns => 0x6115_7326,
        }
    }
}

/// One image file that was read.
#[derive(Debug)]
pub(super) struct Image {
    name: String,
    bytes: Vec<u8>,
}

impl Image {
    pub(super) fn new(name: String, bytes: Vec<u8>) -> Self {
        Self { name, bytes }
    }

    fn damaged(&self, damage: Damage) -> Refusal {
        Refusal::damaged(&self.name, damage)
    }

    fn body(&self, magic: Magic) -> Result<&[u8], Refusal> {
        let mut rest = self.bytes.as_slice();
        let common = (magic != Magic::Inventory).then_some(COMMON);
        for expected in common.into_iter().chain([magic.number()]) {
            let found = number(&mut rest).ok_or_else(|| self.damaged(Damage::Truncated))?;
            if found != expected {
                return Err(self.damaged(Damage::Magic { found, expected }));
            }
        }
        Ok(rest)
    }

    fn entry<'a>(&'a self, rest: &mut &'a [u8]) -> Result<Fields<'a>, Refusal> {
        let truncated = || self.damaged(Damage::Truncated);
        let length = number(rest).and_then(|length| usize::try_from(length).ok()).ok_or_else(truncated)?;
        let (entry, after) = rest.split_at_checked(length).ok_or_else(truncated)?;
        *rest = after;
        Fields::decode(&self.name, entry)
    }

    /// All messages of the image.
    pub(super) fn all(&self, magic: Magic) -> Result<Vec<Fields<'_>>, Refusal> {
        let mut rest = self.body(magic)?;
        let mut entries = Vec::new();
        while !rest.is_empty() {
            if entries.len() >= MOST_ENTRIES {
                return Err(self.damaged(Damage::TooMany { limit: MOST_ENTRIES }));
            }
            entries.push(self.entry(&mut rest)?);
        }
        Ok(entries)
    }

    /// The message of an image that has one and nothing after it.
    pub(super) fn one(&self, magic: Magic) -> Result<Fields<'_>, Refusal> {
        let mut rest = self.body(magic)?;
        let entry = self.entry(&mut rest)?;
        if rest.is_empty() { Ok(entry) } else { Err(self.damaged(Damage::Rest { bytes: rest.len() })) }
    }

    /// The first message of an image that has data after it.
    pub(super) fn first(&self, magic: Magic) -> Result<Fields<'_>, Refusal> {
        self.entry(&mut self.body(magic)?)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let (number, after) = rest.split_first_chunk::<4>()?;
    *rest = after;
    Some(u32::from_le_bytes(*number))
}
