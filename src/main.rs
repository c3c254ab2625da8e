//! The `portcullis` program.
#![forbid(unsafe_code)]

mod cli;

/// Decisions are short-lived allocations; this allocator serves them about a third cheaper (docs/performance.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cli::run()
}
