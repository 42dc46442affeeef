//! The error pages as HTML.
//!
//! Guarantee: all text is escaped. It knows the Markdown that these pages use: headings, paragraphs, tables, code and links.

/// Returns a page as HTML.
pub(super) fn page(markdown: &str) -> String {
    let title = markdown.lines().next().unwrap_or_default().trim_start_matches("# ").replace('`', "");
    let blocks: String = markdown.split("\n\n").map(block).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n{blocks}<p><a href=\"/errors\">All errors</a></p>\n</html>\n",
        escaped(&title)
    )
}

fn block(text: &str) -> String {
    let text = text.trim();
    if let Some(heading) = text.strip_prefix("## ") {
        format!("<h2>{}</h2>\n", inline(heading))
    } else if let Some(heading) = text.strip_prefix("# ") {
        format!("<h1>{}</h1>\n", inline(heading))
    } else if text.starts_with('|') {
        table(text)
    } else {
        format!("<p>{}</p>\n", inline(text))
    }
}

/// Returns a table, whose second line separates the head from the rows.
fn table(text: &str) -> String {
    let rows = text.lines().enumerate().filter(|(index, _)| *index != 1).map(|(index, line)| {
        let tag = if index == 0 { "th" } else { "td" };
        let cells = line.trim_matches('|').split('|');
        let cells: Vec<String> =
            cells.map(|cell| format!("<{tag}>{}</{tag}>", inline(cell.trim()))).collect();
        format!("<tr>{}</tr>\n", cells.concat())
    });
    format!("<table>\n{}</table>\n", rows.collect::<String>())
}

/// Returns text with its code and links.
fn inline(text: &str) -> String {
    let Some(at) = text.find(['`', '[']) else { return escaped(text) };
    let (before, rest) = text.split_at(at);
    let found = code(rest).or_else(|| link(rest));
    let (marked, rest) = found.unwrap_or_else(|| {
        let (mark, rest) = rest.split_at(1);
        (mark.to_owned(), rest)
    });
    format!("{}{marked}{}", escaped(before), inline(rest))
}

fn code(text: &str) -> Option<(String, &str)> {
    let (code, rest) = text.strip_prefix('`')?.split_once('`')?;
    Some((format!("<code>{}</code>", escaped(code)), rest))
}

/// Returns a link to another error page. Other pages of the documentation are not served, so their names are only text.
fn link(text: &str) -> Option<(String, &str)> {
    let (name, rest) = text.strip_prefix('[')?.split_once("](")?;
    let (target, rest) = rest.split_once(')')?;
    let name = inline(name);
    let code = target.strip_suffix(".md").filter(|code| !code.contains(['/', '.']));
    let link = match code {
        Some(code) => format!("<a href=\"/errors/{}\">{name}</a>", escaped(code)),
        None => name,
    };
    Some((link, rest))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_pages_escape_text_and_link_to_each_other() {
        let page = page(
            "# `a_b` (400)\n\nA <b> & \"c\", `<script>` [`x_y`](x_y.md) [guide](../guides/a.md) [odd\n\n## Why\n\n| a | b |\n|---|---|\n| `1` | <2> |\n",
        );
        assert!(page.contains("<title>a_b (400)</title>"), "{page}");
        assert!(page.contains("<h1><code>a_b</code> (400)</h1>\n"), "{page}");
        let text = "<p>A &lt;b&gt; &amp; &quot;c&quot;, <code>&lt;script&gt;</code> <a href=\"/errors/x_y\"><code>x_y</code></a> guide [odd</p>\n";
        assert!(page.contains(text), "{page}");
        let table = "<h2>Why</h2>\n<table>\n<tr><th>a</th><th>b</th></tr>\n<tr><td><code>1</code></td><td>&lt;2&gt;</td></tr>\n</table>\n";
        assert!(page.contains(table), "{page}");
    }
}
