// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a flow asks of its connections as the words of a command line, and back: `KEY=VALUE`, with the keys of a
//! `[[flow]]` and values without quotes.
//!
//! Pure. Start with [`Requests::of_texts`].

use fatpath_toml::Document;

use super::flow::{EndSettings, LawRequest, Requests, RudeRequest};
use super::given::{as_toml, first, is_digits};
use super::requests::{DELAYED_ACKS, DETECTIONS, GROWTHS, IDLES, REDUCTIONS, requests};
use super::values::Values;

/// What a command line gives, for messages.
const TITLE: &str = "what is asked of TCP";

impl Requests {
    /// Of `KEY=VALUE,KEY=VALUE,…`, one or several of them. Commas within brackets are the value's.
    ///
    /// # Errors
    /// The first that is wrong, in words, with what is allowed.
    pub fn of_texts<T: AsRef<str>>(texts: &[T]) -> Result<Requests, String> {
        let mut toml = String::new();
        for part in texts.iter().flat_map(|text| split(text.as_ref())) {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| format!("{part}: give KEY=VALUE, such as initial_window=2"))?;
            let (key, value) = (key.trim(), value.trim());
            let is_key = |c: char| c.is_ascii_lowercase() || c == '_';
            if key.is_empty() || !key.chars().all(is_key) {
                return Err(format!(
                    "{key}: is not a key of a flow, such as initial_window"
                ));
            }
            let is_bare = matches!(value, "true" | "false") || is_digits(value);
            let value = as_toml(TITLE, key, value, is_bare)?;
            toml.push_str(&format!("{key} = {value}\n"));
        }
        let document = Document::parse(TITLE, &toml).map_err(first)?;
        let mut section = document.root(Values::default());
        let requests = requests(&mut section);
        section.note_unknown();
        document.finish().map_err(first)?;
        Ok(requests)
    }

    /// All that is asked for, each as `KEY=VALUE`, which [`Requests::of_texts`] reads.
    pub fn texts(&self) -> Vec<String> {
        let mut texts = Texts(vec![]);
        texts.put("law", self.law.as_ref().map(law));
        texts.put("mss", self.mss_bytes);
        texts.put("window", self.window_bytes.map(bytes));
        texts.put("pacing_rate", self.pacing_rate_bps.map(bits));
        texts.put_ends(&self.ends);
        texts.0
    }
}

struct Texts(Vec<String>);

impl Texts {
    fn put(&mut self, key: &str, value: Option<impl ToString>) {
        let value = value.map(|value| value.to_string());
        self.0.extend(value.map(|value| format!("{key}={value}")));
    }

    fn put_ends(&mut self, ends: &EndSettings) {
        self.put("send_buffer", ends.send_buffer_bytes.map(bytes));
        self.put("receive_buffer", ends.receive_buffer_bytes.map(bytes));
        self.put("initial_window", ends.initial_window_pkts);
        self.put("cwnd_clamp", ends.cwnd_clamp_pkts);
        self.put("fragment", ends.fragment);
        self.put("detection", name(&DETECTIONS, ends.detection));
        self.put("dupthresh", ends.dupthresh);
        self.put("sack_blocks", ends.sack_blocks);
        self.put("reduction", name(&REDUCTIONS, ends.reduction));
        self.put("growth", name(&GROWTHS, ends.growth));
        self.put("max_burst", ends.max_burst_pkts);
        self.put("pacing", ends.pacing);
        self.put("pacing_quantum", ends.pacing_quantum_ns.map(nanos));
        self.put("drop", drops(&ends.drops));
        self.put("rto_min", ends.rto_min_ns.map(nanos));
        self.put("delayed_acks", name(&DELAYED_ACKS, ends.delayed_acks));
        self.put("delayed_ack_max", ends.delayed_ack_max_ns.map(nanos));
        self.put("delayed_ack_count", ends.delayed_ack_pkts);
        self.put("tail_loss_probe", ends.tail_loss_probe);
        self.put("max_ssthresh", ends.max_ssthresh_pkts);
        self.put("initial_ssthresh", ends.initial_ssthresh_pkts);
        self.put("initial_rate", ends.initial_rate_bps.map(bits));
        self.put("idle", name(&IDLES, ends.idle));
        self.put("hystart", ends.hystart);
        self.put("rude", ends.rude.map(rude));
    }
}

