//! A page about results: one file that needs nothing else.

mod html;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::path::Path;

use cyclonest_arch::Accelerator;
use cyclonest_plots::{
    BarOptions, BarRow, Figure, PlotError, RoofOptions, StackOptions, Style, bars, layers, roofline, stacked,
};

use crate::commands::plot::rows::{cycle_rows, energy_rows, roof_row};
use crate::diagram;
use crate::faults::Faults;
use crate::provenance::hash;
use crate::report::{LayerReport, Report, thousands};
use html::{Cell, escape, table};

/// A result, its file, and the machine that it is about.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) file: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) result: Report,
    pub(crate) arch: Accelerator,
}

impl Subject {
    fn title(&self) -> String {
        let r = &self.result;
        let divided = match r.channels_divided_by {
            1 => String::new(),
            n => format!(", channels ÷ {n}"),
        };
        format!("{}{divided} on {}, mapped by {}", r.network, r.arch, r.scheduler)
    }
}

/// A written page.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) html: String,
    /// Figures that the data does not allow, and why.
    pub(crate) missing: Vec<String>,
}

impl Page {
    /// A page about `subjects`. `output` is named in the command at its end.
    pub(crate) fn new(subjects: &[Subject], output: &Path) -> Result<Self, Faults> {
        let mut page = Page {
            html: String::new(),
            missing: Vec::new(),
        };
        let heading = match subjects {
            [one] => one.title(),
            many => format!("{} results", many.len()),
        };
        let _ = write!(
            page.html,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n\
             <title>{0}</title>\n<style>\n{1}</style>\n</head>\n<body>\n<header><h1>{0}</h1>\
             <button id=\"theme\" type=\"button\">light / dark</button></header>\n<main>\n",
            escape(&heading),
            include_str!("style.css")
        );
        if subjects.len() > 1 {
            page.comparison(subjects);
        }
        for (number, subject) in subjects.iter().enumerate() {
            page.subject(number, subject, subjects.len() > 1);
        }
        page.machines(subjects);
        page.provenance(subjects, output);
        let _ = write!(
            page.html,
            "</main>\n<footer>Written by cyclonest {}. Cycles are cycles of the accelerator's clock; energies are \
             estimates from counts.</footer>\n<script>\n{}</script>\n</body>\n</html>\n",
            env!("CARGO_PKG_VERSION"),
            include_str!("script.js")
        );
        Ok(page)
    }

    fn comparison(&mut self, subjects: &[Subject]) {
        self.html.push_str("<nav>");
        for (number, subject) in subjects.iter().enumerate() {
            let _ = write!(self.html, "<a href=\"#r{number}\">{}</a>", escape(&subject.title()));
        }
        self.html.push_str("</nav>\n<h2>Comparison</h2>\n");
        let base = &subjects[0];
        let rows = subjects.iter().map(|subject| {
            let t = &subject.result.totals;
            let ratio = base.result.totals.cycles as f64 / t.cycles.max(1) as f64;
            vec![
                Cell::text(subject.title()),
                Cell::count(t.cycles),
                Cell::number(t.milliseconds, 4),
                Cell::number(ratio, 3),
                Cell::number(100.0 * t.utilization, 1),
                Cell::number(t.energy_pj / 1e6, 3),
            ]
        });
        let head = [
            "result",
            "cycles",
            "time [ms]",
            "speed-up [×]",
            "utilization [%]",
            "energy [µJ]",
        ];
        self.html.push_str(&table(&head, rows.collect()));
        // Layers that the baseline has too.
        let mut speedups = Vec::new();
        for (number, subject) in subjects.iter().enumerate().skip(1) {
            for layer in &subject.result.layers {
                let same = |other: &&LayerReport| other.name == layer.name && other.macs == layer.macs;
                if let Some(of) = base.result.layers.iter().find(same) {
                    speedups.push(BarRow {
                        group: layer.name.clone(),
                        series: format!("{} #{}", subject.result.scheduler, number + 1),
                        value: of.cycles as f64 / layer.cycles as f64,
                    });
                }
            }
        }
        self.html.push_str("<div class=\"figures\">\n");
        let caption = format!("Speed-up over the first result ({})", base.title());
        let style = Style::default();
        self.figure(&caption, bars(&speedups, &BarOptions::speedup(), &style));
        self.figure(
            "Speed-up by layer, sorted",
            layers(&speedups, &BarOptions::speedup(), &style),
        );
        self.html.push_str("</div>\n");
    }

