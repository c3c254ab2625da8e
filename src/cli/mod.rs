//! The command line: one file per command.

mod demo;
mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The authorization layer for MCP behind Envoy.
#[derive(Parser)]
#[command(name = "portcullis", version, about, long_about = None)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Decide about calls: serve Envoy's ext_proc.
    Serve(serve::ServeArgs),
    /// Show the whole story on loopback: identity provider, MCP server, Portcullis, Envoy.
    Demo(demo::DemoArgs),
}

/// Runs the command that was asked for.
#[must_use]
pub fn run() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Serve(args) => serve::run(args),
        Command::Demo(args) => demo::run(args).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|error| {
        eprintln!("portcullis: {error:#}");
        ExitCode::FAILURE
    })
}
