//! Tables and lists of fields, for a terminal or a pipe.
//!
//! Guarantee: no text of a cell controls the terminal. Columns line up, with wide characters and combining marks too. A
//! table fits the width of the terminal if its columns allow it; without a width, or if it is [`View::wide`], nothing is
//! cut. Nothing here reads a clock or asks for a terminal.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr;

use super::age::{ago, until};
use super::paint::Paint;
use super::visible;
use crate::time::Timestamp;

/// The least width that is left of a column whose texts are cut.
const MIN_CUT_WIDTH: usize = 8;
/// The least width that is left of such a column as long as a spare column can be left out instead.
const READABLE_WIDTH: usize = 24;
/// The least length of an id that is cut. The first twelve digits of a generated id are its millisecond, the first eight
/// only its minute, which it shares with many others that are not in the list.
const MIN_ID_CHARS: usize = 13;
const GAP: &str = "  ";

/// How results are shown.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// The width of the terminal; `None` if the output is not a terminal.
    pub width: Option<usize>,
    /// Whether to show whole texts, whole ids and exact times.
    pub wide: bool,
    /// Whether to show colours.
    pub colours: bool,
    /// The time to which ages are relative.
    pub now: Timestamp,
}

/// A column of a table, or the name of a field.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    head: &'static str,
    kind: Kind,
    /// Whether a narrow terminal may do without it.
    is_spare: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Free,
    Id,
    State,
    Past,
    Next,
}

impl Column {
    const fn new(head: &'static str, kind: Kind) -> Self {
        Self { head, kind, is_spare: false }
    }

    /// Creates a column of short texts, which are never cut.
    pub const fn text(head: &'static str) -> Self {
        Self::new(head, Kind::Text)
    }

    /// Creates a column of texts that are cut if the terminal is too narrow.
    pub const fn free(head: &'static str) -> Self {
        Self::new(head, Kind::Free)
    }

    /// Creates a column of ids. A terminal shows as many digits as tell the rows apart.
    pub const fn id(head: &'static str) -> Self {
        Self::new(head, Kind::Id)
    }

    /// Creates a column of states, which have colours.
    pub const fn state(head: &'static str) -> Self {
        Self::new(head, Kind::State)
    }

    /// Creates a column of past times, shown as ages.
    pub const fn past(head: &'static str) -> Self {
        Self::new(head, Kind::Past)
    }

    /// Creates a column of times to come.
    pub const fn next(head: &'static str) -> Self {
        Self::new(head, Kind::Next)
    }

    /// Lets a narrow terminal do without this column.
    #[must_use]
    pub const fn spare(self) -> Self {
        Self { is_spare: true, ..self }
    }
}

