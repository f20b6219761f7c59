//! Where a protobuf file breaks off. The decoder says what is wrong; this says at which byte.

/// The messages inside a message, by field number.
struct Schema(&'static [(u64, &'static Schema)]);

const LEAF: Schema = Schema(&[]);
const TENSOR: Schema = Schema(&[]);
const ATTRIBUTE: Schema = Schema(&[(5, &TENSOR)]);
const NODE: Schema = Schema(&[(5, &ATTRIBUTE)]);
const DIMENSION: Schema = Schema(&[]);
const SHAPE: Schema = Schema(&[(1, &DIMENSION)]);
const TENSOR_TYPE: Schema = Schema(&[(2, &SHAPE)]);
const TYPE: Schema = Schema(&[(1, &TENSOR_TYPE)]);
const VALUE: Schema = Schema(&[(2, &TYPE)]);
const GRAPH: Schema = Schema(&[(1, &NODE), (5, &TENSOR), (11, &VALUE), (12, &VALUE), (13, &VALUE)]);
const MODEL: Schema = Schema(&[(7, &GRAPH), (8, &LEAF)]);

/// The byte at which `bytes` stops being a model, and why; `None` if its framing is whole.
pub(super) fn fault(bytes: &[u8]) -> Option<(usize, String)> {
    walk(bytes, 0, bytes.len(), &MODEL).err()
}

fn walk(bytes: &[u8], start: usize, end: usize, schema: &Schema) -> Result<(), (usize, String)> {
    let mut at = start;
    while at < end {
        let field_start = at;
        let key = varint(bytes, &mut at, end)?;
        let (field, wire) = (key >> 3, key & 7);
        let length = match wire {
            0 => {
                varint(bytes, &mut at, end)?;
                0
            }
            1 => 8,
            5 => 4,
            2 => varint(bytes, &mut at, end)?,
            _ => {
                return Err((field_start, format!("there is no protobuf wire type {wire}")));
            }
        };
        if field == 0 {
            return Err((field_start, "field number 0 is not allowed".to_owned()));
        }
        let left = (end - at) as u64;
        if length > left {
            let message = if end == bytes.len() {
                // The innermost field that the end of the file cuts tells most, but every field around it is cut too.
                format!(
                    "the file ends here; a field that starts at byte {field_start} needs {length} bytes and has {left}"
                )
            } else {
                format!("a field of {length} bytes starts at byte {field_start}, where only {left} are left")
            };
            return Err((end, message));
        }
        let next = at + length as usize;
        if let Some((_, inner)) = schema.0.iter().find(|&&(number, _)| number == field && wire == 2) {
            walk(bytes, at, next, inner)?;
        }
        at = next;
    }
    Ok(())
}

fn varint(bytes: &[u8], at: &mut usize, end: usize) -> Result<u64, (usize, String)> {
    let start = *at;
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        if *at >= end {
            return Err((end, format!("the number that starts at byte {start} is cut off")));
        }
        let byte = bytes[*at];
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err((start, "a number has more than ten bytes".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn whole_messages_have_no_fault() {
        // Field 1 = 8; field 7, a graph of two bytes with an empty name.
        assert_eq!(fault(&[0x08, 8, 0x3a, 2, 0x12, 0]), None);
        assert_eq!(fault(&[]), None);
    }

    #[test]
    fn a_field_that_is_too_long_is_reported_at_the_end_of_the_file() {
        let (byte, message) = fault(&[0x08, 8, 0x3a, 9, 0x12, 0]).expect("cut");
        assert_eq!(byte, 6);
        assert_eq!(
            message,
            "the file ends here; a field that starts at byte 2 needs 9 bytes and has 2"
        );
    }

    #[test]
    fn a_field_beyond_its_message_is_reported_inside_the_file() {
        // The graph has two bytes, but its name claims five.
        let (byte, message) = fault(&[0x3a, 2, 0x12, 5, 0x08, 8]).expect("too long");
        assert_eq!(byte, 4);
        assert_eq!(message, "a field of 5 bytes starts at byte 2, where only 0 are left");
    }

    #[test]
    fn a_number_that_is_cut_off_is_reported() {
        assert_eq!(fault(&[0x08, 0x80]).map(|(byte, _)| byte), Some(2));
        assert_eq!(fault(&[0x0b]).map(|(byte, _)| byte), Some(0));
    }
}