    fn subject(&mut self, number: usize, subject: &Subject, several: bool) {
        let r = &subject.result;
        let heading = if several {
            format!("{}. {}", number + 1, subject.title())
        } else {
            "Summary".to_string()
        };
        let _ = writeln!(self.html, "<h2 id=\"r{number}\">{}</h2>", escape(&heading));
        if !r.about.is_empty() {
            let _ = writeln!(self.html, "<p class=\"about\">{}</p>", escape(&r.about));
        }
        let busy = r.totals.busy_cycles as f64 / (r.pes as f64 * r.totals.cycles.max(1) as f64);
        let tiles = [
            ("cycles", thousands(r.totals.cycles)),
            ("milliseconds", format!("{:.4}", r.totals.milliseconds)),
            (
                "utilization of the lanes",
                format!("{:.1} %", 100.0 * r.totals.utilization),
            ),
            ("PEs computing", format!("{:.1} %", 100.0 * busy)),
            ("energy", format!("{:.3} µJ", r.totals.energy_pj / 1e6)),
            ("multiply-accumulates", thousands(r.totals.macs)),
            ("layers, distinct", format!("{}, {}", r.totals.layers, r.layers.len())),
            (
                "PEs, lanes, clock",
                format!("{}, {}, {} MHz", thousands(r.pes), thousands(r.lanes), r.clock_mhz),
            ),
        ];
        self.html.push_str("<div class=\"tiles\">");
        for (what, value) in tiles {
            let _ = write!(
                self.html,
                "<div class=\"tile\"><b>{}</b><span>{}</span></div>",
                escape(&value),
                escape(what)
            );
        }
        self.html.push_str("</div>\n");
        for failed in &r.failed {
            let _ = writeln!(
                self.html,
                "<p class=\"failed\">no result: {} (×{}): {}</p>",
                escape(&failed.name),
                failed.count,
                escape(&failed.error)
            );
        }
        self.figures(subject);
        self.layer_table(r);
        self.nests(r);
    }

    fn figures(&mut self, subject: &Subject) {
        let (r, arch) = (&subject.result, &subject.arch);
        let style = Style::default();
        self.html.push_str("<h3>Figures</h3>\n<div class=\"figures\">\n");
        let stack = |label: &str, shares| StackOptions {
            y_label: label.to_string(),
            x_label: String::new(),
            shares,
        };
        let cycles: Vec<_> = r
            .layers
            .iter()
            .flat_map(|layer| cycle_rows(layer, &layer.name))
            .collect();
        let options = stack("share of PE-cycles [%]", true);
        self.figure(
            "What the PEs do: computing, or waiting by reason",
            stacked(&cycles, &options, &style),
        );
        let energy: Result<Vec<_>, String> = r
            .layers
            .iter()
            .map(|layer| energy_rows(arch, layer, &layer.name))
            .collect();
        match energy {
            Ok(rows) => {
                let rows: Vec<_> = rows.into_iter().flatten().collect();
                let options = stack("energy [pJ]", false);
                self.figure(
                    "Energy by level and tensor, layers × their count",
                    stacked(&rows, &options, &style),
                );
            }
            Err(why) => self.no_figure("Energy by level and tensor", &why),
        }
        let roof: Result<Vec<_>, String> = r.layers.iter().map(|layer| roof_row(arch, layer, &r.arch)).collect();
        match roof {
            Ok(rows) => self.figure("Roofline", roofline(&rows, &RoofOptions::default(), &style)),
            Err(why) => self.no_figure("Roofline", &why),
        }
        self.html.push_str("</div>\n");
    }

    fn figure(&mut self, caption: &str, drawn: Result<Figure, PlotError>) {
        match drawn {
            Ok(figure) => {
                let _ = writeln!(
                    self.html,
                    "<figure><figcaption>{}</figcaption>{}</figure>",
                    escape(caption),
                    html::inline(figure.svg(), caption)
                );
            }
            Err(why) => self.no_figure(caption, &why.to_string()),
        }
    }

    fn no_figure(&mut self, caption: &str, why: &str) {
        let _ = writeln!(
            self.html,
            "<figure><figcaption>{}</figcaption><p>Not drawn: {}</p></figure>",
            escape(caption),
            escape(why)
        );
        self.missing.push(format!("{caption}: {why}"));
    }

