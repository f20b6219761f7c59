//! From a record to the pipeline that it describes.

use cyclonest_arch::streaming::pipeline::{Converter, MatrixVector, Padding, Pipeline, Rate, Stage, StageKind, Window};
use serde_json::Value;

/// Core stages of the matrix-vector unit's DSP pipeline.
const CORE_DEPTH: u64 = 5;

/// Words or frames beyond which a record is refused: larger ones are mistakes.
const LIMIT: u64 = 1 << 32;

/// The record's pipeline and its frames.
///
/// # Errors
/// If a field is missing or out of range, a stage is unknown, or a stage's map is not what the stage before writes.
pub(super) fn pipeline(value: &Value) -> Result<(Pipeline, u64), String> {
    let stages = value["stages"].as_array().ok_or("no `stages`")?;
    let number = |key: &str| positive(&value[key]).ok_or(format!("no `{key}`, or not a positive number"));
    let frames = number("frames")?;
    let mut stream = Stream {
        bits: number("in_bits")?,
        words: 0,
        accumulator: positive(&value["acc_bits"]),
    };
    stream.words = divide(
        "the frame's bits",
        times(number("frame_elems")?, number("act_bits")?)?,
        stream.bits,
    )?;
    let mut list = vec![Stage {
        name: "source".to_owned(),
        kind: StageKind::Source {
            tokens: stream.words,
            rate: rate(value, "in_rate")?,
        },
    }];
    for (index, stage) in stages.iter().enumerate() {
        let kind = stage["t"].as_str().unwrap_or_default();
        let unit = stream
            .through(kind, stage)
            .map_err(|message| format!("stage {index} (`{kind}`): {message}"))?;
        list.push(Stage {
            name: format!("{kind} {index}"),
            kind: unit,
        });
    }
    list.push(Stage {
        name: "sink".to_owned(),
        kind: StageKind::Sink {
            tokens: stream.words,
            rate: rate(value, "out_rate")?,
        },
    });
    times(stream.words, frames)?;
    Ok((
        Pipeline::chain(value["name"].as_str().unwrap_or_default(), list),
        frames,
    ))
}

/// The stream at some place of the chain.
struct Stream {
    /// Bits of a word.
    bits: u64,
    /// Words per frame.
    words: u64,
    /// Bits of an unquantised result.
    accumulator: Option<u64>,
}

impl Stream {
    /// The unit that a stage is; the stream becomes what it writes.
    fn through(&mut self, kind: &str, stage: &Value) -> Result<StageKind, String> {
        let field = |key: &str| positive(&stage[key]).ok_or(format!("no `{key}`, or not a positive number"));
        let flag = |key: &str| stage[key].as_u64() == Some(1) || stage[key] == Value::Bool(true);
        match kind {
            "fifo" => Ok(StageKind::Fifo { depth: field("depth")? }),
            "pad" => {
                let pads = pads(&stage["P"])?;
                let [top, left, bottom, right] = pads;
                let (rows, columns) = (field("H")?, field("W")?);
                let turns = divide("`C`", field("C")?, field("SIMD")?)?;
                self.expect(times(times(rows, columns)?, turns)?)?;
                self.words = times(times(rows + top + bottom, columns + left + right)?, turns)?;
                Ok(StageKind::Padding(Padding {
                    rows,
                    columns,
                    pads,
                    turns,
                }))
            }
            "swg" => {
                let kernel = if stage["kh"].is_null() && stage["kw"].is_null() {
                    pair(&stage["k"], None).ok_or("no `k`")?
                } else {
                    (field("kh")?, field("kw")?)
                };
                let window = Window {
                    rows: field("H")?,
                    columns: field("W")?,
                    kernel,
                    stride: pair(&stage["s"], Some(1)).ok_or("`s` is not a positive number or a pair")?,
                    dilation: pair(&stage["d"], Some(1)).ok_or("`d` is not a positive number or a pair")?,
                    turns: divide("`C`", field("C")?, field("SIMD")?)?,
                    // A window of one position needs no cyclic buffer either.
                    parallel: flag("par") || kernel == (1, 1),
                    depthwise: flag("dw"),
                };
                let reach = |kernel: u64, dilation: u64| times(kernel - 1, dilation).map(|n| n + 1);
                if reach(kernel.0, window.dilation.0)? > window.rows
                    || reach(kernel.1, window.dilation.1)? > window.columns
                {
                    return Err(format!("a window of {kernel:?} does not fit into the map"));
                }
                self.expect(times(times(window.rows, window.columns)?, window.turns)?)?;
                if window.parallel {
                    self.bits = times(self.bits, times(kernel.0, kernel.1)?)?;
                }
                let (rows, columns) = window.output();
                times(times(rows, columns)?, times(times(kernel.0, kernel.1)?, window.turns)?)?;
                self.words = window.words_out();
                Ok(StageKind::Window(window))
            }
            "mvu" => {
                let (simd, pe) = (field("SIMD")?, field("PE")?);
                let unit = MatrixVector {
                    synapse_fold: divide("`MW`", field("MW")?, simd)?,
                    neuron_fold: divide("`MH`", field("MH")?, pe)?,
                    depth: CORE_DEPTH,
                };
                self.words = times(
                    divide("the words per frame", self.words, unit.synapse_fold)?,
                    unit.neuron_fold,
                )?;
                // Quantised outputs are as wide as activations, others as the accumulator.
                let element = match stage["q"].as_u64().unwrap_or(0) {
                    0 => self.accumulator.ok_or("no `acc_bits`")?,
                    quantised => quantised,
                };
                self.bits = times(pe, element)?;
                Ok(StageKind::MatrixVector(unit))
            }
            "dwc" => {
                let converter = Converter {
                    bits_in: self.bits,
                    bits_out: field("ow")?,
                };
                self.words = divide("the frame's bits", times(self.words, self.bits)?, converter.bits_out)?;
                self.bits = converter.bits_out;
                Ok(StageKind::Converter(converter))
            }
            _ => Err("unknown; `fifo`, `pad`, `swg`, `mvu` and `dwc` can be described".to_owned()),
        }
    }

