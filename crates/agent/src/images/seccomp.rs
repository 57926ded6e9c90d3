//! Seccomp: which filters the threads have.

use super::allowed::Allowed;
use super::bpf::{self, INSTRUCTION};
use super::image::{Image, Magic};
use super::refusal::{Damage, Refusal};
use super::rule::Rule;
use super::wire::Fields;

const NAME: &str = "seccomp.img";
/// `SECCOMP_MODE_FILTER`.
const MODE_FILTER: u32 = 2;
/// `SECCOMP_FILTER_FLAG_TSYNC`: the filter is set for all threads of the process at once.
const FLAG_SYNC: u32 = 1;
/// `SECCOMP_FILTER_FLAG_LOG`, the one flag that the kernel tells CRIU about.
const FLAG_LOG: u32 = 2;
/// How many instructions a program may have.
const MOST_INSTRUCTIONS: usize = 4096;
/// How many filters the kernel could chain with programs of one instruction: 32768 / (1 + 4).
const LONGEST_CHAIN: usize = 6553;

#[derive(Debug)]
struct Filter {
    program: Vec<u8>,
    restricts: bool,
    previous: Option<u32>,
    sync: bool,
}

/// Whose filters are checked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Holder {
    Leader,
    /// Another thread of a process, with the last filter that its leader sets for all threads, if there is one.
    Thread(Option<u32>),
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
            let Some(restricts) = bpf::restricts(program) else {
                let found = "a jump out of the program, or no return at its end".to_owned();
                return Err(broken(found, "programs that return"));
            };
            let flags = filter.u32(3)?.unwrap_or(0);
            if flags & !(FLAG_LOG | FLAG_SYNC) != 0 {
                return Err(broken(format!("the flags {flags:#x}"), format!("{:#x}", FLAG_LOG | FLAG_SYNC)));
            }
            let (previous, sync) = (filter.u32(2)?, flags & FLAG_SYNC != 0);
            filters.push(Filter { program: program.to_vec(), restricts, previous, sync });
        }
        Ok(Self(filters))
    }

    /// The filters of a thread, the last one first.
    fn chain(&self, last: u32) -> Result<Vec<&Filter>, Refusal> {
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
            chain.push(filter);
            next = filter.previous;
        }
        Ok(chain)
    }

    /// Checks the filters of a thread, and returns the last filter that it sets for all threads of its process.
    ///
    /// If all threads of a process have the same filters, CRIU writes them with the leader alone, to be set for all at once.
    /// The kernel sets nothing at all then if another thread has a filter already, and CRIU takes this for success. So such
    /// filters are a leader's, all of its own are, and the other threads have none.
    pub(super) fn check(
        &self,
        pid: u32,
        thread: &Fields<'_>,
        holder: Holder,
        allowed: &Allowed,
    ) -> Result<Option<u32>, Refusal> {
        let image = thread.image();
        let mut mode = thread.u32(11)?.unwrap_or(0);
        let last = thread.u32(12)?;
        let mut chain = last.map(|last| self.chain(last)).transpose()?.unwrap_or_default();
        if !allowed.seccomp && allowed.seccomp_programs.is_empty() {
            return Ok(None);
        }
        let sync = chain.iter().any(|filter| filter.sync);
        if sync && (matches!(holder, Holder::Thread(_)) || !chain.iter().all(|filter| filter.sync)) {
            let found = "a filter for all threads beside others, or not of the leader";
            let allowed = "filters of the leader for all threads, or of each thread";
            return Err(Refusal::rights(image, Some(pid), Rule::SeccompFilter, found, allowed));
        }
        if let Holder::Thread(Some(of_leader)) = holder {
            if mode != 0 || last.is_some() {
                let found = "a filter of its own beside the leader's for all threads";
                return Err(Refusal::rights(image, Some(pid), Rule::SeccompFilter, found, "the leader's"));
            }
            (mode, chain) = (MODE_FILTER, self.chain(of_leader)?);
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
        if !chain.iter().any(|filter| filter.restricts) {
            return refused("no filter that restricts anything", "only a filtered thread");
        }
        let missing = |program: &Vec<u8>| !chain.iter().any(|filter| filter.program == *program);
        if allowed.seccomp_programs.iter().any(missing) {
            return refused("other programs", "the programs of the pod's profile and further ones");
        }
        Ok(last.filter(|_| sync))
    }
}

fn broken(found: String, allowed: impl std::fmt::Display) -> Refusal {
    Refusal::rights(NAME, None, Rule::SeccompFilter, found, allowed)
}
