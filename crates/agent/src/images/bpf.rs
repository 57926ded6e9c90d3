//! Programs of seccomp: where they lead, not what their conditions mean.

/// Bytes of an instruction.
pub(super) const INSTRUCTION: usize = 8;
const CLASS: u16 = 0x07;
const JUMP: u16 = 0x05;
const RETURN: u16 = 0x06;
/// Bits of a jump, all zero for one without a condition.
const CONDITION: u16 = 0xf0;
/// Bits of a return, all zero for a constant.
const SOURCE: u16 = 0x18;
const ACTION: u32 = 0xffff_0000;
const ALLOW: u32 = 0x7fff_0000;
const LOG: u32 = 0x7ffc_0000;

struct Instruction {
    code: u16,
    if_true: usize,
    if_false: usize,
    constant: u32,
}

/// Whether a program can get to an instruction that returns something else than "allow" or "log". Nothing if it is not well
/// formed: a jump leads out of it, or it has an end without a return.
pub(super) fn restricts(program: &[u8]) -> Option<bool> {
    let (instructions, rest) = program.as_chunks::<INSTRUCTION>();
    let mut reachable = vec![false; instructions.len()];
    *reachable.first_mut()? = true;
    let mut restricts = false;
    // Jumps lead forward only: one pass sees all.
    for (index, bytes) in instructions.iter().enumerate() {
        let instruction = Instruction::read(*bytes);
        let is_reachable = *reachable.get(index)?;
        let next = match instruction.code & CLASS {
            RETURN => {
                let constant = instruction.code & SOURCE == 0;
                let action = instruction.constant & ACTION;
                restricts |= is_reachable && constant && ![ALLOW, LOG].contains(&action);
                continue;
            }
            JUMP if instruction.code & CONDITION == 0 => [usize::try_from(instruction.constant).ok()?; 2],
            JUMP => [instruction.if_true, instruction.if_false],
            _ => [0; 2],
        };
        for offset in next {
            let target = index.checked_add(offset)?.checked_add(1)?;
            *reachable.get_mut(target)? |= is_reachable;
        }
    }
    rest.is_empty().then_some(restricts)
}

impl Instruction {
    fn read([low, high, if_true, if_false, constant @ ..]: [u8; INSTRUCTION]) -> Self {
        Self {
            code: u16::from_le_bytes([low, high]),
            if_true: if_true.into(),
            if_false: if_false.into(),
            constant: u32::from_le_bytes(constant),
        }
    }
}
