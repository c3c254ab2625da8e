//! The command line: one file per command.

mod check;
mod demo;
mod doctor;
mod explain;
mod record;
mod report;
mod schema;
mod serve;
mod test;

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
    /// Decide about calls: serve Envoy's `ext_proc`.
    Serve(serve::ServeArgs),
    /// Load everything and print all faults, or a summary and who can do what.
    Check(check::CheckArgs),
    /// Write down what a server offers, for a person to price; or check what changed since.
    Record(record::RecordArgs),
    /// Say what would be decided about a call, and by which rung.
    Explain(explain::ExplainArgs),
    /// Read audit lines and print what shadow mode let pass that enforcing would have refused.
    Report(report::ReportArgs),
    /// Try cases: calls and what is to become of each. For CI of policy repositories.
    Test(test::TestArgs),
    /// Look through an Envoy configuration, or a running Envoy, for what is unsafe or will surprise.
    Doctor(doctor::DoctorArgs),
    /// Print the JSON Schema of the configuration.
    Schema(schema::SchemaArgs),
    /// Show the whole story on loopback: identity provider, MCP server, Portcullis, Envoy.
    Demo(demo::DemoArgs),
}

/// Runs the command that was asked for.
#[must_use]
pub fn run() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Serve(args) => serve::run(&args),
        Command::Check(args) => check::run(args),
        Command::Record(args) => record::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Doctor(args) => Ok(doctor::run(&args)),
        Command::Schema(args) => schema::run(args),
        Command::Demo(args) => demo::run(args).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|error| {
        eprintln!("portcullis: {error:#}");
        ExitCode::FAILURE
    })
}
