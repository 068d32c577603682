//! Moving chunks: where waiting meets computing.

mod cpu;

pub use cpu::cpu;
