//! Models that are put together message by message.

use prost::Message;

use super::proto::{self, data_type};
use super::{OnnxError, Options, Warning, import};
use crate::network::Network;
use crate::network::op::Op;
use crate::{Dim, Pair};

fn tensor(name: &str, numbers: &[i64]) -> proto::Tensor {
    proto::Tensor {
        dims: vec![numbers.len() as i64],
        data_type: data_type::INT64,
        int64_data: numbers.to_vec(),
        name: name.to_owned(),
        ..proto::Tensor::default()
    }
}

/// A tensor without numbers: they are in another file.
fn weights(name: &str, dims: &[i64]) -> proto::Tensor {
    proto::Tensor {
        dims: dims.to_vec(),
        data_type: data_type::FLOAT,
        name: name.to_owned(),
        ..proto::Tensor::default()
    }
}

fn node(op: &str, inputs: &[&str], outputs: &[&str], attributes: &[(&str, &[i64])]) -> proto::Node {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    proto::Node {
        input: owned(inputs),
        output: owned(outputs),
        op_type: op.to_owned(),
        attribute: attributes
            .iter()
            .map(|&(name, numbers)| proto::Attribute {
                name: name.to_owned(),
                i: numbers.first().copied().unwrap_or_default(),
                ints: numbers.to_vec(),
                ..proto::Attribute::default()
            })
            .collect(),
        ..proto::Node::default()
    }
}

/// A declared value; a size below 1 is a symbol.
fn value(name: &str, sizes: &[i64]) -> proto::ValueInfo {
    let dim = sizes
        .iter()
        .map(|&size| proto::Dimension {
            dim_value: (size > 0).then_some(size),
            dim_param: (size <= 0).then(|| format!("d{}", -size)),
        })
        .collect();
    proto::ValueInfo {
        name: name.to_owned(),
        r#type: Some(proto::Type {
            tensor_type: Some(proto::TensorType {
                shape: Some(proto::TensorShape { dim }),
            }),
        }),
    }
}

fn model(graph: proto::Graph) -> Vec<u8> {
    let model = proto::Model {
        graph: Some(graph),
        opset_import: Vec::new(),
    };
    model.encode_to_vec()
}

fn graph(input: &[i64], initializer: Vec<proto::Tensor>, node: Vec<proto::Node>) -> proto::Graph {
    proto::Graph {
        node,
        name: "test".to_owned(),
        initializer,
        input: vec![value("x", input)],
        output: Vec::new(),
        value_info: Vec::new(),
    }
}

