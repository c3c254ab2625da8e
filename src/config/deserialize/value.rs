//! Serde's data model over one node: YAML 1.2's core schema, so `off` is a string and only `true` and `false` are booleans.
//!
//! Whoever asks for a string gets the text of any scalar but an empty one: nobody has to quote `permission: 1`. Numbers
//! that the machine types cannot hold exactly are refused rather than rounded.

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
    value::StrDeserializer,
};
use serde::forward_to_deserialize_any;

use super::super::tree::{Content, Entry, Node};
use super::{FILE_OR_INLINE, Fault};

/// A node about to be read.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) node: &'a Node,
}

/// What a plain scalar is by YAML's core schema.
enum Plain {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text,
    /// A number that no machine type holds exactly.
    Inexact,
}

fn plain(text: &str) -> Plain {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Plain::Null,
        "true" | "True" | "TRUE" => return Plain::Bool(true),
        "false" | "False" | "FALSE" => return Plain::Bool(false),
        _ => {}
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Plain::Text;
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return match (text.parse(), text.parse()) {
            (Ok(value), _) => Plain::Unsigned(value),
            (_, Ok(value)) => Plain::Signed(value),
            _ => Plain::Inexact,
        };
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && exact(digits, value.abs()) => Plain::Float(value),
        Ok(_) if digits.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte)) => Plain::Inexact,
        _ => Plain::Text,
    }
}

/// Whether printing `value` gives the digits that were written.
fn exact(written: &str, value: f64) -> bool {
    let mantissa = written.split(['e', 'E']).next().unwrap_or_default();
    let digits = |text: &str| {
        let text: String = text.chars().filter(char::is_ascii_digit).collect();
        text.trim_matches('0').to_owned()
    };
    digits(mantissa) == digits(format!("{value:e}").split('e').next().unwrap_or_default())
}

impl<'a> Reader<'a> {
    /// The text of a scalar that is not null, where a string was asked for.
    fn string<V: Visitor<'a>>(self, visitor: &V) -> Result<&'a str, Fault> {
        match &self.node.content {
            Content::Scalar { text, plain: true } if matches!(plain(text), Plain::Null) => {
                Err(Fault::invalid_type(Unexpected::Unit, visitor))
            }
            Content::Scalar { text, .. } => Ok(text),
            Content::Sequence(_) => Err(Fault::invalid_type(Unexpected::Seq, visitor)),
            Content::Mapping(_) => Err(Fault::invalid_type(Unexpected::Map, visitor)),
        }
    }

    fn is_null(self) -> bool {
        matches!(&self.node.content, Content::Scalar { text, plain: true } if matches!(plain(text), Plain::Null))
    }
}

impl<'a> Deserializer<'a> for Reader<'a> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Fault> {
        let result = match &self.node.content {
            Content::Sequence(items) => visitor.visit_seq(Items { items: items.iter() }),
            Content::Mapping(mapping) => visitor.visit_map(Entries { entries: mapping.entries.iter(), value: None }),
            Content::Scalar { text, plain: false } => visitor.visit_borrowed_str(text),
            Content::Scalar { text, plain: true } => match plain(text) {
                Plain::Null => visitor.visit_unit(),
                Plain::Bool(value) => visitor.visit_bool(value),
                Plain::Unsigned(value) => visitor.visit_u64(value),
                Plain::Signed(value) => visitor.visit_i64(value),
                Plain::Float(value) => visitor.visit_f64(value),
                Plain::Text => visitor.visit_borrowed_str(text),
                Plain::Inexact => Err(Fault::custom(format_args!(
                    "expected a number that can be held exactly, found `{text}`; write it in quotes to mean its text"
                ))),
            },
        };
        result.map_err(|fault| fault.at(self.node.id))
    }

    fn deserialize_str<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Fault> {
        let result = self.string(&visitor).and_then(|text| visitor.visit_borrowed_str(text));
        result.map_err(|fault| fault.at(self.node.id))
    }

    fn deserialize_string<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'a>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'a>>(
        self,
        name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_any(visitor).map_err(|fault| fault.of(name, self.node.id))
    }

    fn deserialize_enum<V: Visitor<'a>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let variant = match &self.node.content {
            _ if name == FILE_OR_INLINE => {
                let form = if self.node.get("file").is_some() { "file" } else { "inline" };
                Variant { name: form, key: None, content: Some(self.node) }
            }
            Content::Mapping(mapping) => match mapping.entries.as_slice() {
                [Entry { key, node, .. }] => Variant { name: key, key: Some(node.id), content: Some(node) },
                entries => {
                    let fault = Fault::custom(format_args!("expected exactly one key here, found {}", entries.len()));
                    return Err(fault.at(self.node.id));
                }
            },
            Content::Scalar { text, .. } if !self.is_null() => Variant { name: text, key: None, content: None },
            Content::Scalar { .. } => return Err(Fault::not_one_of(Unexpected::Unit, variants).at(self.node.id)),
            Content::Sequence(_) => return Err(Fault::not_one_of(Unexpected::Seq, variants).at(self.node.id)),
        };
        visitor.visit_enum(variant).map_err(|fault| fault.at(self.node.id))
    }

    fn deserialize_identifier<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    forward_to_deserialize_any! {
        <V: Visitor<'a>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct seq tuple
        tuple_struct map ignored_any
    }
}

