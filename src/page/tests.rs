//! The page holds what the result says, and nothing from elsewhere.

use std::path::Path;

use super::{Page, Subject, html};
use crate::report::Report;

fn subject(scheduler: &str) -> Subject {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("result.json");
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs");
    let args = [
        "cyclonest".to_string(),
        "simulate".into(),
        format!("--arch={}", manifest.join("pair.ron").display()),
        format!("--network={}", manifest.join("tiny.ron").display()),
        format!("--scheduler={scheduler}"),
        "--format=json".into(),
        format!("--output={}", file.display()),
    ];
    let cli = <crate::cli::Cli as clap::Parser>::try_parse_from(args).expect("arguments");
    assert_eq!(
        format!("{:?}", cli.run()),
        format!("{:?}", std::process::ExitCode::SUCCESS)
    );
    let bytes = std::fs::read(&file).expect("written");
    let result: Report = crate::results::simulated(&file).expect("readable");
    Subject {
        file: "a<b>.json".into(),
        bytes,
        arch: crate::inputs::arch(&manifest.join("pair.ron").display().to_string()).expect("readable"),
        result,
    }
}

#[test]
fn a_page_has_every_layer_its_nest_and_its_provenance_and_asks_for_nothing() {
    let subject = subject("greedy");
    let page = Page::new(std::slice::from_ref(&subject), Path::new("out.html")).expect("a page");
    assert_eq!(page.missing, Vec::<String>::new());
    let html = &page.html;
    for layer in &subject.result.layers {
        assert!(html.contains(&format!("<summary>{}</summary>", layer.name)));
        assert!(html.contains(&format!("data-value=\"{}\"", layer.cycles)));
    }
    assert_eq!(html.matches("<svg class=\"figure\"").count(), 3);
    assert!(html.contains("a&lt;b&gt;.json") && !html.contains("a<b>"));
    assert!(html.contains(&crate::provenance::hash(&subject.bytes)));
    assert_eq!(subject.result.provenance.inputs.len(), 2);
    for input in &subject.result.provenance.inputs {
        assert!(html.contains(&input.sha256), "{}", input.name);
    }
    assert!(html.contains(&html::escape(&subject.result.provenance.command())));
    // The only addresses are the name space of SVG and the empty icon.
    let outside = html.replace("http://www.w3.org/2000/svg", "");
    for address in ["http:", "https:", "//", "@import", "url("] {
        let found = outside.match_indices(address).filter(|(at, _)| {
            // Comments of the script.
            !outside[..*at].ends_with('\n')
        });
        let found: Vec<&str> = found
            .map(|(at, _)| &outside[at..(at + 40).min(outside.len())])
            .collect();
        assert!(found.is_empty(), "{address}: {found:?}");
    }
    assert_eq!(html.matches("<script").count(), 1);
}

#[test]
fn two_results_are_compared_and_the_page_is_the_same_every_time() {
    let subjects = [subject("greedy"), subject("random")];
    let page = Page::new(&subjects, Path::new("out.html")).expect("a page");
    assert!(page.html.contains("<h2>Comparison</h2>"));
    assert_eq!(page.html.matches("<svg class=\"figure\"").count(), 8);
    assert_eq!(
        page.html,
        Page::new(&subjects, Path::new("out.html")).expect("a page").html
    );
}
