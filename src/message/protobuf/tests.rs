use proptest::prelude::*;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};

use super::*;

fn fields(bytes: &[u8]) -> Result<Vec<(u64, Value)>, Malformed> {
    let mut fields = Fields::within(bytes, 0..bytes.len());
    std::iter::from_fn(|| fields.next().transpose()).collect()
}

#[test]
fn every_wire_type_is_stepped_over_at_its_length() {
    let message = [0x08, 0x96, 0x01, 0x11, 1, 2, 3, 4, 5, 6, 7, 8, 0x1a, 2, b'h', b'i', 0x25, 1, 2, 3, 4, 0x2a, 0];
    let expected = [
        (1, Value::Number(150)),
        (2, Value::Fixed),
        (3, Value::Bytes(14..16)),
        (4, Value::Fixed),
        (5, Value::Bytes(23..23)),
    ];
    assert_eq!(fields(&message).as_deref(), Ok(expected.as_slice()));
}

#[test]
fn what_ends_early_or_is_no_field_is_malformed() {
    let endless = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
    for bytes in [
        &[0x08][..],
        &[0x80],
        &[0x1a, 2, b'h'],
        &[0x11, 1, 2, 3, 4, 5, 6, 7],
        &[0x25, 1, 2, 3],
        // Groups, which nobody writes any more, and two wire types that there are not.
        &[0x0b],
        &[0x0c],
        &[0x0e],
        &[0x0f],
        &endless,
        &[0x1a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
    ] {
        assert_eq!(fields(bytes), Err(Malformed), "{bytes:?}");
    }
}

#[test]
fn a_field_is_taken_once() {
    let mut field = None;
    assert_eq!((once(&mut field, 1), once(&mut field, 2)), (Ok(()), Err(Malformed)));
}

proptest! {
    #[test]
    fn numbers_are_written_and_read_as_by_prost(value in any::<u64>(), shift in 0_u32..64, field in 1_u8..16) {
        let value = value >> shift;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        number(&mut ours, field, value);
        encode_key(u32::from(field), WireType::Varint, &mut theirs);
        encode_varint(value, &mut theirs);
        prop_assert_eq!(&ours, &theirs);
        prop_assert_eq!((number_len(value), varint_len(value)), (ours.len(), encoded_len_varint(value)));
        prop_assert_eq!(fields(&ours), Ok(vec![(u64::from(field), Value::Number(value))]));
    }

    #[test]
    fn bytes_are_written_and_read_as_by_prost(value in prop::collection::vec(any::<u8>(), 0..300), field in 1_u8..16) {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        bytes(&mut ours, field, &value);
        prost::encoding::bytes::encode(u32::from(field), &value, &mut theirs);
        prop_assert_eq!(&ours, &theirs);
        prop_assert_eq!(field_len(value.len()), ours.len());
        prop_assert_eq!(fields(&ours), Ok(vec![(u64::from(field), Value::Bytes(ours.len() - value.len()..ours.len()))]));
    }
}