/// The items of a sequence.
struct Items<'a> {
    items: std::slice::Iter<'a, Node>,
}

impl<'a> SeqAccess<'a> for Items<'a> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some(node) = self.items.next() else { return Ok(None) };
        seed.deserialize(Reader { node }).map(Some).map_err(|fault| fault.at(node.id))
    }
}

/// The entries of a mapping.
struct Entries<'a> {
    entries: std::slice::Iter<'a, Entry>,
    value: Option<&'a Node>,
}

impl<'a> MapAccess<'a> for Entries<'a> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some(entry) = self.entries.next() else { return Ok(None) };
        self.value = Some(&entry.node);
        seed.deserialize(StrDeserializer::new(&entry.key)).map(Some).map_err(|fault: Fault| fault.at_key(entry.node.id))
    }

    fn next_value_seed<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Result<T::Value, Fault> {
        let Some(node) = self.value.take() else { return Err(Fault::custom("expected a key before its value")) };
        seed.deserialize(Reader { node }).map_err(|fault| fault.at(node.id))
    }
}

/// One variant of an enum: a word, or a mapping of one entry.
struct Variant<'a> {
    name: &'a str,
    /// The node whose key names the variant, when a key does.
    key: Option<usize>,
    content: Option<&'a Node>,
}

impl<'a> EnumAccess<'a> for Variant<'a> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'a>>(self, seed: V) -> Result<(V::Value, Self), Fault> {
        let variant = seed.deserialize(StrDeserializer::new(self.name)).map_err(|fault: Fault| match self.key {
            Some(id) => fault.at_key(id),
            None => fault,
        })?;
        Ok((variant, self))
    }
}

impl<'a> Variant<'a> {
    fn content(&self) -> Result<&'a Node, Fault> {
        self.content.ok_or_else(|| Fault::custom(format_args!("expected `{0}: …`, found `{0}` alone", self.name)))
    }
}

impl<'a> VariantAccess<'a> for Variant<'a> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        match self.content {
            None => Ok(()),
            Some(node) if (Reader { node }).is_null() => Ok(()),
            Some(node) => {
                Err(Fault::custom(format_args!("expected `{}` alone, found a value behind it", self.name)).at(node.id))
            }
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'a>>(self, seed: T) -> Result<T::Value, Fault> {
        let node = self.content()?;
        seed.deserialize(Reader { node }).map_err(|fault| fault.at(node.id))
    }

    fn tuple_variant<V: Visitor<'a>>(self, _len: usize, visitor: V) -> Result<V::Value, Fault> {
        Reader { node: self.content()? }.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'a>>(self, _fields: &'static [&'static str], visitor: V) -> Result<V::Value, Fault> {
        Reader { node: self.content()? }.deserialize_any(visitor)
    }
}
