//! JSON Schemas of the files, derived from the types that read them.

use schemars::{JsonSchema, generate::SchemaSettings};

use super::{CasesSource, Configuration};
use crate::policy::PolicySource;
use crate::record::RecordSource;

/// The files that have a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// `portcullis.yaml`.
    Configuration,
    /// `policy.yaml`.
    Policy,
    /// The YAML file of a record.
    Record,
    /// The cases of `portcullis test`.
    Test,
}

/// The JSON Schema (2020-12) of a file, as indented JSON with a line feed at the end.
#[must_use]
pub fn schema(of: Schema) -> String {
    let value = match of {
        Schema::Configuration => root::<Configuration>(),
        Schema::Policy => root::<PolicySource>(),
        Schema::Record => root::<RecordSource>(),
        Schema::Test => root::<CasesSource>(),
    };
    format!("{value:#}\n")
}

fn root<T: JsonSchema>() -> serde_json::Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value()
}

#[cfg(test)]
mod tests;