    /// Whether the stream has as many words per frame as the stage reads.
    fn expect(&self, words: u64) -> Result<(), String> {
        if self.words == words {
            Ok(())
        } else {
            Err(format!("reads {words} words per frame, {} arrive", self.words))
        }
    }
}

/// A positive number within the limit.
fn positive(value: &Value) -> Option<u64> {
    value.as_u64().filter(|n| (1..LIMIT).contains(n))
}

/// A number for both axes, or one per axis; `default` where there is nothing.
fn pair(value: &Value, default: Option<u64>) -> Option<(u64, u64)> {
    match value {
        Value::Null => default.map(|n| (n, n)),
        Value::Array(both) if both.len() == 2 => Some((positive(&both[0])?, positive(&both[1])?)),
        one => positive(one).map(|n| (n, n)),
    }
}

/// Top, left, bottom, right; one number is for all four.
fn pads(value: &Value) -> Result<[u64; 4], String> {
    let one = |v: &Value| {
        v.as_u64()
            .filter(|&n| n < LIMIT)
            .ok_or("`P` is not a number or four of them".to_owned())
    };
    match value {
        Value::Array(four) if four.len() == 4 => Ok([one(&four[0])?, one(&four[1])?, one(&four[2])?, one(&four[3])?]),
        all => one(all).map(|n| [n; 4]),
    }
}

/// Tokens per cycles, at most one per cycle.
fn rate(value: &Value, key: &str) -> Result<Rate, String> {
    let part = |i: usize| positive(&value[key][i]);
    match (part(0), part(1)) {
        (Some(tokens), Some(cycles)) if tokens <= cycles => Ok(Rate { tokens, cycles }),
        (Some(tokens), Some(cycles)) => Err(format!("`{key}` is {tokens} tokens in {cycles} cycles, more than one")),
        _ => Err(format!("no `{key}`, or not two positive numbers")),
    }
}

/// The product, unless it is beyond the limit.
fn times(a: u64, b: u64) -> Result<u64, String> {
    a.checked_mul(b)
        .filter(|&n| n < LIMIT)
        .ok_or(format!("{a} times {b} is beyond what is simulated"))
}

/// The quotient, if nothing is left over.
fn divide(what: &str, a: u64, b: u64) -> Result<u64, String> {
    if a > 0 && a.is_multiple_of(b) {
        Ok(a / b)
    } else {
        Err(format!("{what} ({a}) is not a multiple of {b}"))
    }
}
