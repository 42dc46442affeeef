//! Charts as SVG: bars from zero, the spread of the rounds as a line, one picture for light pages and one for dark ones.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::contestant::{CONTESTANTS, Program};
use super::protocol::Part;
use super::results::{Measurement, Results};
use super::sample::Spread;
use super::table::grouped;

const WIDTH: f64 = 800.0;
/// Where the names end and the bars begin, and where the longest bar ends.
const LEFT: f64 = 190.0;
const RIGHT: f64 = 690.0;
const TOP: f64 = 58.0;
const STEP: f64 = 30.0;
const BAR: f64 = 18.0;

/// The colours of a page.
struct Theme {
    name: &'static str,
    text: &'static str,
    muted: &'static str,
    bar: &'static str,
    ours: &'static str,
}

const THEMES: [Theme; 2] = [
    Theme { name: "light", text: "#1f2328", muted: "#59636e", bar: "#9aa7b4", ours: "#0969da" },
    Theme { name: "dark", text: "#f0f6fc", muted: "#9198a1", bar: "#57606a", ours: "#4493f8" },
];

/// One bar.
struct Bar {
    name: String,
    is_ours: bool,
    spread: Spread,
}

/// Writes the charts of the contest's rates.
pub(super) fn write(results: &Results, folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    for (part, file, title) in [
        (Part::Drain, "drain", "Messages drained per second by one worker process"),
        (Part::EnqueueBulk, "enqueue", "Messages enqueued per second, 1,000 a call"),
    ] {
        for theme in &THEMES {
            let path = folder.join(format!("{file}-{}.svg", theme.name));
            fs::write(path, draw(title, &subtitle(results), &bars(results, part), theme)).expect("written");
        }
    }
}

fn subtitle(results: &Results) -> String {
    let quick = if results.is_quick { "quick run on a busy machine, not a result; " } else { "" };
    let machine = &results.machine;
    format!(
        "{quick}PostgreSQL {}, {} cores, {}; median of {} rounds, line: least to greatest; longer is faster",
        machine.postgres, machine.cores, machine.date, results.rounds
    )
}

/// The peers and ours, the fastest first. The least SQL is not something to choose, so it is left to the table.
fn bars(results: &Results, part: Part) -> Vec<Bar> {
    let mut bars: Vec<Bar> = CONTESTANTS
        .iter()
        .filter(|it| it.program != Program::Floor)
        .filter_map(|it| {
            let spread = results.find(it.name, part, 0.0).and_then(Measurement::rates)?;
            let name = format!("{} ({})", it.name, it.language());
            Some(Bar { name, is_ours: it.program == Program::Ours, spread })
        })
        .collect();
    bars.sort_by(|one, other| other.spread.median.total_cmp(&one.spread.median));
    bars
}

fn draw(title: &str, subtitle: &str, bars: &[Bar], theme: &Theme) -> String {
    let scale = bars.iter().map(|bar| bar.spread.max).fold(f64::MIN_POSITIVE, f64::max);
    let x = |value: f64| LEFT + (RIGHT - LEFT) * value / scale;
    let height = bars.iter().fold(TOP, |height, _| height + STEP) + 8.0;
    let (title, subtitle) = (escaped(title), escaped(subtitle));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" font-family=\"system-ui, sans-serif\">\n\
         <title>{title}</title>\n\
         <text x=\"8\" y=\"22\" font-size=\"17\" font-weight=\"600\" fill=\"{}\">{title}</text>\n\
         <text x=\"8\" y=\"42\" font-size=\"12\" fill=\"{}\">{subtitle}</text>\n",
        theme.text, theme.muted
    );
    let mut y = TOP;
    for bar in bars {
        let Spread { median, min, max } = bar.spread;
        let (colour, weight) = if bar.is_ours { (theme.ours, 600) } else { (theme.bar, 400) };
        let (name, label, middle, base) = (escaped(&bar.name), grouped(median), y + BAR / 2.0, y + 14.0);
        let text = theme.text;
        writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{base:.1}\" font-size=\"13\" font-weight=\"{weight}\" text-anchor=\"end\" fill=\"{text}\">{name}</text>\n\
             <rect x=\"{LEFT:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\" rx=\"2\" fill=\"{colour}\"/>\n\
             <path d=\"M{:.1} {middle:.1}H{:.1}\" stroke=\"{text}\" stroke-width=\"1.5\"/>\n\
             <text x=\"{:.1}\" y=\"{base:.1}\" font-size=\"13\" font-weight=\"{weight}\" fill=\"{text}\">{label}</text>",
            LEFT - 10.0,
            x(median) - LEFT,
            x(min),
            x(max),
            x(max) + 8.0,
        )
        .expect("writing to a string cannot fail");
        y += STEP;
    }
    svg + "</svg>\n"
}

/// Returns text that can be between two tags of XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(name: &str, median: f64) -> Bar {
        let spread = Spread { median, min: median / 2.0, max: median * 2.0 };
        Bar { name: name.into(), is_ours: false, spread }
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(escaped("a < b & \"c\" > d"), "a &lt; b &amp; &quot;c&quot; &gt; d");
        let svg = draw("<t>", "&", &[bar("<b>", 1.0)], &THEMES[0]);
        assert!(svg.contains("&lt;t&gt;") && svg.contains("&lt;b&gt;") && !svg.contains("<b>"), "{svg}");
    }

    #[test]
    fn bars_begin_at_zero_and_keep_their_proportions() {
        let svg = draw("t", "s", &[bar("one", 100.0), bar("half", 50.0)], &THEMES[1]);
        let widths: Vec<&str> = svg
            .match_indices("width=\"")
            .filter_map(|(at, mark)| svg[at + mark.len()..].split('"').next())
            .collect();
        // The longest spread, 200, takes all of the space, so a median of 100 takes half of it.
        assert!(widths.contains(&"250.0") && widths.contains(&"125.0"), "{widths:?}");
        assert_eq!(svg.matches(&format!("<rect x=\"{LEFT:.1}\"")).count(), 2);
        assert_eq!(svg.matches("H690.0").count(), 1, "only the longest spread ends at the edge");
    }

    #[test]
    fn nothing_measured_draws_no_bar() {
        assert!(!draw("t", "s", &[], &THEMES[0]).contains("<rect"));
    }
}
