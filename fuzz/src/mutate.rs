//! Changes to a model: of its bytes, and of its messages.

use crate::message::{Content, Field, Kind, Message, Payload};
use crate::rng::Rng;
use firstlight_onnx::{NEWEST_OPSET, imported_ops};

/// Changes bytes in one way.
pub(crate) fn bytes(rng: &mut Rng, bytes: &mut Vec<u8>, donor: &[u8]) {
    let len = bytes.len();
    if len == 0 {
        bytes.extend_from_slice(donor);
        return;
    }
    let at = rng.below(len);
    let run = at..(at + 1 + rng.magnitude(256)).min(len);
    match rng.below(9) {
        0 => bytes[at] ^= 1 << rng.below(8),
        1 => bytes[at] = *rng.pick(&[0, 1, 0x7f, 0x80, 0xff]),
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(run)),
        4 => {
            let copy = bytes[run].to_vec();
            bytes.splice(at..at, copy);
        }
        5 => {
            // A length or a number becomes another one.
            let n = bytes[at..].iter().take(10).take_while(|&&byte| byte >= 0x80).count();
            let end = (at + n + 1).min(len);
            bytes.splice(at..end, varint(rng.odd_i64() as u64));
        }
        6 => {
            let from = rng.below(donor.len());
            let to = (from + 1 + rng.magnitude(4096)).min(donor.len());
            bytes.splice(run, donor[from.min(to)..to].iter().copied());
        }
        7 => bytes[run].fill_with(|| rng.u64() as u8),
        _ => {
            let other = rng.below(len);
            bytes.swap(at, other);
        }
    }
}

/// A varint as bytes.
pub(crate) fn varint(mut v: u64) -> Vec<u8> {
    let mut out = vec![];
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
    out
}

/// Changes a field of a message in one way.
pub(crate) fn message(rng: &mut Rng, tree: &mut Message, donor: &Message) {
    let n_fields = tree.n_fields();
    if n_fields == 0 {
        return;
    }
    let n = rng.below(n_fields);
    let text = other_text(rng, tree);
    let piece = piece(rng, donor);
    let graft = rng.below(n_fields);
    let Some((parent, at)) = tree.nth(n) else { return };
    match rng.below(12) {
        0 => drop(parent.fields.remove(at)),
        1 => {
            let copy = parent.fields[at].clone();
            let times = if rng.one_in(20) { 1000 } else { 1 };
            let to = rng.below(parent.fields.len() + 1);
            parent.fields.splice(to..to, std::iter::repeat_n(copy, times));
        }
        2 => {
            let other = rng.below(parent.fields.len());
            parent.fields.swap(at, other);
        }
        3 => parent.fields[at].number = 1 + rng.below(26) as u32,
        4 => {
            // A piece of the other model in place of one of its kind, or of any.
            if let Some(piece) = piece {
                match (&mut parent.fields[at].content, &piece.content) {
                    (Content::Message(mine), Content::Message(theirs)) if mine.kind == theirs.kind => {
                        *mine = theirs.clone();
                    }
                    _ => parent.fields.insert(at, piece),
                }
            }
        }
        5 => {
            let field = parent.fields.remove(at);
            if let Some((to, i)) = tree.nth(graft) {
                to.fields.insert(i, field);
            }
        }
        _ => content(rng, parent, at, text),
    }
}

/// Changes a number of a message (a size, an attribute, a value of a weight), so that the model stays one that loads.
pub(crate) fn number(rng: &mut Rng, tree: &mut Message) {
    let (mut n, mut numbers) = (0, vec![]);
    tree.visit(&mut |parent, field| {
        let is_number = match &field.content {
            Content::Varint(_) => {
                matches!((parent.kind, field.number), (Kind::Dim, 1) | (Kind::Attribute, 3) | (Kind::Opset, 2))
            }
            Content::Fixed32(_) | Content::Fixed64(_) | Content::Bytes(Payload::Varints, _) => true,
            Content::Bytes(payload, bytes) => *payload == Payload::Raw && !bytes.is_empty(),
            Content::Message(_) => false,
        };
        if is_number {
            numbers.push(n);
        }
        n += 1;
    });
    if let Some((parent, at)) = numbers.get(rng.below(numbers.len())).and_then(|&n| tree.nth(n)) {
        content(rng, parent, at, vec![]);
    }
}

/// Some text of the model, so that names meet that should not.
fn other_text(rng: &mut Rng, tree: &Message) -> Vec<u8> {
    let mut texts = vec![];
    tree.visit(&mut |_, field| {
        if let Content::Bytes(Payload::Text, text) = &field.content {
            texts.push(text);
        }
    });
    texts.get(rng.below(texts.len())).map(|text| text.to_vec()).unwrap_or_default()
}