    fn layer_table(&mut self, r: &Report) {
        let head = [
            "layer",
            "count",
            "MACs",
            "cycles",
            "utilization [%]",
            "computing [%]",
            "largest stall",
            "energy [µJ]",
            "values",
            "mapped by",
        ];
        let rows = r.layers.iter().map(|layer| {
            let all = r.pes as f64 * layer.cycles.max(1) as f64;
            // The first by name among equals, as in the table of `simulate`.
            let stall = layer.stall_cycles.iter().rev().max_by_key(|(_, cycles)| **cycles);
            let stall = stall.filter(|(_, cycles)| **cycles > 0);
            let stall = stall.map_or_else(String::new, |(reason, cycles)| {
                format!("{reason} {:.1} %", 100.0 * *cycles as f64 / all)
            });
            vec![
                Cell::text(&layer.name),
                Cell::count(layer.count),
                Cell::count(layer.macs),
                Cell::count(layer.cycles),
                Cell::number(100.0 * layer.utilization, 1),
                Cell::number(100.0 * layer.busy_cycles as f64 / all, 1),
                Cell::text(stall),
                Cell::number(layer.energy_pj / 1e6, 3),
                Cell::text(&layer.values),
                Cell::text(&layer.mapped_by),
            ]
        });
        self.html.push_str("<h3>Layers</h3>\n");
        self.html.push_str(&table(&head, rows.collect()));
    }

    fn nests(&mut self, r: &Report) {
        self.html.push_str("<h3>Loop nests</h3>\n");
        for layer in &r.layers {
            let nest = layer.mapping.nest(None);
            let _ = writeln!(
                self.html,
                "<details><summary>{}</summary><pre>{}</pre></details>",
                escape(&layer.name),
                escape(nest.trim_end())
            );
        }
    }

    fn machines(&mut self, subjects: &[Subject]) {
        self.html.push_str("<h2>Accelerator</h2>\n");
        let mut drawn: Vec<&Accelerator> = Vec::new();
        for Subject { arch, .. } in subjects {
            if drawn.contains(&arch) {
                continue;
            }
            drawn.push(arch);
            let _ = write!(self.html, "<h3>{}</h3>\n<div class=\"machine\">\n", escape(&arch.name));
            for line in diagram::levels(arch) {
                let _ = writeln!(
                    self.html,
                    "<div class=\"level\"><b>{}</b><ul>{}</ul></div>",
                    escape(&line.name),
                    line.banks
                        .iter()
                        .map(|bank| format!("<li>{}</li>", escape(bank)))
                        .collect::<String>()
                );
                if let Some(network) = line.network {
                    let _ = writeln!(self.html, "<div class=\"wire\">{}</div>", escape(&network));
                }
            }
            self.html.push_str("</div>\n");
            let _ = writeln!(
                self.html,
                "<details><summary>the whole description, with the sources of its constants</summary><pre>{}</pre></details>",
                escape(diagram::draw(arch).trim_end())
            );
        }
    }

    fn provenance(&mut self, subjects: &[Subject], output: &Path) {
        self.html.push_str("<h2>Provenance</h2>\n");
        let rows = subjects.iter().map(|subject| {
            let r = &subject.result;
            let inputs = r.provenance.inputs.iter();
            let inputs: Vec<String> = inputs.map(|input| format!("{} {}", input.name, input.sha256)).collect();
            vec![
                Cell::text(&subject.file),
                Cell::text(hash(&subject.bytes)),
                Cell::text(&r.version),
                Cell::count(r.seed),
                Cell::text(match r.provenance.arguments.is_empty() {
                    true => "not recorded".to_string(),
                    false => r.provenance.command(),
                }),
                Cell::text(inputs.join(", ")),
            ]
        });
        let head = [
            "file",
            "SHA-256",
            "version",
            "seed",
            "written by",
            "inputs and their SHA-256",
        ];
        self.html.push_str(&table(&head, rows.collect()));
        let files: Vec<&str> = subjects.iter().map(|subject| subject.file.as_str()).collect();
        let _ = writeln!(
            self.html,
            "<p>This page: <code>cyclonest report {} -o {}</code></p>",
            escape(&files.join(" ")),
            escape(&output.display().to_string())
        );
        let mut assumed: Vec<(String, String)> = Vec::new();
        for a in subjects.iter().flat_map(|subject| &subject.result.assumed) {
            let pair = (a.constant.clone(), a.why.clone());
            if !assumed.contains(&pair) {
                assumed.push(pair);
            }
        }
        if !assumed.is_empty() {
            self.html
                .push_str("<h3>Constants without a publication behind them</h3>\n");
            let rows = assumed
                .into_iter()
                .map(|(constant, why)| vec![Cell::text(constant), Cell::text(why)]);
            self.html
                .push_str(&table(&["constant", "why this value"], rows.collect()));
        }
    }
}