/// Formats a table of texts for any output: nothing is cut, and nothing has a colour.
pub fn table<const N: usize>(head: [&'static str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    View::PLAIN.table(head.map(Column::text), rows)
}

impl View {
    /// No width, and no colours.
    const PLAIN: Self = Self { width: None, wide: true, colours: false, now: Timestamp::EPOCH };

    /// Formats a table with a header.
    pub fn table<const N: usize>(
        &self,
        columns: [Column; N],
        rows: impl IntoIterator<Item = [String; N]>,
    ) -> String {
        let rows: Vec<[String; N]> = rows.into_iter().collect();
        let cells = columns.iter().enumerate().map(|(nth, column)| {
            let cells = rows.iter().filter_map(|row| row.get(nth).map(String::as_str));
            Cells { column: *column, texts: self.texts(*column, &cells.collect::<Vec<_>>()) }
        });
        let cells = match self.width.filter(|_| !self.wide) {
            Some(width) => fitted(cells.collect(), width),
            None => cells.collect(),
        };
        let widths: Vec<usize> = cells.iter().map(Cells::width).collect();
        let mut out = String::new();
        for nth in 0..=rows.len() {
            let mut line = String::new();
            for (cells, width) in cells.iter().zip(&widths) {
                let Some(text) = cells.texts.get(nth) else { continue };
                // Padded by hand: formatting counts characters, some of which are two columns wide, or none.
                let padding = " ".repeat(width.saturating_sub(text.width()));
                let shown = if nth == 0 { text.clone() } else { self.painted(cells.column.kind, text) };
                line.extend([shown.as_str(), &padding, GAP]);
            }
            _ = writeln!(out, "{}", line.trim_end());
        }
        out
    }

    /// Formats one line for each field that is present, its name first. Times are shown both ways.
    pub fn fields(&self, all: impl IntoIterator<Item = (Column, Option<String>)>) -> String {
        let mut out = String::new();
        for (Column { head, kind, .. }, text) in all {
            let Some(text) = text else { continue };
            let shown = match (kind, Timestamp::parse(&text)) {
                (Kind::Past, Some(then)) => format!("{text} ({})", ago(then, self.now)),
                (Kind::Next, Some(then)) => format!("{text} ({})", until(then, self.now)),
                _ => self.painted(kind, &visible(&text)),
            };
            // Writing to a string cannot fail.
            _ = writeln!(out, "{head:<12} {shown}");
        }
        out
    }

    /// Returns a text in the colour of its state, if it is one.
    fn painted(&self, kind: Kind, text: &str) -> String {
        let paint = Paint::of_state(text).filter(|_| self.colours && kind == Kind::State);
        paint.map_or_else(|| text.to_owned(), |paint| paint.on(text))
    }

    /// Returns the header and the texts of a column as they are shown, if there is room.
    fn texts(&self, column: Column, raw: &[&str]) -> Vec<String> {
        let id_chars = match self.width {
            Some(_) if !self.wide => distinct_chars(raw),
            _ => usize::MAX,
        };
        let shown = |text: &&str| match (column.kind, Timestamp::parse(text)) {
            (Kind::Past, Some(then)) if !self.wide => ago(then, self.now),
            (Kind::Next, Some(then)) if !self.wide => until(then, self.now),
            (Kind::Id, _) => visible(&text.chars().take(id_chars).collect::<String>()),
            _ => visible(text),
        };
        std::iter::once(column.head.to_owned()).chain(raw.iter().map(shown)).collect()
    }
}

/// A column with its texts, the header first.
struct Cells {
    column: Column,
    texts: Vec<String>,
}

impl Cells {
    fn width(&self) -> usize {
        self.texts.iter().map(|text| text.width()).max().unwrap_or_default()
    }

    fn is_empty(&self) -> bool {
        self.texts.iter().skip(1).all(String::is_empty)
    }
}

/// Makes a table fit: without empty columns, with cut texts, without its spare columns where too little of a text would be left.
fn fitted(mut all: Vec<Cells>, width: usize) -> Vec<Cells> {
    all.retain(|cells| !cells.is_empty());
    loop {
        let mut widths: Vec<usize> = all.iter().map(Cells::width).collect();
        let gaps = GAP.len() * all.len().saturating_sub(1);
        let mut excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(width);
        let has_spare = all.iter().any(|cells| cells.column.is_spare);
        let min_width = if has_spare { READABLE_WIDTH } else { MIN_CUT_WIDTH };
        // The widest column gives way first.
        while 0 < excess {
            let free = widths.iter_mut().zip(&all).filter(|(_, cells)| cells.column.kind == Kind::Free);
            let widest = free.map(|(width, _)| width).max().filter(|width| min_width < **width);
            let Some(widest) = widest else { break };
            *widest -= 1;
            excess -= 1;
        }
        match all.iter().rposition(|cells| cells.column.is_spare) {
            Some(spare) if 0 < excess => _ = all.remove(spare),
            _ => {
                for (cells, width) in all.iter_mut().zip(widths) {
                    cells.texts.iter_mut().for_each(|text| *text = cut(text, width));
                }
                return all;
            }
        }
    }
}

/// Joins emoji to one, such as a family.
const JOINER: char = '\u{200d}';

/// Cuts a text to a width, with an ellipsis.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    // The longest beginning that leaves room for the ellipsis. A combining mark has no width, so it stays with its
    // letter, and joined emoji stay together.
    let ends = text.char_indices().map(|(start, char)| start + char.len_utf8());
    let fits = |end: &usize| text.get(..*end).is_some_and(|start| start.width() < width);
    let is_joined = |end: usize| {
        let (before, after) = text.split_at_checked(end).unwrap_or_default();
        before.ends_with(JOINER) || after.starts_with(JOINER)
    };
    let end = ends.take_while(fits).filter(|end| !is_joined(*end)).last().unwrap_or_default();
    format!("{}…", text.get(..end).unwrap_or_default())
}

