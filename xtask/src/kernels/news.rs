// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which lines of a guest's tests the caller of the matrix wants to see.

/// Follows what the tests say.
#[derive(Default)]
pub struct News {
    in_failures: bool,
}

impl News {
    /// A test's result, what it skipped, and all that a failed one said.
    pub fn has(&mut self, line: &str) -> bool {
        match line {
            "failures:" => self.in_failures = true,
            _ if line.starts_with("test result:") => self.in_failures = false,
            _ => {}
        }
        self.in_failures || line.starts_with("test ") || line.starts_with("skipped:")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_told_whole_and_what_passed_by_its_name() {
        let mut news = News::default();
        let lines = [
            "test a ... ok",
            "---- a stdout ----",
            "failures:",
            "---- b stdout ----",
            "panicked",
            "test result: FAILED. 1 passed; 1 failed;",
            "said",
        ];
        let told: Vec<&str> = lines.into_iter().filter(|line| news.has(line)).collect();
        assert_eq!(told, [lines[0], lines[2], lines[3], lines[4], lines[5]]);
    }
}
