//! Small values with a form of their own: sizes, periods, statuses, a file or its content.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, EnumAccess, Error, Unexpected, VariantAccess, Visitor};

use crate::config::deserialize::FILE_OR_INLINE;

/// A number of bytes, written `64KiB`, `1MiB` or `512B`. At least 1 byte, at most 1 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(usize);

impl ByteSize {
    /// A size of so many KiB.
    #[must_use]
    pub const fn kibibytes(count: usize) -> Self {
        Self(count * 1024)
    }

    /// A size of so many MiB.
    #[must_use]
    pub const fn mebibytes(count: usize) -> Self {
        Self(count * 1024 * 1024)
    }

    /// The number of bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.0
    }

    fn parse(text: &str) -> Option<Self> {
        let (digits, unit) = split_number(text)?;
        let factor: usize = match unit {
            "B" => 1,
            "KiB" => 1024,
            "MiB" => 1024 * 1024,
            "GiB" => 1024 * 1024 * 1024,
            _ => return None,
        };
        let bytes = digits.parse::<usize>().ok()?.checked_mul(factor)?;
        (1..=1024 * 1024 * 1024).contains(&bytes).then_some(Self(bytes))
    }
}

/// A span of time, written `5s`, `50ms`, `1m` or `1h`. At least 1 ms, at most 24 h.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period(Duration);

impl Period {
    /// A period of so many seconds.
    #[must_use]
    pub const fn seconds(count: u64) -> Self {
        Self(Duration::from_secs(count))
    }

    /// The period.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }

    fn parse(text: &str) -> Option<Self> {
        let (digits, unit) = split_number(text)?;
        let factor: u64 = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        let millis = digits.parse::<u64>().ok()?.checked_mul(factor)?;
        (1..=86_400_000).contains(&millis).then_some(Self(Duration::from_millis(millis)))
    }
}

/// Digits, then a unit.
fn split_number(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    text.split_at_checked(end)
}

/// A value that is written as text of a form of its own.
macro_rules! written {
    ($type:ident, $pattern:literal, $expected:literal) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&text), &$expected))
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "string", "pattern": $pattern})
            }
        }
    };
}

written!(ByteSize, "^[0-9]+(B|KiB|MiB|GiB)$", "a size with its unit, such as 64KiB or 1MiB, of at most 1GiB");
written!(Period, "^[0-9]+(ms|s|m|h)$", "a time with its unit, such as 50ms, 5s or 1m, of at most 24h");

/// A number out of a short list.
macro_rules! one_of {
    ($(#[$doc:meta])* $type:ident, $default:literal, $other:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
        #[serde(try_from = "u16")]
        pub struct $type(u16);

        impl $type {
            /// The HTTP status.
            #[must_use]
            pub fn get(self) -> u16 {
                self.0
            }
        }

        impl Default for $type {
            fn default() -> Self {
                Self($default)
            }
        }

        impl TryFrom<u16> for $type {
            type Error = String;

            fn try_from(value: u16) -> Result<Self, String> {
                match value {
                    $default | $other => Ok(Self(value)),
                    _ => Err(format!("expected {} (the default) or {}, found {value}", $default, $other)),
                }
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"enum": [$default, $other]})
            }
        }
    };
}

one_of!(
    /// The HTTP status of a policy refusal that is sent as a frame.
    PolicyStatus, 200, 403
);
one_of!(
    /// The HTTP status that answers a method on no list.
    UnlistedMethodStatus, 404, 400
);
one_of!(
    /// The HTTP status of a refusal of the upstream class.
    UpstreamStatus, 502, 200
);

/// The JSON-RPC code of refusals that have no code of their own: what JSON-RPC 2.0 §5.1 leaves to servers
/// (-32099 to -32000), less the codes that mean something else here, or outside the reserved range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "i64")]
pub struct RefusalCode(i32);

impl RefusalCode {
    /// The code.
    #[must_use]
    pub fn get(self) -> i32 {
        self.0
    }
}

impl Default for RefusalCode {
    fn default() -> Self {
        Self(-32_000)
    }
}

impl TryFrom<i64> for RefusalCode {
    type Error = String;

    fn try_from(code: i64) -> Result<Self, String> {
        let taken = matches!(code, -32_042 | -32_010 | -32_022..=-32_020 | -32_002);
        let reserved = (-32_768..=-32_100).contains(&code);
        match i32::try_from(code) {
            Ok(code) if !taken && !reserved => Ok(Self(code)),
            _ => Err(format!(
                "expected a JSON-RPC code from -32099 to -32000 that MCP does not use itself, or one outside the reserved \
                 range -32768 to -32000, found {code}; leave it out for -32000"
            )),
        }
    }
}

impl JsonSchema for RefusalCode {
    fn schema_name() -> Cow<'static, str> {
        "RefusalCode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "format": "int32"})
    }
}

/// A file that holds a `T`, or the `T` itself.
#[derive(Clone, Debug)]
pub enum FileOr<T> {
    /// `{file: path}`.
    File(FileReference),
    /// Everything else.
    Inline(T),
}

/// A file by its path, relative to the file that names it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileReference {
    /// The path, relative to this file.
    pub file: PathBuf,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for FileOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_enum(FILE_OR_INLINE, &["file", "inline"], FileOrVisitor(std::marker::PhantomData))
    }
}

struct FileOrVisitor<T>(std::marker::PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for FileOrVisitor<T> {
    type Value = FileOr<T>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("`{file: …}` or its content")
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<FileOr<T>, A::Error> {
        let (form, content) = access.variant::<String>()?;
        if form == "file" {
            return content.newtype_variant().map(FileOr::File);
        }
        content.newtype_variant().map(FileOr::Inline)
    }
}

impl<T: JsonSchema> JsonSchema for FileOr<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("FileOr{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (file, inline) = (generator.subschema_for::<FileReference>(), generator.subschema_for::<T>());
        json_schema!({"oneOf": [file, inline]})
    }
}
