// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captured connections as one HTML file that asks nothing of any network: all points, packed, with the least and the
//! greatest of each four on each level above, so that the page draws as many as it has pixels. One level of each series
//! stands before the others as the overview: it is drawn while the browser still reads the rest.
//!
//! `page.js` is its program, `page.css` its looks. The policy in the file allows these two, by their hashes, and nothing
//! else. Text that comes from the capture or the command line stands in JSON, and the page sets it as text.

mod pack;
mod series;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fatpath_capture::{History, Way};
use pack::{BUCKET, MOST_DRAWN, Packer, levels};
use serde_json::{Value, json};
use series::{Panel, Series, panels};
use sha2::{Digest, Sha256};
use std::iter;

const SCRIPT: &str = include_str!("page.js");
const STYLE: &str = include_str!("page.css");

/// What the page's program reads: one block with the overview of all panels, and one of each panel with all points.
#[derive(Default)]
struct Data {
    overview: Packer,
    panels: Vec<String>,
}

/// The file's text: the connections beside each other, by the same clock.
///
/// # Errors
/// None but those of the compressor.
pub fn interactive(title: &str, histories: &[History]) -> std::io::Result<String> {
    let origin_ns = histories.iter().map(History::first_ns).min();
    let origin_ns = origin_ns.unwrap_or_default();
    let mut data = Data::default();
    let mut all = Vec::new();
    for history in histories {
        all.extend(columns(history, origin_ns, &mut data)?);
    }
    let head = json!({
        "title": title,
        "first_ns": origin_ns.to_string(),
        "bucket": BUCKET,
        "most_drawn": MOST_DRAWN,
        "columns": all,
    });
    page(title, &head, data)
}

/// A column of panels for each direction that has data; what the panels draw goes into `data`.
fn columns(history: &History, origin_ns: i64, data: &mut Data) -> std::io::Result<Vec<Value>> {
    let (client, server) = (history.client, history.server);
    let ways = [
        (&history.from_client, format!("{client} to {server}")),
        (&history.from_server, format!("{server} to {client}")),
    ];
    let ways = ways.into_iter().filter(|(way, _)| way.has_data());
    let mut column = |(way, name): (&Way, String)| {
        let panels = panels(way, origin_ns);
        let panels = panels.iter().map(|panel| packed(panel, data));
        Ok(json!({
            "name": format!("flow {}: {name}", history.flow),
            "left_out": history.left_out,
            "panels": panels.collect::<std::io::Result<Vec<Value>>>()?,
        }))
    };
    ways.map(&mut column).collect()
}

fn packed(panel: &Panel, data: &mut Data) -> std::io::Result<Value> {
    let mut packer = Packer::default();
    let pack = |one| pack_series(one, &mut packer, &mut data.overview);
    let series: Vec<Value> = panel.series.iter().map(pack).collect();
    data.panels.push(encoded(packer)?);
    Ok(json!({
        "title": panel.title,
        "unit": panel.unit,
        "series": series,
        "data": data.panels.len() - 1,
    }))
}

fn encoded(packer: Packer) -> std::io::Result<String> {
    Ok(STANDARD.encode(packer.finish()?))
}

fn pack_series(series: &Series, packer: &mut Packer, overview: &mut Packer) -> Value {
    packer.column(series.times.iter().copied());
    let levels = levels(&series.ranges);
    let is_flat = series.ranges.iter().all(|(low, high)| low == high);
    match is_flat {
        true => packer.column(series.ranges.iter().map(|(low, _)| *low)),
        false => pack_ranges(&series.ranges, packer),
    }
    levels.iter().for_each(|level| pack_ranges(level, packer));
    let colour = series.colour;
    json!({
        "name": series.name,
        "colour": format!("#{:02x}{:02x}{:02x}", colour.0, colour.1, colour.2),
        "draw": series.draw,
        "flat": is_flat,
        "count": series.times.len(),
        "levels": levels.len(),
        "overview": pack_overview(series, &levels, overview),
    })
}

/// The first level with few enough buckets to be drawn: when each begins, when it ends, and its range.
fn pack_overview(series: &Series, levels: &[Vec<(i64, i64)>], packer: &mut Packer) -> Value {
    let mut from_below = iter::once(&series.ranges).chain(levels);
    let level = from_below.position(|ranges| ranges.len() <= MOST_DRAWN);
    let level = level.unwrap_or(levels.len());
    let ranges = level.checked_sub(1).map_or(&series.ranges, |n| &levels[n]);
    let size = BUCKET.pow(level as u32);
    let buckets = || series.times.chunks(size);
    packer.column(buckets().filter_map(|bucket| bucket.first().copied()));
    packer.column(buckets().filter_map(|bucket| bucket.last().copied()));
    pack_ranges(ranges, packer);
    json!({ "size": size, "count": ranges.len() })
}

fn pack_ranges(ranges: &[(i64, i64)], packer: &mut Packer) {
    packer.column(ranges.iter().map(|(low, _)| *low));
    packer.column(ranges.iter().map(|(low, high)| high.saturating_sub(*low)));
}

/// The program stands before the panels' data, so that it runs while the browser reads them.
fn page(title: &str, head: &Value, data: Data) -> std::io::Result<String> {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text));
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(STYLE),
    );
    // No text of a capture ends a script.
    let head = head.to_string().replace('<', "\\u003c");
    let title = escaped(title);
    let overview = block("overview", &encoded(data.overview)?);
    let panels = data.panels.iter().enumerate();
    let panels: String = panels
        .map(|(number, data)| block(&number.to_string(), data))
        .collect();
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <script type=\"application/json\" id=\"head\">{head}</script>\n\
         {overview}<script>{SCRIPT}</script>\n{panels}</body>\n</html>\n"
    ))
}

/// An element that the browser does not run.
fn block(name: &str, data: &str) -> String {
    format!("<script type=\"application/octet-stream\" id=\"data-{name}\">{data}</script>\n")
}

fn escaped(text: &str) -> String {
    let escape = |c: char| match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_is_text() {
        let hostile = "</title></script><script>alert(1)</script>\"&";
        let page = interactive(hostile, &[]).unwrap();
        assert!(!page.contains("</script><script>alert"));
        assert!(!page.contains("<script>alert"));
        assert_eq!(page.matches("<script>").count(), 1);
        assert!(page.contains("&lt;/title&gt;"));
    }
}
