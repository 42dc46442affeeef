//! Extracts text from HTML, token by token: no tree is built, so deep or broken pages do no harm.

use html5gum::{DefaultEmitter, HtmlString, StartTag, Token, Tokenizer};

use crate::settings::limits::MAX_TEXT_CHARS;

/// Elements that contain no text.
const NEVER: [&str; 8] = ["script", "style", "noscript", "template", "svg", "iframe", "select", "textarea"];
/// Elements around the text: menus, imprints, and what is operated.
const AROUND: [&str; 6] = ["nav", "header", "footer", "aside", "button", "dialog"];
/// Also around the text, but some sites put a whole page into one.
const FORM: &str = "form";
/// Elements that contain the text, if a page has them.
const INSIDE: [&str; 2] = ["main", "article"];
/// Inline elements; all others start a new line.
const INLINE: [&str; 24] = [
    "a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd",
    "mark", "q", "ruby", "s", "small", "span", "strong", "sub", "sup",
];
/// A shorter text is not worth reading, and more of the page is used.
const MIN_CHARS: usize = 140;
/// Maximum number of bytes collected: all that is kept, in the longest encoding, with blanks.
const MAX_COLLECTED_BYTES: usize = MAX_TEXT_CHARS * 8;

/// The content of a page.
#[derive(Debug, Default)]
pub(super) struct HtmlContent {
    pub(super) title: String,
    pub(super) text: String,
    /// The address of the icon, as written.
    pub(super) icon: Option<String>,
}

pub(super) fn read(html: &str) -> HtmlContent {
    let mut reader = HtmlReader::default();
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    for Ok(token) in Tokenizer::new_with_emitter(html, emitter) {
        match token {
            Token::StartTag(tag) => reader.open(&tag),
            Token::EndTag(tag) => reader.close(&name(&tag.name)),
            Token::String(text) => reader.text(&String::from_utf8_lossy(&text)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => (),
        }
    }
    reader.found()
}

fn attribute(tag: &StartTag<()>, wanted: &str) -> Option<String> {
    let found = tag.attributes.iter().find(|(name, _)| name.as_slice() == wanted.as_bytes());
    found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
}

fn name(name: &HtmlString) -> String {
    String::from_utf8_lossy(name).into_owned()
}

#[derive(Default)]
struct HtmlReader {
    title: Option<String>,
    in_title: bool,
    other_title: Option<String>,
    description: Option<String>,
    icon: Option<String>,
    /// The element without text that the reader is in, and its depth.
    skipped: Option<(String, usize)>,
    /// How many open elements are around the text, and how many contain it.
    around: usize,
    forms: usize,
    inside: usize,
    /// The text inside those elements; the text not around it; the same with forms; all of it.
    main: String,
    plain: String,
    with_forms: String,
    all: String,
}

impl HtmlReader {
    fn open(&mut self, tag: &StartTag<()>) {
        let name = name(&tag.name);
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth += usize::from(*skipped == name);
            return;
        }
        match name.as_str() {
            "title" if self.title.is_none() => self.in_title = true,
            "meta" => self.meta(tag),
            "link" => self.link(tag),
            never if NEVER.contains(&never) && !tag.self_closing => self.skipped = Some((name, 1)),
            FORM => self.forms += 1,
            around if AROUND.contains(&around) => self.around += 1,
            inside if INSIDE.contains(&inside) => self.inside += 1,
            inline if INLINE.contains(&inline) => return,
            _ => (),
        }
        self.push("\n");
    }

    fn close(&mut self, name: &str) {
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth -= usize::from(skipped == name);
            if *depth == 0 {
                self.skipped = None;
            }
            return;
        }
        match name {
            "title" => self.in_title = false,
            FORM => self.forms = self.forms.saturating_sub(1),
            around if AROUND.contains(&around) => self.around = self.around.saturating_sub(1),
            inside if INSIDE.contains(&inside) => self.inside = self.inside.saturating_sub(1),
            inline if INLINE.contains(&inline) => return,
            _ => (),
        }
        self.push("\n");
    }

    fn text(&mut self, text: &str) {
        if self.in_title {
            self.title.get_or_insert_default().push_str(text);
        } else if self.skipped.is_none() {
            self.push(text);
        }
    }

    fn push(&mut self, text: &str) {
        let collectors = [
            (&mut self.main, 0 < self.inside && self.around + self.forms == 0),
            (&mut self.plain, self.around + self.forms == 0),
            (&mut self.with_forms, self.around == 0),
            (&mut self.all, true),
        ];
        for (collected, _) in
            collectors.into_iter().filter(|(to, takes)| *takes && to.len() < MAX_COLLECTED_BYTES)
        {
            collected.push_str(text);
        }
    }

    fn meta(&mut self, tag: &StartTag<()>) {
        let value = |wanted: &str| attribute(tag, wanted);
        let kind = value("name").or_else(|| value("property")).unwrap_or_default().to_ascii_lowercase();
        match kind.as_str() {
            "og:title" => self.other_title = self.other_title.take().or_else(|| value("content")),
            "description" | "og:description" => {
                self.description = self.description.take().or_else(|| value("content"));
            }
            _ => (),
        }
    }

    /// The first icon that is not a drawing, which could contain a script.
    fn link(&mut self, tag: &StartTag<()>) {
        let rel = attribute(tag, "rel").unwrap_or_default().to_ascii_lowercase();
        let is_drawing = |href: &String| href.to_ascii_lowercase().contains(".svg");
        if self.icon.is_none() && rel.split_ascii_whitespace().any(|rel| rel == "icon") {
            self.icon = attribute(tag, "href").filter(|href| !is_drawing(href));
        }
    }

    /// Chooses the narrowest text that is long enough, or else the page's own description, or else what there is.
    fn found(self) -> HtmlContent {
        let is_blank = |text: &String| text.trim().is_empty();
        let title = self.title.filter(|title| !is_blank(title)).or(self.other_title).unwrap_or_default();
        let is_long =
            |text: &&String| MIN_CHARS <= text.split_whitespace().map(|word| word.chars().count()).sum();
        // Menus and imprints are often longer than a short page, so they count only if there is nothing else.
        let texts = [self.main, self.plain, self.with_forms];
        let chosen = texts.iter().find(is_long).cloned();
        let short = texts.into_iter().find(|text| !is_blank(text));
        let text = chosen.or(self.description).or(short).unwrap_or(self.all);
        HtmlContent { title, text, icon: self.icon }
    }
}
