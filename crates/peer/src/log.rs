// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a listener says of itself: a line for each event, for people on standard error, or as JSON on standard output.

use crate::refusals::Refusals;
use fatpath_units::show_count;
use serde::Serialize;
use serde_json::{Value, json};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

/// What happened: as JSON by its fields, and for people.
pub trait Event: Serialize {
    /// A line without its end.
    fn sentence(&self) -> String;
}

/// Somebody, or what somebody who is known asked for, was refused.
#[derive(Serialize)]
#[serde(tag = "event", rename = "refused")]
struct Refused {
    from: SocketAddr,
    why: String,
    /// Others before it, who are not listed.
    unlisted: u32,
}

impl Event for Refused {
    fn sentence(&self) -> String {
        let Refused {
            from,
            why,
            unlisted,
        } = self;
        let others = match unlisted {
            0 => String::new(),
            unlisted => format!("; and {} before it", show_count(*unlisted, "other")),
        };
        format!("{from} was refused: {why}{others}")
    }
}

/// Where events go.
pub struct Log {
    is_json: bool,
    /// Of those who proved no key.
    nameless: Mutex<Refusals>,
    /// Of those who proved one: the nameless do not keep them out of the log.
    named: Mutex<Refusals>,
}

impl Log {
    /// As JSON, or for people.
    pub fn new(is_json: bool) -> Log {
        Log {
            is_json,
            nameless: Mutex::default(),
            named: Mutex::default(),
        }
    }

    /// Writes a line.
    pub fn note(&self, event: &impl Event) {
        // Nobody may read any more; what was begun goes on.
        let _ = match self.is_json {
            true => writeln!(std::io::stdout().lock(), "{}", line(event)),
            false => writeln!(std::io::stderr().lock(), "fatpath: {}", event.sentence()),
        };
    }

    /// Writes a line about somebody who proved no key, unless there were many.
    pub fn refused_nameless(&self, from: SocketAddr, why: impl Into<String>) {
        self.refused(&self.nameless, from, why.into());
    }

    /// Writes a line about somebody who proved a key, unless there were many.
    pub fn refused_named(&self, from: SocketAddr, why: impl Into<String>) {
        self.refused(&self.named, from, why.into());
    }

    fn refused(&self, others: &Mutex<Refusals>, from: SocketAddr, why: String) {
        let unlisted = others.lock().map_or(None, |mut others| others.another());
        if let Some(unlisted) = unlisted {
            self.note(&Refused {
                from,
                why,
                unlisted,
            });
        }
    }
}

fn line(event: &impl Event) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut value = serde_json::to_value(event).unwrap_or_default();
    value["time"] = json!(now.map_or(0.0, |now| now.as_secs_f64()));
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_a_sentence_or_an_object() {
        let refused = |unlisted| Refused {
            from: ([192, 0, 2, 1], 9).into(),
            why: "no".to_owned(),
            unlisted,
        };
        assert_eq!(refused(0).sentence(), "192.0.2.1:9 was refused: no");
        let two = refused(2).sentence();
        assert_eq!(two, "192.0.2.1:9 was refused: no; and 2 others before it");
        let line = line(&refused(2));
        assert_eq!(
            (&line["event"], &line["from"]),
            (&json!("refused"), &json!("192.0.2.1:9"))
        );
    }
}
