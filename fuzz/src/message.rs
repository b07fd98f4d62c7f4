//! Protobuf messages as trees: parsed by ONNX's schema, changed, written back with right lengths.

use firstlight_tensor::wire::{Reader, Value, Writer};

/// How deep messages are parsed; what lies deeper stays bytes.
const MAX_DEPTH: usize = 48;

/// A message of ONNX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    SparseTensor,
    ValueInfo,
    Type,
    TensorType,
    /// Sequence and optional types: a message around one type.
    Wrapped,
    Shape,
    Dim,
    Function,
    Opset,
    Pair,
}

/// What a length-delimited field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    Message(Kind),
    Text,
    Varints,
    /// Numbers of a fixed width, or anything else.
    Raw,
}

/// A message as a list of fields.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Message {
    pub(crate) kind: Kind,
    pub(crate) fields: Vec<Field>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) number: u32,
    pub(crate) content: Content,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    Varint(u64),
    Fixed32(u32),
    Fixed64(u64),
    Bytes(Payload, Vec<u8>),
    Message(Message),
}

impl Message {
    /// Parses a message, as far as it is one; a nested field that is none stays bytes.
    pub(crate) fn parse(kind: Kind, bytes: &[u8]) -> Option<Message> {
        Message::parse_at(kind, bytes, 0)
    }

    fn parse_at(kind: Kind, bytes: &[u8], depth: usize) -> Option<Message> {
        let mut reader = Reader::new(bytes);
        let mut fields = vec![];
        while let Some(field) = reader.next_field("message").ok()? {
            let content = match field.value {
                Value::Varint(v) => Content::Varint(v),
                Value::Fixed32(v) => Content::Fixed32(v),
                Value::Fixed64(v) => Content::Fixed64(v),
                Value::Group => return None,
                Value::Bytes(span) => match payload(kind, field.number) {
                    Payload::Message(inner) if depth < MAX_DEPTH => {
                        match Message::parse_at(inner, span.bytes, depth + 1) {
                            Some(message) => Content::Message(message),
                            None => Content::Bytes(Payload::Raw, span.bytes.to_vec()),
                        }
                    }
                    Payload::Message(_) => Content::Bytes(Payload::Raw, span.bytes.to_vec()),
                    other => Content::Bytes(other, span.bytes.to_vec()),
                },
            };
            fields.push(Field { number: field.number, content });
        }
        Some(Message { kind, fields })
    }

    /// The message as bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new();
        for field in &self.fields {
            match &field.content {
                Content::Varint(v) => w.u64(field.number, *v),
                Content::Fixed32(v) => w.f32(field.number, f32::from_bits(*v)),
                Content::Fixed64(v) => w.f64(field.number, f64::from_bits(*v)),
                Content::Bytes(_, bytes) => w.bytes(field.number, bytes),
                Content::Message(message) => w.bytes(field.number, &message.encode()),
            };
        }
        w.finish()
    }

    /// Number of fields, nested ones included.
    pub(crate) fn n_fields(&self) -> usize {
        let nested = |field: &Field| match &field.content {
            Content::Message(message) => message.n_fields(),
            _ => 0,
        };
        self.fields.iter().map(|field| 1 + nested(field)).sum()
    }

    /// The message that directly holds the `n`-th field, counted depth first, and the field's place in it.
    pub(crate) fn nth(&mut self, mut n: usize) -> Option<(&mut Message, usize)> {
        for i in 0..self.fields.len() {
            if n == 0 {
                return Some((self, i));
            }
            n -= 1;
            let nested = match &self.fields[i].content {
                Content::Message(message) => message.n_fields(),
                _ => 0,
            };
            if n < nested {
                return match &mut self.fields[i].content {
                    Content::Message(message) => message.nth(n),
                    _ => None,
                };
            }
            n -= nested;
        }
        None
    }

    /// Calls `each` for every field, nested ones included.
    pub(crate) fn visit<'a>(&'a self, each: &mut impl FnMut(&'a Message, &'a Field)) {
        for field in &self.fields {
            each(self, field);
            if let Content::Message(message) = &field.content {
                message.visit(each);
            }
        }
    }
}

/// What ONNX says of a length-delimited field.
fn payload(kind: Kind, number: u32) -> Payload {
    use Payload::{Message, Raw, Text, Varints};
    match (kind, number) {
        (Kind::Model, 7) => Message(Kind::Graph),
        (Kind::Model, 8) | (Kind::Function, 9) => Message(Kind::Opset),
        (Kind::Model, 14) | (Kind::Graph, 16) | (Kind::Node, 9) | (Kind::Tensor, 13 | 16) => Message(Kind::Pair),
        (Kind::Model, 25) => Message(Kind::Function),
        (Kind::Graph, 1) | (Kind::Function, 7) => Message(Kind::Node),
        (Kind::Graph, 5) | (Kind::Attribute, 5 | 10) | (Kind::SparseTensor, 1 | 2) => Message(Kind::Tensor),
        (Kind::Graph, 15) | (Kind::Attribute, 22 | 23) => Message(Kind::SparseTensor),
        (Kind::Graph, 11..=13) | (Kind::Function, 12) => Message(Kind::ValueInfo),
        (Kind::Node, 5) | (Kind::Function, 11) => Message(Kind::Attribute),
        (Kind::Attribute, 6 | 11) => Message(Kind::Graph),
        (Kind::Attribute, 14 | 15) | (Kind::ValueInfo, 2) | (Kind::Wrapped, 1) => Message(Kind::Type),
        (Kind::Type, 1 | 8) => Message(Kind::TensorType),
        (Kind::Type, 4 | 9) => Message(Kind::Wrapped),
        (Kind::TensorType, 2) => Message(Kind::Shape),
        (Kind::Shape, 1) => Message(Kind::Dim),
        (Kind::Attribute, 8) | (Kind::Tensor, 1 | 5 | 7 | 11) | (Kind::SparseTensor, 3) => Varints,
        (Kind::Attribute, 7) | (Kind::Tensor, 4 | 9 | 10) => Raw,
        _ => Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_base_model_comes_back_as_it_was() {
        for (name, bytes) in crate::base::models() {
            let mut tree = Message::parse(Kind::Model, &bytes).unwrap();
            assert_eq!(tree.encode(), bytes, "{name}");
            let mut seen = 0;
            let mut opaque = 0;
            tree.visit(&mut |_, field| {
                seen += 1;
                opaque += usize::from(matches!(&field.content, Content::Bytes(Payload::Message(_), _)));
            });
            assert_eq!((seen, opaque), (tree.n_fields(), 0), "{name}");
            assert!((0..seen).all(|n| tree.nth(n).is_some()) && tree.nth(seen).is_none(), "{name}");
        }
        assert_eq!(Message::parse(Kind::Model, &[0x0a, 0x05, 0]), None);
    }
}