/// Returns how many characters tell all ids apart.
fn distinct_chars(ids: &[&str]) -> usize {
    let sorted: BTreeSet<&str> = ids.iter().copied().collect();
    let common = |one: &str, other: &str| one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let pairs = sorted.iter().zip(sorted.iter().skip(1));
    pairs.map(|(one, other)| common(one, other) + 1).max().unwrap_or_default().max(MIN_ID_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIPE: View =
        View { width: None, wide: false, colours: false, now: Timestamp::from_secs(1_800_000_000) };

    fn at(width: usize) -> View {
        View { width: Some(width), ..PIPE }
    }

    fn rows<const N: usize>(rows: &[[&str; N]]) -> Vec<[String; N]> {
        rows.iter().map(|row| row.map(str::to_owned)).collect()
    }

    #[test]
    fn columns_line_up_and_control_characters_are_escaped() {
        let table = table(["X", "Y"], rows(&[["a", "long"], ["bcd", "\u{1b}[2J"]]));
        assert_eq!(table, "X    Y\na    long\nbcd  \\u{1b}[2J\n");
    }

    #[test]
    fn wide_characters_and_combining_marks_line_up() {
        let names = ["一度", "e\u{301}te\u{301}", "🦀", "abcd"];
        let table = PIPE.table(["N", "END"].map(Column::text), rows(&names.map(|name| [name, "|"])));
        for line in table.lines().skip(1) {
            assert_eq!(line.split('|').next().map(UnicodeWidthStr::width), Some(6), "{table}");
        }
    }

    #[test]
    fn the_widest_texts_are_cut_to_the_terminal() {
        let columns = [Column::text("QUEUE"), Column::free("KEY"), Column::free("ERROR")];
        let row = ["orders", "order-4711-of-ann", "BROKER_5XX: 503 Service Unavailable, come back later"];
        let table = at(48).table(columns, rows(&[row]));
        assert_eq!(
            table,
            "QUEUE   KEY                ERROR\norders  order-4711-of-ann  BROKER_5XX: 503 Serv…\n"
        );
        assert!(table.lines().all(|line| line.width() <= 48), "{table}");
        let narrow = at(30).table(columns, rows(&[row]));
        assert_eq!(narrow, "QUEUE   KEY         ERROR\norders  order-471…  BROKER_5X…\n");
    }

    #[test]
    fn nothing_is_cut_in_a_pipe_or_a_wide_table() {
        let id = "01a1df2e-24dc-702a-8000-3798d20b2380";
        let long = "x".repeat(500);
        let columns = [Column::id("ID").spare(), Column::free("KEY"), Column::text("NONE")];
        for view in [PIPE, View { wide: true, ..at(20) }] {
            let table = view.table(columns, rows(&[[id, &long, ""]]));
            assert!(table.contains(&format!("{id}  {long}\n")) && table.contains("NONE"), "{table}");
        }
    }

    #[test]
    fn cutting_counts_columns_and_keeps_marks_with_their_letters() {
        assert_eq!(cut("一二三四", 5), "一二…");
        assert_eq!(cut("一二三四", 6), "一二…");
        assert_eq!(cut("一二三四", 8), "一二三四");
        assert_eq!(cut("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
        assert_eq!(cut("abc", 0), "…");
        let family = "👩\u{200d}👩\u{200d}👧";
        for width in 0..family.width() + 3 {
            let shown = cut(&format!("{family}abc"), width);
            assert!(shown.starts_with(family) || shown == "…", "{shown} at {width}");
        }
    }

    #[test]
    fn empty_and_spare_columns_give_way_on_a_terminal() {
        let columns = [Column::text("A"), Column::text("EMPTY"), Column::text("SPARE").spare()];
        let all = rows(&[["first", "", "second"]]);
        assert_eq!(at(13).table(columns, all.clone()), "A      SPARE\nfirst  second\n");
        assert_eq!(at(12).table(columns, all), "A\nfirst\n");
    }

    #[test]
    fn ids_are_cut_to_the_digits_that_tell_them_apart() {
        let table = |ids: &[&str]| {
            let rows: Vec<[String; 1]> = ids.iter().map(|id| [(*id).to_owned()]).collect();
            let table = at(80).table([Column::id("ID")], rows);
            table.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(table(&["01a1df2e-24dc-702a-8000-3798d20b2380"]), ["01a1df2e-24dc"]);
        assert_eq!(
            table(&["01a1df2e-24dc-702a-8000-3798d20b2380", "01a1df2e-24dc-702b-8000-3798d20b2380"]),
            ["01a1df2e-24dc-702a", "01a1df2e-24dc-702b"]
        );
        let same = "01a1df2e-24dc-702a-8000-3798d20b2380";
        assert_eq!(table(&[same, same]), ["01a1df2e-24dc"; 2], "two rows of one message");
    }

    #[test]
    fn times_are_ages_unless_the_table_is_wide() {
        let columns = [Column::past("CREATED"), Column::next("NEXT")];
        let row = ["2027-01-15T07:57:00Z", "2027-01-15T08:00:12Z"];
        assert_eq!(PIPE.table(columns, rows(&[row])), "CREATED  NEXT\n3m ago   in 12s\n");
        let wide = View { wide: true, ..PIPE }.table(columns, rows(&[row]));
        assert!(wide.ends_with("2027-01-15T07:57:00Z  2027-01-15T08:00:12Z\n"), "{wide}");
        let fields = PIPE.fields([
            (Column::next("next attempt"), Some(row[1].to_owned())),
            (Column::past("sent at"), None),
            (Column::past("created"), Some(row[0].to_owned())),
        ]);
        assert_eq!(
            fields,
            "next attempt 2027-01-15T08:00:12Z (in 12s)\ncreated      2027-01-15T07:57:00Z (3m ago)\n"
        );
    }

    #[test]
    fn only_states_have_colours_and_only_where_wanted() {
        let columns = [Column::state("STATE"), Column::text("KEY")];
        let all = rows(&[["dead", "dead"], ["sent", "a"], ["failed", "b"], ["queued", "c"]]);
        let plain = PIPE.table(columns, all.clone());
        assert!(!plain.contains('\u{1b}'), "{plain}");
        let painted = View { colours: true, ..PIPE }.table(columns, all);
        assert_eq!(
            painted,
            "STATE   KEY\n\u{1b}[1;31mdead\u{1b}[0m    dead\n\u{1b}[32msent\u{1b}[0m    a\n\u{1b}[1;33mfailed\u{1b}[0m  b\nqueued  c\n"
        );
    }
}