/// The parts between commas that are in no brackets and no quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut is_quoted) = (0_i32, false);
    text.split(|letter: char| {
        match letter {
            '"' => is_quoted = !is_quoted,
            '[' | '{' if !is_quoted => depth += 1,
            ']' | '}' if !is_quoted => depth -= 1,
            _ => {}
        }
        letter == ',' && depth <= 0 && !is_quoted
    })
    .collect()
}

fn name<T: PartialEq>(names: &[(&'static str, T)], value: Option<T>) -> Option<&'static str> {
    let value = value?;
    let found = names.iter().find(|(_, named)| *named == value);
    found.map(|(name, _)| *name)
}

fn law(law: &LawRequest) -> String {
    if law.parameters.is_empty() {
        return law.name.clone();
    }
    let parameters = law.parameters.iter();
    let parameters = parameters.map(|(key, value)| format!(", {key} = {value}"));
    format!(
        "{{ law = \"{}\"{} }}",
        law.name,
        parameters.collect::<String>()
    )
}

/// The first one is 1 in a file.
fn drops(drops: &[u64]) -> Option<String> {
    let numbers: Vec<String> = drops
        .iter()
        .map(|number| (number + 1).to_string())
        .collect();
    (!numbers.is_empty()).then(|| format!("[{}]", numbers.join(",")))
}

fn rude(rude: RudeRequest) -> String {
    let share = rude
        .share_bps
        .map(|share_bps| format!("rate = \"{}\"", bits(share_bps)));
    let off = rude.off.map(|off| {
        let how = if off.nicely { "nicely" } else { "now" };
        format!("off = \"{how}\", at = \"{}\"", nanos(off.at_ns))
    });
    let parts: Vec<String> = share.into_iter().chain(off).collect();
    format!("{{ {} }}", parts.join(", "))
}

fn bytes(bytes: impl ToString) -> String {
    bytes.to_string() + "B"
}

fn bits(bits: u64) -> String {
    format!("{bits}bit")
}

fn nanos(ns: u64) -> String {
    format!("{ns}ns")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each key once.
    const ALL: &str = "law={ law = \"fp_aimd\", a = 6, b = 0.3 },mss=1000,window=64KiB,pacing_rate=1.5gbit,send_buffer=1MiB,\
        receive_buffer=2MB,initial_window=3,cwnd_clamp=500,fragment=true,detection=fack,dupthresh=9,sack_blocks=4,reduction=rampdown,\
        growth=abc,max_burst=5,pacing=true,pacing_quantum=1ms,drop=[20,25,25],rto_min=1s,delayed_acks=on,\
        delayed_ack_max=200ms,delayed_ack_count=4,tail_loss_probe=false,max_ssthresh=100,initial_ssthresh=64,\
        initial_rate=100mbit,idle=pace,hystart=false,rude={ rate = \"1mbit\", off = \"nicely\", at = \"3s\" }";

    #[test]
    fn what_is_written_is_read_as_the_same() {
        let asked = Requests::of_texts(&[ALL]).unwrap();
        let texts = asked.texts();
        assert_eq!(texts.len(), split(ALL).len());
        assert_eq!(Requests::of_texts(&texts), Ok(asked.clone()));
        assert_eq!(asked.ends.drops, [19, 24, 24]);
        // Each is a key of its own: none is written as another one.
        for text in &texts {
            let alone = Requests::of_texts(&[text]).unwrap();
            assert_ne!(alone, Requests::default(), "{text}");
            assert_eq!(alone.texts(), std::slice::from_ref(text));
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_what_is_allowed() {
        let packets = "allowed: a whole number from 1 to 1073741824";
        for (text, told) in [
            (
                "initial_window=0",
                &*format!("initial_window: found 0; {packets}"),
            ),
            ("initial_window", "initial_window: give KEY=VALUE"),
            ("=3", ": is not a key of a flow"),
            (
                "sack_blocks=17",
                "sack_blocks: found 17; allowed: a whole number from 1 to 16",
            ),
            (
                "detection=tahoe",
                "detection: found the text \"tahoe\"; allowed: \"rack\"",
            ),
            (
                "rto_min=1",
                "rto_min: found 1; allowed: a time from \"1ms\"",
            ),
            ("delayed_acks=on,delayed_acks=off", "the key occurs twice"),
            ("drop=[0]", "drop[1]: found 0; allowed: a whole number"),
            ("drop=[1", "drop: [1 is not TOML"),
            (
                "law={ law = \"fp_aimd\", b = 1.5 }",
                "law: b = 1.5 is out of range",
            ),
            ("cwnd=3", "unknown key `cwnd` in what is asked of TCP"),
        ] {
            let error = Requests::of_texts(&[text]).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