/// The name of an op that is imported.
fn other_op(rng: &mut Rng) -> Vec<u8> {
    let n = rng.below(imported_ops().count());
    imported_ops().nth(n).map(|op| op.name.into()).unwrap_or_default()
}

fn piece(rng: &mut Rng, donor: &Message) -> Option<Field> {
    let wanted = rng.below(donor.n_fields());
    let (mut seen, mut found) = (0, None);
    donor.visit(&mut |_, field| {
        if seen == wanted {
            found = Some(field.clone());
        }
        seen += 1;
    });
    found
}

/// Changes what a field holds.
fn content(rng: &mut Rng, parent: &mut Message, at: usize, text: Vec<u8>) {
    let kind = parent.kind;
    let field = &mut parent.fields[at];
    match &mut field.content {
        Content::Varint(v) => {
            *v = match (kind, field.number) {
                (Kind::Opset, 2) if !rng.one_in(8) => 1 + rng.below(NEWEST_OPSET as usize + 1) as u64,
                // Element types.
                (Kind::Tensor, 2) | (Kind::TensorType, 1) | (Kind::Attribute, 20) => rng.below(30) as u64,
                _ if rng.one_in(3) => v.wrapping_add(*rng.pick(&[1, 2, u64::MAX, u64::MAX - 1])),
                _ => rng.odd_i64() as u64,
            };
        }
        Content::Fixed32(v) => *v = (rng.odd_f64() as f32).to_bits(),
        Content::Fixed64(v) => *v = rng.odd_f64().to_bits(),
        Content::Bytes(Payload::Text, bytes) => {
            *bytes = match rng.below(8) {
                0 => vec![],
                1 => vec![b'x'; 1 + rng.magnitude(100_000)],
                2 => vec![0xff, 0xfe],
                3 => b"../../../../etc/passwd".to_vec(),
                4 | 5 if (kind, field.number) == (Kind::Node, 4) => other_op(rng),
                6 => rng.odd_i64().to_string().into_bytes(),
                _ => text,
            };
        }
        Content::Bytes(Payload::Varints, bytes) => {
            let mut values = unpack(bytes);
            match rng.below(8) {
                0 => drop(values.pop()),
                1 => values.push(rng.odd_i64() as u64),
                2 if !values.is_empty() => values.push(values[0]),
                n => {
                    let i = rng.below(values.len());
                    if let Some(value) = values.get_mut(i) {
                        *value = if n < 6 { rng.odd_i64() as u64 } else { rng.below(6) as u64 };
                    }
                }
            }
            *bytes = values.into_iter().flat_map(varint).collect();
        }
        Content::Bytes(_, bytes) => {
            let width = *rng.pick(&[1, 4, 8]);
            let i = rng.below(bytes.len() / width);
            let word = if rng.one_in(2) { rng.odd_i64().to_le_bytes() } else { rng.odd_f64().to_le_bytes() };
            match rng.below(6) {
                0 => drop(bytes.pop()),
                1 => bytes.extend_from_slice(&word),
                _ => {
                    if let Some(at) = bytes.get_mut(i * width..(i + 1) * width) {
                        at.copy_from_slice(&word[..width]);
                    }
                }
            }
        }
        Content::Message(message) => match rng.below(4) {
            0 => message.fields.clear(),
            1 => message.fields.reverse(),
            2 => {
                let inner = message.clone();
                message.fields.extend(inner.fields);
            }
            _ => {
                let inner = message.clone();
                message.fields.push(Field { number: field.number, content: Content::Message(inner) });
            }
        },
    }
}

/// The varints of a packed field, as far as they are ones.
fn unpack(bytes: &[u8]) -> Vec<u64> {
    let (mut values, mut value, mut shift) = (vec![], 0u64, 0);
    for &byte in bytes {
        value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        shift += 7;
        if byte < 0x80 {
            values.push(value);
            (value, shift) = (0, 0);
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_numbers_come_back() {
        let values = [0, 1, 127, 128, u64::MAX, 1 << 40];
        assert_eq!(unpack(&values.iter().flat_map(|&v| varint(v)).collect::<Vec<_>>()), values);
    }

    #[test]
    fn mutations_change_models_and_never_panic() {
        let models = crate::base::models();
        let mut changed = 0;
        for i in 0..3000 {
            let mut rng = Rng::new(7, i);
            let (_, model) = rng.pick(&models);
            let (_, donor) = rng.pick(&models);
            let mut tree = Message::parse(Kind::Model, model).unwrap();
            message(&mut rng, &mut tree, &Message::parse(Kind::Model, donor).unwrap());
            let mut out = tree.encode();
            changed += usize::from(out != *model);
            bytes(&mut rng, &mut out, donor);
        }
        assert!(changed > 2500, "{changed}");
        let mut empty = vec![];
        bytes(&mut Rng::new(0, 0), &mut empty, &[1, 2]);
        assert_eq!(empty, [1, 2]);
    }
}
