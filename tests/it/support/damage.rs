//! Fuzzing on stable Rust without another program: recorded inputs with pieces changed, duplicated, removed and
//! exchanged.
//!
//! The short run is the same each time. `DAMAGED_INPUTS=10000000` runs more, with `DAMAGE_SEED`, and prints the
//! duration and the most memory that the process needed.

use std::time::Instant;

use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};

/// The separators of all formats that are read.
const BETWEEN: &[u8] = b":,[]{}=/\"|\n\t ";

/// Words that parsers of numbers and structures often get wrong.
const WORDS: [&str; 16] = [
    "null",
    "true",
    "-1",
    "0",
    "18446744073709551616",
    "9223372036854775807",
    "184467440737095517",
    "1e999999999",
    "-0.5",
    "\"\"",
    "{}",
    "[]",
    "[null]",
    "\"\\ud800\"",
    "\u{e9}",
    "%",
];

/// Passes damaged copies of the inputs to `check`, each with the position of its input. A panic is a fault, and the
/// copy is printed.
#[expect(clippy::print_stdout, reason = "a long run tells how it went")]
pub(crate) fn damaged(name: &str, usual: u64, inputs: &[Vec<u8>], mut check: impl FnMut(usize, &[u8], &mut SmallRng)) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let asked = number("DAMAGED_INPUTS");
    let mut random = SmallRng::seed_from_u64(number("DAMAGE_SEED").unwrap_or(1));
    let (started, mut copy, mut slowest) = (Instant::now(), Copy(Vec::new()), 0);
    for _ in 0..asked.unwrap_or(usual) {
        let position = random.random_range(0..inputs.len());
        copy.0.clear();
        copy.0.extend_from_slice(&inputs[position]);
        for _ in 0..random.random_range(1..8) {
            damage(&mut copy.0, inputs, &mut random);
        }
        let began = Instant::now();
        check(position, &copy.0, &mut random);
        slowest = slowest.max(began.elapsed().as_micros());
    }
    if let Some(count) = asked {
        let took = started.elapsed().as_secs_f64();
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
        println!("{name}: {count} inputs in {took:.0} s, the slowest {slowest} us, {peak}");
    }
}

/// The input under test, which is printed when the test panics.
struct Copy(Vec<u8>);

#[expect(clippy::print_stdout, reason = "a failed test shows its input")]
impl Drop for Copy {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("the input: {:?}", String::from_utf8_lossy(&self.0));
            println!("its bytes: {:?}", self.0);
        }
    }
}

/// Changes one place.
fn damage(copy: &mut Vec<u8>, inputs: &[Vec<u8>], random: &mut SmallRng) {
    if copy.is_empty() {
        copy.push(random.random());
        return;
    }
    let at = random.random_range(0..copy.len());
    // Short pieces, because a long one leaves little of the input.
    let end = (at + random.random_range(1..33)).min(copy.len());
    match random.random_range(0..7) {
        0 => copy[at] = random.random(),
        1 => copy[at] ^= 1 << random.random_range(0..8),
        2 => copy.insert(at, random.random()),
        3 => drop(copy.drain(at..end)),
        4 => copy.extend_from_within(at..end),
        5 => {
            let piece = copy[at..end].to_vec();
            copy.splice(at..at, piece);
        }
        _ => {
            let is_between = |byte: &u8| BETWEEN.contains(byte);
            let from = copy[..at].iter().rposition(is_between).map_or(0, |before| before + 1);
            let to = copy[at..].iter().position(is_between).map_or(copy.len(), |length| at + length);
            if random.random() {
                let word = WORDS[random.random_range(0..WORDS.len())];
                copy.splice(from..to, word.bytes());
            } else {
                let other = &inputs[random.random_range(0..inputs.len())];
                let start = random.random_range(0..other.len().max(1)).min(other.len());
                let length = other[start..].iter().position(is_between).unwrap_or(0);
                copy.splice(from..to, other[start..start + length].iter().copied());
            }
        }
    }
}
