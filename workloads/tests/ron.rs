//! Networks in RON: what is read, and what is said about networks that are broken.

use cyclonest_workloads::{Network, Padding, Scale, bundled, op::Op};
use insta::assert_snapshot;
use proptest::prelude::*;

/// The faults of a text, one per line.
fn faults(text: &str) -> String {
    match Network::from_ron(text) {
        Ok(_) => panic!("the network is accepted"),
        Err(errors) => errors.to_string(),
    }
}

/// A network around a list of nodes that starts in line 5.
fn network(nodes: &str) -> String {
    format!("Network(\n    name: \"test\",\n    inputs: {{ \"x\": [1, 4, 8, 8] }},\n    nodes: [\n{nodes}\n    ],\n)\n")
}

fn node_faults(nodes: &str) -> String {
    faults(&network(nodes))
}

#[test]
fn a_syntax_error_has_its_place() {
    assert_snapshot!(node_faults(r#"(name: "a", op: Relu,"#), @r"6:5: Expected identifier");
}

#[test]
fn an_unknown_operator_has_a_nearest_name() {
    assert_snapshot!(node_faults(r#"(name: "a", op: Cnov(out: 4, kernel: 3)),"#), @r#"
    5:17: there is no operator `Cnov`; the nearest name is `Conv`
    "#);
}

#[test]
fn an_unknown_field_has_a_nearest_name() {
    assert_snapshot!(node_faults(r#"(name: "a", op: Conv(out: 4, kernal: 3)),"#), @r#"
    5:30: there is no field `kernal` in `Conv`; the nearest name is `kernel`
    "#);
    assert_snapshot!(node_faults(r#"(name: "a", op: Xyzzy),"#), @r"
    5:17: there is no operator `Xyzzy`; expected is one of Conv, ConvTranspose, Linear, MatMul, Lstm, MaxPool, AveragePool, GlobalMaxPool, GlobalAveragePool, Relu, Relu6, Sigmoid, Tanh, Gelu, Softmax, BatchNorm, LayerNorm, LocalResponseNorm, Dropout, Unary, Add, Mul, Elementwise, Concat, Flatten, Reshape, Transpose, Slice, CenterCrop, Pad, Upsample, ChannelShuffle, Reduce, Constant, Opaque
    ");
    assert_snapshot!(node_faults(r#"(name: "a", opp: Relu),"#), @r#"
    5:13: there is no field `opp` in `Node`; the nearest name is `op`
    "#);
}

#[test]
fn a_missing_field_is_named() {
    assert_snapshot!(node_faults(r#"(name: "a", op: Conv(out: 4)),"#), @r"5:28: the field `kernel` of `Conv` is missing");
}

#[test]
fn a_negative_size_is_not_read() {
    assert_snapshot!(node_faults(r#"(name: "a", op: Conv(out: -4, kernel: 3)),"#), @r"5:28: found -4; an integer from 0 to 18446744073709551615 is expected");
    assert_snapshot!(node_faults(r#"(name: "a", op: Conv(out: 4, kernel: -3)),"#), @r"
    5:39: Expected a number or a pair (rows, columns) of numbers, none negative but found the signed integer `-3` instead
    ");
    assert_snapshot!(node_faults(r#"(name: "a", op: Conv(out: 4, kernel: 3, pad: (top: 1, botom: 2))),"#), @r#"
    5:55: there is no field `botom` in `Conv`; the nearest name is `bottom`
    "#);
}

#[test]
fn a_number_beyond_64_bits_is_not_read() {
    assert_snapshot!(node_faults(r#"(name: "a", op: Conv(out: 18446744073709551616, kernel: 3)),"#), @r"5:27: found 18446744073709551616; an integer from 0 to 18446744073709551615 is expected");
}

#[test]
fn unknown_inputs_have_a_nearest_name() {
    assert_snapshot!(node_faults(r#"
        (name: "conv1", op: Relu),
        (name: "sum", op: Add, inputs: ["conv1", "cnov1"]),
        (name: "far", op: Relu, inputs: ["something else"]),"#), @r#"
    7:16: "sum": reads "cnov1", which is no node or input; the nearest name is "conv1"
    8:16: "far": reads "something else", which is no node or input
    "#);
}

#[test]
fn every_zero_is_reported() {
    assert_snapshot!(node_faults(r#"
        (name: "a", op: Conv(out: 0, kernel: (3, 0), stride: 0)),
        (name: "b", op: MaxPool(kernel: 0), inputs: ["x"]),
        (name: "c", op: Linear(out: 0), inputs: ["x"]),"#), @r#"
    6:16: "a": out is 0; at least 1 is expected
    6:16: "a": kernel is 0; at least 1 is expected
    6:16: "a": stride is 0; at least 1 is expected
    7:16: "b": kernel is 0; at least 1 is expected
    8:16: "c": out is 0; at least 1 is expected
    "#);
    assert_snapshot!(faults(r#"Network(name: "n", inputs: { "x": [1, 0] }, nodes: [(name: "r", op: Relu)])"#), @r#"1:30: "x": the shape 1×0 has a 0; at least 1 is expected"#);
}

#[test]
fn shapes_that_do_not_fit_are_reported_with_both() {
    assert_snapshot!(node_faults(r#"
        (name: "wide", op: Conv(out: 4, kernel: 11), inputs: ["x"]),
        (name: "groups", op: Conv(out: 4, kernel: 1, groups: 3), inputs: ["x"]),
        (name: "small", op: MaxPool(kernel: 2, stride: 2), inputs: ["x"]),
        (name: "sum", op: Add, inputs: ["x", "small"]),
        (name: "join", op: Concat(), inputs: ["x", "small"]),
        (name: "fold", op: Reshape([7, -1]), inputs: ["x"]),
        (name: "turn", op: Transpose([0, 1, 1, 2]), inputs: ["x"]),
        (name: "product", op: MatMul(), inputs: ["x", "small"]),
        (name: "crop", op: CenterCrop(size: 9), inputs: ["x"]),
        (name: "part", op: Slice(axis: 1, start: 3, length: 2), inputs: ["x"]),
        (name: "lstm", op: Lstm(hidden: 3), inputs: ["x"]),
        (name: "one", op: Add, inputs: ["x"]),"#), @r#"
    6:16: "wide": Conv: the window spans 11 rows, but the input has 8 with its padding
    7:16: "groups": Conv: 3 groups do not divide 4 input channels
    9:16: "sum": Add: 1×4×8×8 and 1×4×4×4 do not broadcast
    10:16: "join": Concat: 1×4×8×8 and 1×4×4×4 cannot be joined along axis 1: the other axes differ
    11:16: "fold": Reshape: 1×4×8×8 has 256 elements, which [7, -1] cannot hold
    12:16: "turn": Transpose: [0, 1, 1, 2] is no permutation of the 4 axes of 1×4×8×8
    13:16: "product": MatMul: 1×4×8×8 × 1×4×4×4: 8 columns on the left, 4 rows on the right
    14:16: "crop": CenterCrop: the crop of 9×9 is larger than 1×4×8×8
    15:16: "part": Slice: 2 indices from 3 in steps of 1 reach beyond axis 1 of 1×4×8×8
    16:16: "lstm": Lstm: the input is 1×4×8×8; [time, batch, features] is expected
    17:16: "one": Add takes at least 2 inputs, but has 1
    "#);
}

#[test]
fn a_fault_is_reported_once_and_not_at_what_follows() {
    assert_snapshot!(node_faults(r#"
        (name: "a", op: Conv(out: 4, kernel: 9)),
        (name: "b", op: Conv(out: 4, kernel: 9)),
        (name: "c", op: Linear(out: 0)),"#), @r#"
    6:16: "a": Conv: the window spans 9 rows, but the input has 8 with its padding
    8:16: "c": out is 0; at least 1 is expected
    "#);
}

#[test]
fn counts_beyond_64_bits_are_reported() {
    assert_snapshot!(node_faults(r#"
        (name: "a", op: Conv(out: 1000000000000000000, kernel: 1)),
        (name: "b", op: ConvTranspose(out: 4, kernel: 9, stride: 9223372036854775807), inputs: ["x"]),
        (name: "c", op: Conv(out: 100000000000000000, kernel: 8), inputs: ["x"]),
        (name: "d", op: Conv(out: 4, kernel: 3, pad: 18446744073709551615), inputs: ["x"]),
        (name: "e", op: Conv(out: 4, kernel: 2, dilation: 18446744073709551615), inputs: ["x"]),
        (name: "f", op: Lstm(hidden: 1, layers: 99999999999), inputs: ["sequence"]),
        (name: "g", op: ConvTranspose(out: 1, kernel: 1000, stride: 1000), inputs: ["x"]),
        (name: "sequence", op: Reshape([4, 8, 8]), inputs: ["x"]),"#), @r#"
    6:16: "a": Conv: the number of elements of 1×1000000000000000000×8×8 does not fit 64 bits
    7:16: "b": ConvTranspose: a size does not fit 64 bits
    8:16: "c": 100000000000000000·4·8·8 multiply-accumulates do not fit 64 bits
    9:16: "d": Conv: a size does not fit 64 bits
    10:16: "e": Conv: a size does not fit 64 bits
    11:16: "f": Lstm: it falls into 99999999999 loop nests; at most 65536 are expected
    12:16: "g": ConvTranspose: it falls into 1000000 loop nests; at most 65536 are expected
    "#);
    assert_snapshot!(node_faults(r#"
        (name: "a", op: Conv(out: 4000000000000000, kernel: 8), inputs: ["x"]),
        (name: "b", op: Conv(out: 70000000000000000, kernel: 8), inputs: ["x"]),
        (name: "c", op: Conv(out: 70000000000000000, kernel: 8), inputs: ["x"]),"#), @r"
    1:1: the multiply-accumulates of all nodes together do not fit 64 bits
    ");
}

#[test]
fn a_network_needs_nodes() {
    assert_snapshot!(faults("// nothing\n Network(name: \"empty\", inputs: {}, nodes: [])"), @r"2:2: the network has no nodes; at least one is expected");
    assert_snapshot!(faults(""), @r"1:1: Expected opening `(` for struct `Network`");
}

#[test]
fn a_name_is_used_once() {
    assert_snapshot!(node_faults(r#"
        (name: "a", op: Relu),
        (name: "a", op: Relu),
        (name: "x", op: Relu),"#), @r#"
    7:16: "a": the name is used twice
    8:16: "x": the name is used twice
    "#);
    assert_snapshot!(
        faults("Network(name: \"n\", inputs: {\n \"x\": [1],\n \"x\": [2],\n}, nodes: [(name: \"r\", op: Relu)])"),
        @r#"3:2: "x": the name is used twice"#
    );
}

#[test]
fn a_circle_is_shown_once_with_its_nodes() {
    assert_snapshot!(node_faults(r#"
        (name: "start", op: Relu, inputs: ["x"]),
        (name: "a", op: Add, inputs: ["start", "c"]),
        (name: "b", op: Relu, inputs: ["a"]),
        (name: "c", op: Relu, inputs: ["b"]),
        (name: "behind", op: Relu, inputs: ["c"]),
        (name: "self", op: Relu, inputs: ["self"]),"#), @r#"
    7:16: "a": the nodes read each other in a circle: "a" reads "c" reads "b" reads "a"
    11:16: "self": the nodes read each other in a circle: "self" reads "self"
    "#);
}

#[test]
fn positions_survive_comments_and_odd_strings() {
    let text = "Network(\n    name: \"n\", // name: \"no\"\n    /* nodes: [(name: \"no\")] */\n    \
                inputs: { r#\"a \"quoted\" x\"#: [1, 2], \"ü\\\"\": [0] },\n    \
                nodes: [(op: Relu, name: \"1\"), ( name : \"äö\", op: Linear(out: 0), inputs: [\"1\"])],\n)";
    assert_snapshot!(faults(text), @r#"
    4:42: "ü\"": the shape 0 has a 0; at least 1 is expected
    5:45: "äö": out is 0; at least 1 is expected
    "#);
}

#[test]
fn nodes_may_stand_before_what_they_read() {
    let network = Network::from_ron(&network(
        r#"(name: "b", op: Relu, inputs: ["a"]), (name: "a", op: Conv(out: 2, kernel: 1), inputs: ["x"]),"#,
    ))
    .expect("valid");
    let names: Vec<_> = network.nodes().iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn short_forms_mean_what_they_say() {
    let network = Network::from_ron(&network(
        r#"(name: "a", op: Conv(out: 2, kernel: (3, 1), stride: 2, pad: (top: 1, left: 2))),
           (name: "b", op: MaxPool(kernel: 2, pad: (0, 1)), inputs: ["x"]),"#,
    ))
    .expect("valid");
    let windows: Vec<_> = network.nodes().iter().filter_map(|node| node.op.window()).collect();
    assert_eq!(
        (windows[0].kernel.0, windows[0].kernel.1, windows[0].stride.0),
        (3, 1, 2)
    );
    let pads: Vec<_> = windows.iter().map(|window| window.pad).collect();
    let pad = |top, bottom, left, right| Padding {
        top,
        bottom,
        left,
        right,
    };
    assert_eq!(pads, [pad(1, 0, 2, 0), pad(0, 0, 1, 1)]);
    assert_eq!(network.shape("a"), Some(&[1, 2, 4, 5][..]));
    assert_eq!(network.shape("b"), Some(&[1, 4, 7, 9][..]));
}

#[test]
fn a_pool_rounds_up_only_for_windows_that_start_in_the_input() {
    let shape = |op: &str| {
        let network = Network::from_ron(&network(&format!(r#"(name: "a", op: {op}),"#))).expect("valid");
        network.shape("a").expect("known").to_vec()
    };
    assert_eq!(shape("MaxPool(kernel: 3, stride: 2)"), [1, 4, 3, 3]);
    assert_eq!(shape("MaxPool(kernel: 3, stride: 2, ceil: true)"), [1, 4, 4, 4]);
    assert_eq!(shape("MaxPool(kernel: 9, stride: 2, ceil: true)"), [1, 4, 1, 1]);
    // The fourth window would start at row 8 + 1 of 8 rows and a border of 1.
    assert_eq!(shape("MaxPool(kernel: 2, stride: 3, pad: 1)"), [1, 4, 3, 3]);
    assert_eq!(shape("MaxPool(kernel: 2, stride: 3, pad: 1, ceil: true)"), [1, 4, 3, 3]);
}

#[test]
fn operators_without_multiplications_stay_as_nodes() {
    let network = bundled::load("alexnet").expect("bundled");
    let pool = network
        .nodes()
        .iter()
        .find(|node| node.name == "pool1")
        .expect("a node");
    assert!(matches!(pool.op, Op::MaxPool(_)) && !pool.op.multiplies());
    let window = pool.op.window().expect("a window");
    assert_eq!(
        (window.kernel.0, window.stride.0, &pool.shape[..]),
        (3, 2, &[1, 64, 27, 27][..])
    );
    assert_eq!(pool.inputs, ["relu1"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever happens to a text, it is a network or it has faults.
    #[test]
    fn a_damaged_text_is_an_error_and_no_panic(
        which in 0_usize..16, at in any::<prop::sample::Index>(), length in 0_usize..12, with in "[0-9a-z():,\\[\\]\"-]{0,6}",
    ) {
        let name = bundled::names()[which % bundled::names().len()];
        // The head of the text has all there is to damage, and reads fast.
        let mut text: String = bundled::text(name).expect("bundled").chars().take(3000).collect();
        if let Some(end) = text.rfind("),\n") {
            text.truncate(end + 3);
        }
        text.push_str("    ],\n)\n");
        let boundaries: Vec<usize> = text.char_indices().map(|(i, _)| i).collect();
        let from = at.index(boundaries.len());
        let to = (from + length).min(boundaries.len() - 1);
        text.replace_range(boundaries[from]..boundaries[to].max(boundaries[from]), &with);
        if let Err(errors) = Network::from_ron(&text) {
            prop_assert!(!errors.as_slice().is_empty());
            prop_assert!(errors.into_iter().all(|error| error.position.is_some()));
        }
    }
}

#[test]
fn a_recurrent_product_counts_once_per_time_step() {
    let network = Network::from_ron(
        r#"Network(name: "n", inputs: { "words": [25, 1, 32] }, nodes: [(name: "lstm", op: Lstm(hidden: 32, layers: 2))])"#,
    )
    .expect("valid");
    let distinct = network.distinct();
    let counts: Vec<_> = distinct
        .iter()
        .map(|layer| (layer.name.as_str(), layer.count))
        .collect();
    assert_eq!(counts, [("lstm.layer0.input", 2), ("lstm.layer0.recurrent", 50)]);
    assert_eq!(distinct[1].names, ["lstm.layer0.recurrent", "lstm.layer1.recurrent"]);
    assert_eq!(network.macs(), 2 * 25 * 128 * (32 + 32));

    let batched = network.scaled(Scale {
        divide_channels: 1,
        batch: Some(8),
    });
    assert_eq!(batched.expect("scales").inputs()[0].shape, [25, 8, 32]);
}

#[test]
fn scaled_groups_divide_the_scaled_channels() {
    let network = Network::from_ron(&network(
        r#"(name: "a", op: Conv(out: 12, kernel: 1)), (name: "b", op: Conv(out: 16, kernel: 1, groups: 4)),"#,
    ))
    .expect("valid");
    // 3 channels in, 4 out: no group fits both.
    let scaled = network
        .scaled(Scale {
            divide_channels: 4,
            batch: None,
        })
        .expect("scales");
    assert_eq!(scaled.macs(), 64 * (3 * 4 + 4 * 3));
}
