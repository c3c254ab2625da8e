//! `portcullis schema`: the JSON Schema of the configuration's files, for editors and for review.

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use portcullis::config::{self, Schema};

/// Options of `schema`.
#[derive(Args)]
pub(super) struct SchemaArgs {
    /// Which file's schema.
    #[arg(value_enum, default_value_t = Of::Configuration)]
    of: Of,
}

/// The files that have a schema.
#[derive(Clone, Copy, ValueEnum)]
enum Of {
    /// portcullis.yaml
    Configuration,
    /// policy.yaml
    Policy,
    /// The YAML file of a record
    Record,
    /// The cases of `portcullis test`
    Test,
}

/// Prints the schema.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn run(SchemaArgs { of }: SchemaArgs) -> anyhow::Result<ExitCode> {
    let schema = config::schema(match of {
        Of::Configuration => Schema::Configuration,
        Of::Policy => Schema::Policy,
        Of::Record => Schema::Record,
        Of::Test => Schema::Test,
    });
    std::io::stdout().lock().write_all(schema.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
