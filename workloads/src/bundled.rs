//! The networks that come with the crate. Each file in `networks/` names its source and its variant.

use std::sync::LazyLock;

use crate::Network;

/// Name and text of every bundled network, in the order in which they are listed.
const TEXTS: &[(&str, &str)] = &[
    ("alexnet", include_str!("../networks/alexnet.ron")),
    ("alexnet_grouped", include_str!("../networks/alexnet_grouped.ron")),
    ("bert_base", include_str!("../networks/bert_base.ron")),
    ("cnv", include_str!("../networks/cnv.ron")),
    ("deepbench", include_str!("../networks/deepbench.ron")),
    ("densenet121", include_str!("../networks/densenet121.ron")),
    ("googlenet", include_str!("../networks/googlenet.ron")),
    ("lenet", include_str!("../networks/lenet.ron")),
    ("lfc", include_str!("../networks/lfc.ron")),
    ("mobilenet_v1", include_str!("../networks/mobilenet_v1.ron")),
    ("mobilenet_v1_samo", include_str!("../networks/mobilenet_v1_samo.ron")),
    ("mobilenet_v2", include_str!("../networks/mobilenet_v2.ron")),
    ("mpcnn", include_str!("../networks/mpcnn.ron")),
    ("resnet18", include_str!("../networks/resnet18.ron")),
    ("resnet50", include_str!("../networks/resnet50.ron")),
    ("resnet50_v1", include_str!("../networks/resnet50_v1.ron")),
    ("resnext50_32x4d", include_str!("../networks/resnext50_32x4d.ron")),
    ("sfc", include_str!("../networks/sfc.ron")),
    ("simple", include_str!("../networks/simple.ron")),
    ("squeezenet1_0", include_str!("../networks/squeezenet1_0.ron")),
    ("squeezenet1_1", include_str!("../networks/squeezenet1_1.ron")),
    ("tfc", include_str!("../networks/tfc.ron")),
    ("unet", include_str!("../networks/unet.ron")),
    ("vgg11", include_str!("../networks/vgg11.ron")),
    ("vgg16", include_str!("../networks/vgg16.ron")),
];

/// The names of all bundled networks.
///
/// ```
/// assert!(cyclonest_workloads::bundled::names().contains(&"resnet50"));
/// ```
#[must_use]
pub fn names() -> &'static [&'static str] {
    static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| TEXTS.iter().map(|&(name, _)| name).collect());
    &NAMES
}

/// The RON text of a bundled network; `None` if there is none of that name.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    TEXTS.iter().find(|&&(known, _)| known == name).map(|&(_, text)| text)
}

/// A bundled network; `None` if there is none of that name.
///
/// ```
/// let network = cyclonest_workloads::bundled::load("alexnet").expect("bundled");
/// assert_eq!(network.macs(), 714_188_480);
/// ```
///
/// # Panics
/// If a bundled text is no valid network; the tests load every one.
#[must_use]
pub fn load(name: &str) -> Option<Network> {
    let network = Network::from_ron(text(name)?);
    Some(network.unwrap_or_else(|errors| panic!("bundled network {name} is broken:\n{errors}")))
}
