//! What a Linux binary's header says: which processor it is for, and whether it needs a loader.

/// `e_machine` of the processors that packages are made for.
const MACHINES: [(u16, &str); 2] = [(62, "x86_64"), (183, "aarch64")];
/// The program header that names the loader of a dynamically linked binary.
const PT_INTERP: u32 = 3;

/// The processor of a 64-bit little-endian binary, as Rust's targets name it.
pub(crate) fn processor_of(binary: &[u8]) -> Option<&'static str> {
    // 64 bits, little-endian.
    if !binary.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let machine = read_u16(binary, 18)?;
    MACHINES.into_iter().find(|(number, _)| *number == machine).map(|(_, name)| name)
}

/// Whether the kernel can start it alone: a dynamic binary runs only where its C library is.
pub(crate) fn is_static(binary: &[u8]) -> bool {
    program_header_types(binary).is_some_and(|types| !types.contains(&PT_INTERP))
}

fn program_header_types(binary: &[u8]) -> Option<Vec<u32>> {
    let table = usize::try_from(read_u64(binary, 32)?).ok()?;
    let (size, count) = (usize::from(read_u16(binary, 54)?), usize::from(read_u16(binary, 56)?));
    (0..count).map(|index| read_u32(binary, table.checked_add(index * size)?)).collect()
}

fn read_u16(binary: &[u8], at: usize) -> Option<u16> {
    read_bytes(binary, at).map(u16::from_le_bytes)
}

fn read_u32(binary: &[u8], at: usize) -> Option<u32> {
    read_bytes(binary, at).map(u32::from_le_bytes)
}

fn read_u64(binary: &[u8], at: usize) -> Option<u64> {
    read_bytes(binary, at).map(u64::from_le_bytes)
}

fn read_bytes<const LENGTH: usize>(binary: &[u8], at: usize) -> Option<[u8; LENGTH]> {
    binary.get(at..at.checked_add(LENGTH)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with one program header behind it.
    fn binary(machine: u16, program_header: u32) -> Vec<u8> {
        let mut binary = vec![0; 64 + 56];
        binary[..6].copy_from_slice(b"\x7fELF\x02\x01");
        binary[18..20].copy_from_slice(&machine.to_le_bytes());
        binary[32..40].copy_from_slice(&64_u64.to_le_bytes());
        binary[54..56].copy_from_slice(&56_u16.to_le_bytes());
        binary[56..58].copy_from_slice(&1_u16.to_le_bytes());
        binary[64..68].copy_from_slice(&program_header.to_le_bytes());
        binary
    }

    #[test]
    fn the_processor_is_read_from_the_header() {
        assert_eq!(processor_of(&binary(62, 1)), Some("x86_64"));
        assert_eq!(processor_of(&binary(183, 1)), Some("aarch64"));
        assert_eq!(processor_of(&binary(40, 1)), None);
        assert_eq!(processor_of(b"#!/bin/sh\n"), None);
        assert_eq!(processor_of(b"\x7fELF\x02\x01"), None);
    }

    #[test]
    fn a_binary_that_names_a_loader_is_not_static() {
        assert!(is_static(&binary(62, 1)));
        assert!(!is_static(&binary(62, PT_INTERP)));
        assert!(!is_static(&binary(62, 1)[..60]));
    }
}