fn read(graph: proto::Graph) -> Network {
    let (network, warnings) = import(&model(graph), &Options::default()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(warnings, []);
    network
}

fn message(graph: proto::Graph, options: &Options) -> String {
    import(&model(graph), options)
        .map(|_| ())
        .expect_err("a fault")
        .to_string()
}

#[test]
fn quantised_operators_are_their_plain_shapes() {
    let plain = graph(
        &[1, 4, 8, 8],
        vec![weights("w", &[6, 4, 3, 3])],
        vec![node("Conv", &["x", "w"], &["y"], &[("pads", &[1, 1, 1, 1])])],
    );
    let quantised = graph(
        &[1, 4, 8, 8],
        vec![weights("w", &[6, 4, 3, 3]), weights("s", &[]), weights("z", &[])],
        vec![node(
            "QLinearConv",
            &["x", "s", "z", "w", "s", "z", "s", "z"],
            &["y"],
            &[("pads", &[1, 1, 1, 1])],
        )],
    );
    let integer = graph(
        &[1, 4, 8, 8],
        vec![weights("w", &[6, 4, 3, 3])],
        vec![
            node("DynamicQuantizeLinear", &["x"], &["q", "s", "z"], &[]),
            node("ConvInteger", &["q", "w", "z"], &["y"], &[("pads", &[1, 1, 1, 1])]),
        ],
    );
    let problems = |graph| {
        read(graph)
            .layers()
            .iter()
            .map(|layer| layer.problem.clone())
            .collect::<Vec<_>>()
    };
    let expected = problems(plain);
    assert_eq!(expected[0].macs(), 6 * 4 * 9 * 64);
    assert_eq!(problems(quantised), expected);
    assert_eq!(problems(integer), expected);
}

#[test]
fn matrix_products_with_constants_are_fully_connected_layers() {
    for op in ["MatMul", "MatMulInteger"] {
        let network = read(graph(
            &[2, 5, 8],
            vec![weights("w", &[8, 3])],
            vec![node(op, &["x", "w"], &["y"], &[])],
        ));
        assert_eq!(network.shape("y"), Some(&[2, 5, 3][..]));
        let bounds = network.layers()[0].problem.bounds;
        assert_eq!([Dim::N, Dim::K, Dim::C].map(|dim| bounds[dim]), [10, 3, 8]);
    }
}

#[test]
fn weights_that_are_computed_from_constants_have_their_shape() {
    // A weight matrix is stored transposed, dequantised and turned around before its use.
    let network = read(graph(
        &[4, 8],
        vec![weights("w", &[3, 8]), weights("s", &[])],
        vec![
            node("DequantizeLinear", &["w", "s"], &["d"], &[]),
            node("Transpose", &["d"], &["t"], &[("perm", &[1, 0])]),
            node("MatMul", &["x", "t"], &["y"], &[]),
        ],
    ));
    assert_eq!(network.nodes().len(), 1);
    assert_eq!(network.macs(), 4 * 8 * 3);
}

#[test]
fn a_reshape_by_a_computed_shape_is_followed() {
    // The flattening of old exporters: [batch of x, −1].
    let network = read(graph(
        &[2, 4, 3, 3],
        vec![tensor("zero", &[0]), tensor("rest", &[-1]), weights("w", &[36, 5])],
        vec![
            node("Shape", &["x"], &["s"], &[]),
            node("Gather", &["s", "zero"], &["n"], &[]),
            node("Concat", &["n", "rest"], &["t"], &[("axis", &[0])]),
            node("Reshape", &["x", "t"], &["f"], &[]),
            node("Gemm", &["f", "w"], &["y"], &[]),
        ],
    ));
    assert_eq!(network.shape("f"), Some(&[2, 36][..]));
    assert_eq!(network.shape("y"), Some(&[2, 5][..]));
    // It stays open to another batch.
    let scale = crate::Scale {
        divide_channels: 1,
        batch: Some(7),
    };
    assert_eq!(network.scaled(scale).expect("scales").shape("y"), Some(&[7, 5][..]));
}

#[test]
fn same_padding_is_made_explicit() {
    let conv = |mode: &str| {
        let mut conv = node("Conv", &["x", "w"], &["y"], &[("strides", &[2, 2])]);
        conv.attribute.push(proto::Attribute {
            name: "auto_pad".to_owned(),
            s: mode.as_bytes().to_vec(),
            ..proto::Attribute::default()
        });
        let network = read(graph(&[1, 1, 8, 8], vec![weights("w", &[1, 1, 3, 3])], vec![conv]));
        let Op::Conv(conv) = &network.nodes()[0].op else {
            panic!("a convolution")
        };
        (conv.pad.top, conv.pad.bottom, network.nodes()[0].shape.clone())
    };
    assert_eq!(conv("SAME_UPPER"), (0, 1, vec![1, 1, 4, 4]));
    assert_eq!(conv("SAME_LOWER"), (1, 0, vec![1, 1, 4, 4]));
    assert_eq!(conv("VALID"), (0, 0, vec![1, 1, 3, 3]));
}

#[test]
fn a_split_is_a_slice_per_output() {
    let network = read(graph(
        &[1, 6, 2, 2],
        vec![tensor("parts", &[2, 4])],
        vec![
            node("Split", &["x", "parts"], &["a", "b"], &[("axis", &[1])]),
            node("Concat", &["b", "a"], &["y"], &[("axis", &[1])]),
        ],
    ));
    let shapes: Vec<_> = network.nodes().iter().map(|node| node.shape[1]).collect();
    assert_eq!(shapes, [2, 4, 6]);
}

#[test]
fn windows_of_pools_are_kept() {
    let network = read(graph(
        &[1, 6, 9, 9],
        Vec::new(),
        vec![node(
            "MaxPool",
            &["x"],
            &["y"],
            &[("kernel_shape", &[3, 3]), ("strides", &[2, 2])],
        )],
    ));
    let window = network.nodes()[0].op.window().expect("a window");
    assert_eq!((window.kernel, window.stride), (Pair(3, 3), Pair(2, 2)));
    assert_eq!(network.nodes()[0].shape, [1, 6, 4, 4]);
}

/// An unsupported operator between two convolutions.
fn with_unknown() -> proto::Graph {
    graph(
        &[1, 4, 8, 8],
        vec![weights("w", &[4, 4, 1, 1])],
        vec![
            node("Conv", &["x", "w"], &["a"], &[]),
            node("Frobnicate", &["a"], &["b"], &[]),
            node("Relu", &["b"], &["c"], &[]),
            node("Conv", &["c", "w"], &["y"], &[]),
            node("Conv", &["y", "w"], &["z"], &[]),
        ],
    )
}

#[test]
fn an_unknown_operator_before_multiplications_is_an_error_that_names_it_once() {
    assert_eq!(
        message(with_unknown(), &Options::default()),
        "\"y\": Conv: the shape of its input \"c\" is not known, because operator Frobnicate is not supported"
    );
}

#[test]
fn an_unknown_operator_with_a_declared_shape_is_a_warning() {
    let mut graph = with_unknown();
    graph.value_info.push(value("b", &[1, 4, 8, 8]));
    let (network, warnings) = import(&model(graph), &Options::default()).expect("imports");
    assert_eq!(network.layers().len(), 3);
    assert_eq!(warnings, [Warning::Unsupported(vec![("Frobnicate".to_owned(), 1)])]);
    assert_eq!(
        warnings[0].to_string(),
        "operators that are not modelled: Frobnicate (1×)"
    );
}

#[test]
fn what_stands_behind_an_unknown_operator_is_left_out_and_said() {
    let mut graph = with_unknown();
    graph.node.truncate(3);
    let (network, warnings) = import(&model(graph), &Options::default()).expect("imports");
    assert_eq!(network.nodes().len(), 1);
    let unsupported = Warning::Unsupported(vec![("Frobnicate".to_owned(), 1)]);
    let left_out = Warning::LeftOut(vec!["b".to_owned(), "c".to_owned()]);
    assert_eq!(warnings, [unsupported, left_out]);
}

#[test]
fn open_sizes_need_a_shape() {
    let graph = || {
        graph(
            &[0, 3, -1, -2],
            vec![weights("w", &[4, 3, 1, 1])],
            vec![node("Conv", &["x", "w"], &["y"], &[])],
        )
    };
    assert_eq!(
        message(graph(), &Options::default()),
        "\"x\": the input is declared with d0×3×d1×d2; its shape has to be given"
    );
    let shape = |sizes: &[u64]| Options {
        input_shape: Some(sizes.to_vec()),
    };
    assert_eq!(
        message(graph(), &shape(&[1, 4, 8, 8])),
        "\"x\": the input is declared with d0×3×d1×d2; the given shape 1×4×8×8 does not fit it"
    );
    let (network, _) = import(&model(graph()), &shape(&[2, 3, 5, 7])).expect("imports");
    assert_eq!(network.shape("y"), Some(&[2, 4, 5, 7][..]));
}

#[test]
fn a_shape_that_contradicts_the_file_is_an_error() {
    let options = Options {
        input_shape: Some(vec![1, 3, 9, 9]),
    };
    let graph = graph(&[1, 3, 8, 8], Vec::new(), vec![node("Relu", &["x"], &["y"], &[])]);
    assert_eq!(
        message(graph, &options),
        "the given shape 1×3×9×9 fits no input; declared are \"x\" with 1×3×8×8"
    );
}

#[test]
fn every_node_that_does_not_fit_is_reported() {
    let graph = graph(
        &[1, 4, 8, 8],
        vec![weights("w", &[4, 5, 3, 3])],
        vec![
            node("Conv", &["x", "w"], &["a"], &[]),
            node("MaxPool", &["x"], &["b"], &[]),
            node("Relu", &["nothing"], &["c"], &[]),
            node("Conv", &["a", "w"], &["d"], &[]),
            node("Gemm", &["x", "w"], &["e"], &[]),
        ],
    );
    assert_eq!(
        message(graph, &Options::default()).lines().collect::<Vec<_>>(),
        [
            "\"a\": Conv: the filter 4×5×3×3 with 1 group(s) does not fit an input of 1×4×8×8",
            "\"b\": MaxPool: kernel_shape is missing",
            "\"c\": Relu: reads \"nothing\", which no node before it writes",
            "\"e\": Gemm: the operands are 1×4×8×8 and 4×5×3×3; two axes each are expected",
        ]
    );
}

#[test]
fn a_file_without_a_graph_is_no_model() {
    let error = import(&[], &Options::default()).expect_err("empty");
    assert_eq!(
        error.to_string(),
        "byte 0: the file ends without a graph; an ONNX model is expected"
    );
    assert!(matches!(
        import(b"Network(name: \"x\")", &Options::default()),
        Err(OnnxError::Malformed { .. })
    ));
}

#[test]
fn an_lstm_is_read_with_its_outputs() {
    let network = read(graph(
        &[7, 2, 5],
        vec![weights("w", &[2, 12, 5]), weights("r", &[2, 12, 3])],
        vec![
            node("LSTM", &["x", "w", "r"], &["y", "h", "c"], &[("hidden_size", &[3])]),
            node("Add", &["h", "c"], &["sum"], &[]),
            node("Relu", &["y"], &["out"], &[]),
        ],
    ));
    assert_eq!(network.shape("out"), Some(&[7, 2, 2, 3][..]));
    assert_eq!(network.shape("sum"), Some(&[2, 2, 3][..]));
    assert_eq!(network.macs(), 2 * 7 * 2 * 12 * (5 + 3));
}

#[test]
fn a_transposed_convolution_can_be_asked_for_its_output() {
    let network = read(graph(
        &[1, 2, 5, 5],
        vec![weights("w", &[2, 3, 4, 4])],
        vec![node(
            "ConvTranspose",
            &["x", "w"],
            &["y"],
            &[("strides", &[2, 2]), ("output_shape", &[10, 10])],
        )],
    ));
    assert_eq!(network.shape("y"), Some(&[1, 3, 10, 10][..]));
    assert_eq!(network.layers().len(), 4);
    assert_eq!(network.macs(), 2 * 3 * 10 * 10 * 4);
}
