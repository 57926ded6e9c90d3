//! Seccomp: which filters the threads have.

use super::allowed::Allowed;
use super::image::{Image, Magic};
use super::refusal::{Damage, Refusal};
use super::rule::Rule;
use super::wire::Fields;

const NAME: &str = "seccomp.img";
/// `SECCOMP_MODE_FILTER`.
const MODE_FILTER: u32 = 2;
/// `SECCOMP_FILTER_FLAG_LOG`, the one flag that the kernel tells CRIU about.
const FLAG_LOG: u32 = 2;
/// Bytes of an instruction, and how many a program may have.
const INSTRUCTION: usize = 8;
const MOST_INSTRUCTIONS: usize = 4096;
/// How many filters the kernel could chain with programs of one instruction: 32768 / (1 + 4).
const LONGEST_CHAIN: usize = 6553;

#[derive(Debug)]
struct Filter {
    program: Vec<u8>,
    previous: Option<u32>,
}

/// The filters of all threads.
#[derive(Debug, Default)]
pub(super) struct Filters(Vec<Filter>);

impl Filters {
    pub(super) fn read(image: Option<&Image>) -> Result<Self, Refusal> {
        let Some(image) = image else { return Ok(Self::default()) };
        let entry = image.one(Magic::Seccomp)?;
        let mut filters = Vec::new();
        for filter in entry.messages(1)? {
            let program =
                filter.bytes(1)?.ok_or_else(|| Refusal::damaged(NAME, Damage::Missing { field: 1 }))?;
            let length = program.len();
            if length == 0 || !length.is_multiple_of(INSTRUCTION) || length > MOST_INSTRUCTIONS * INSTRUCTION
            {
                return Err(broken(format!("a program of {length} bytes"), "programs of whole instructions"));
            }
            let flags = filter.u32(3)?.unwrap_or(0);
            if flags & !FLAG_LOG != 0 {
                return Err(broken(format!("the flags {flags:#x}"), format!("{FLAG_LOG:#x}")));
            }
            filters.push(Filter { program: program.to_vec(), previous: filter.u32(2)? });
        }
        Ok(Self(filters))
    }

    /// The programs of a thread, the last one first.
    fn chain(&self, last: u32) -> Result<Vec<&[u8]>, Refusal> {
        let mut chain = Vec::new();
        let mut next = Some(last);
        while let Some(number) = next {
            let filter = usize::try_from(number).ok().and_then(|number| self.0.get(number));
            let Some(filter) = filter else {
                return Err(broken(format!("filter {number}"), format!("filters below {}", self.0.len())));
            };
            if chain.len() >= LONGEST_CHAIN.min(self.0.len()) {
                return Err(broken("a chain that does not end".to_owned(), "a chain of different filters"));
            }
            chain.push(filter.program.as_slice());
            next = filter.previous;
        }
        Ok(chain)
    }

    /// Checks the filters of a thread.
    pub(super) fn check(&self, pid: u32, thread: &Fields<'_>, allowed: &Allowed) -> Result<(), Refusal> {
        let image = thread.image();
        let mode = thread.u32(11)?.unwrap_or(0);
        let last = thread.u32(12)?;
        let chain = last.map(|last| self.chain(last)).transpose()?.unwrap_or_default();
        if !allowed.seccomp && allowed.seccomp_programs.is_empty() {
            return Ok(());
        }
        if mode != MODE_FILTER {
            return Err(Refusal::rights(
                image,
                Some(pid),
                Rule::SeccompMode,
                format!("mode {mode}"),
                format!("mode {MODE_FILTER}, a filter"),
            ));
        }
        let refused =
            |found, allowed| Err(Refusal::rights(image, Some(pid), Rule::SeccompFilter, found, allowed));
        if !chain.iter().any(|program| restricts(program)) {
            return refused("no filter that restricts anything", "only a filtered thread");
        }
        let missing = |program: &Vec<u8>| !chain.contains(&program.as_slice());
        if allowed.seccomp_programs.iter().any(missing) {
            return refused("other programs", "the programs of the pod's profile and further ones");
        }
        Ok(())
    }
}

/// Whether a program has an instruction that returns something else than "allow" or "log".
fn restricts(program: &[u8]) -> bool {
    const CLASS: u16 = 0x07;
    const RETURN: u16 = 0x06;
    const SOURCE: u16 = 0x18;
    const ALLOW: u32 = 0x7fff_0000;
    const LOG: u32 = 0x7ffc_0000;
    const ACTION: u32 = 0xffff_0000;
    program.chunks_exact(INSTRUCTION).any(|instruction| {
        let [low, high, _, _, constant @ ..] = instruction else { return false };
        let code = u16::from_le_bytes([*low, *high]);
        let constant = <[u8; 4]>::try_from(constant).map_or(ALLOW, u32::from_le_bytes);
        code & CLASS == RETURN && code & SOURCE == 0 && ![ALLOW, LOG].contains(&(constant & ACTION))
    })
}

fn broken(found: String, allowed: impl std::fmt::Display) -> Refusal {
    Refusal::rights(NAME, None, Rule::SeccompFilter, found, allowed)
}
