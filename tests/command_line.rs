// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program as somebody at a terminal meets it. Loads nothing: no test here needs the host for itself.
#![allow(clippy::unwrap_used)] // a test ends where it cannot go on

use serde_json::Value;
use std::process::{Command, Output};

const FATPATH: &str = env!("CARGO_BIN_EXE_fatpath");

fn fatpath(words: &[&str]) -> Output {
    Command::new(FATPATH).args(words).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn doctor(policy: &str) -> (Option<i32>, Value) {
    let folder = tempfile::tempdir().unwrap();
    let (file, run) = (folder.path().join("policy.toml"), folder.path().join("run"));
    std::fs::write(&file, policy).unwrap();
    let output = Command::new(FATPATH)
        .args(["doctor", "--json", "--policy"])
        .arg(&file)
        .arg("--run-dir")
        .arg(&run)
        .output()
        .unwrap();
    let report = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.code(), report)
}

fn check<'r>(report: &'r Value, name: &str) -> &'r Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|it| it["check"] == name).unwrap()
}

#[test]
fn the_doctor_says_what_is_bad_and_exits_with_it() {
    let (code, report) = doctor("[[rule]]\nnonsense = 1\n");
    assert_eq!(code, Some(1));
    let policy = check(&report, "policy");
    assert_eq!(policy["level"], "bad");
    assert!(policy["found"].as_str().unwrap().contains("policy.toml:"));
    assert!(policy["remedy"].as_str().unwrap().contains("policy check"));
}

#[test]
fn the_doctor_reads_this_host() {
    let (code, report) = doctor("[auto]\nmode = \"tune\"\n");
    let checks = report["checks"].as_array().unwrap();
    let bad = checks.iter().filter(|it| it["level"] == "bad").count();
    assert_eq!(code, Some(i32::from(bad > 0)), "{report}");
    assert_eq!(check(&report, "policy")["level"], "ok");
    let kernel = check(&report, "kernel")["found"].as_str().unwrap();
    let uname = Command::new("uname").arg("-r").output().unwrap();
    assert!(kernel.starts_with(text(&uname.stdout).trim()), "{kernel}");
    let btf = std::path::Path::new("/sys/kernel/btf/vmlinux").exists();
    assert_eq!(check(&report, "BTF")["level"] == "ok", btf);
}

#[test]
fn the_doctors_table_fits_80_columns() {
    let output = fatpath(&["doctor", "--policy", "/nonexistent/policy.toml"]);
    assert_eq!(output.status.code(), Some(1));
    let table = text(&output.stdout);
    assert!(table.contains("bad     policy"), "{table}");
    for line in table.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

/// The help of every command and of those below it.
fn helps(command: &[&str]) -> Vec<(String, String)> {
    let words = [command, &["--help"]].concat();
    let columns = |command: &mut Command| command.output().unwrap();
    // Nobody says how wide the terminal is: clap's own default would be 100 columns.
    let output = columns(Command::new(FATPATH).args(&words).env_remove("COLUMNS"));
    assert!(output.status.success(), "{words:?}");
    let help = text(&output.stdout);
    let listed = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    let names: Vec<String> = listed
        .lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect();
    let mut all = vec![(words.join(" "), help)];
    for name in names {
        all.extend(helps(&[command, &[&name]].concat()));
    }
    all
}

#[test]
fn no_help_is_wider_than_80_columns() {
    let helps = helps(&[]);
    assert!(helps.len() > 40, "{}", helps.len());
    let mut wide = Vec::new();
    for (command, help) in helps {
        let lines = help.lines().filter(|line| line.chars().count() > 80);
        wide.extend(lines.map(|line| format!("{command}: {line}")));
    }
    assert!(wide.is_empty(), "{}", wide.join("\n"));
}

#[test]
fn a_wide_terminal_makes_no_help_wider_and_a_narrow_one_makes_it_narrower() {
    let help = |columns: &str| {
        let output = Command::new(FATPATH)
            .args(["daemon", "--help"])
            .env("COLUMNS", columns)
            .output();
        text(&output.unwrap().stdout)
    };
    let widest = |help: String| help.lines().map(|line| line.chars().count()).max();
    assert!(widest(help("200")) <= Some(80));
    let narrow = help("60");
    let options = narrow.split("Options:").nth(1).unwrap();
    let options = options.split("On SIGHUP").next().unwrap().to_owned();
    assert!(widest(options) <= Some(60), "{narrow}");
}

#[test]
fn the_version_is_one_line() {
    let version = text(&fatpath(&["--version"]).stdout);
    let rest = version.strip_prefix(concat!("fatpath ", env!("CARGO_PKG_VERSION")));
    let commit = rest.unwrap().trim();
    let digits = commit.trim_start_matches(" (").trim_matches(['(', ')']);
    assert!(digits.chars().all(|c| c.is_ascii_hexdigit()), "{version}");
}

#[test]
fn reload_names_what_reads_the_policy_again() {
    let output = fatpath(&["reload"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("systemctl reload fatpath"), "{said}");
    assert!(!said.contains("unload"), "{said}");
}

#[test]
fn recv_says_who_has_a_rate() {
    let output = fatpath(&["recv", "--rate", "1mbit", "x", "."]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    let wanted = "recv has no --rate: the other host sends, and its daemon is to permit it: give `fatpath send --rate` there";
    assert!(said.contains(wanted), "{said}");
}

#[test]
fn a_misspelled_command_is_suggested() {
    let said = text(&fatpath(&["polcy"]).stderr);
    assert!(said.contains("'policy'"), "{said}");
}

fn run_dir() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn without_a_daemon_commands_say_how_to_start_one() {
    let run = run_dir();
    let dir = run.path().to_str().unwrap();
    for command in [
        &["why"][..],
        &["paths"],
        &["page"],
        &["flows", "--variables"],
    ] {
        let output = fatpath(&[command, &["--run-dir", dir]].concat());
        assert_eq!(output.status.code(), Some(1), "{command:?}");
        let said = text(&output.stderr);
        let wanted = format!(
            "fatpath: error: the daemon is not running; start it: fatpath daemon --run-dir {dir}\n"
        );
        assert_eq!(said, wanted, "{command:?}");
    }
}

#[test]
fn what_is_no_flow_is_told() {
    let said = text(&fatpath(&["why", "foo"]).stderr);
    let wanted = "fatpath: error: 'foo' is not a prefix, ADDRESS:PORT or flow number";
    assert!(said.starts_with(wanted), "{said}");
    let plot = fatpath(&["trace", "plot", "a.parquet", "--out", "a.jpg"]);
    assert_eq!(
        text(&plot.stderr),
        "fatpath: error: --out must end in .png or .svg\n"
    );
}

#[test]
fn counts_of_one_are_singular() {
    let run = run_dir();
    let file = run.path().join("policy.toml");
    std::fs::write(&file, "[[rule]]\nname = \"one\"\ninitial_window = 20\n").unwrap();
    let said = text(&fatpath(&["policy", "check", file.to_str().unwrap()]).stdout);
    assert!(said.ends_with(": 1 rule, 0 warnings\n"), "{said}");
    std::fs::write(&file, "# no test\n").unwrap();
    let said = text(&fatpath(&["measure", "list", "--file", file.to_str().unwrap()]).stdout);
    assert!(said.ends_with(" lists no test.\n"), "{said}");
}

#[test]
fn what_is_wrong_with_a_file_is_told_as_editors_read_it_and_as_json() {
    let run = run_dir();
    let file = run.path().join("policy.toml");
    let policy = "[host.sysctl]\n\"net.core.rmem_mx\" = 1\n[[rule]]\nname = \"a\"\ncongestion_control = \"cubicc\"\n";
    std::fs::write(&file, policy).unwrap();
    let name = file.to_str().unwrap();
    let output = fatpath(&["policy", "check", name, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert!(lines[0].starts_with(&format!("fatpath: {name}:2:1: error: ")));
    assert!(lines[1].ends_with("did you mean `cubic`?"), "{said}");
    assert_eq!(lines[2], format!("fatpath: {name}: 2 errors"));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let errors = json["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 2);
    assert_eq!(errors[1]["line"], 5);
    assert_eq!(errors[1]["file"], name);
    std::fs::write(&file, policy.replace("cubicc", "nonsense")).unwrap();
    let said = text(&fatpath(&["policy", "check", name]).stderr);
    assert!(!said.contains("fp_rude"), "{said}");
}

#[test]
fn a_warning_has_the_same_form() {
    let run = run_dir();
    let file = run.path().join("policy.toml");
    let hidden = "[[rule]]\nname = \"a\"\ncwnd_clamp = 9\n[[rule]]\nname = \"b\"\ncwnd_clamp = 8\n";
    std::fs::write(&file, hidden).unwrap();
    let name = file.to_str().unwrap();
    let said = text(&fatpath(&["policy", "check", name]).stderr);
    let wanted = format!("fatpath: {name}:4:1: warning: ");
    assert!(said.starts_with(&wanted), "{said}");
}

#[test]
fn every_error_has_the_one_form() {
    let run = run_dir();
    let dir = run.path().to_str().unwrap();
    let (policy, wad) = (run.path().join("policy.toml"), run.path().join("wad.conf"));
    std::fs::write(&policy, "[[rule]]\nnonsense = 1\n").unwrap();
    std::fs::write(&wad, "nonsense\n").unwrap();
    let (policy, wad) = (policy.to_str().unwrap(), wad.to_str().unwrap());
    let failures: [&[&str]; 14] = [
        &["no-such-command"],
        &["stop"],
        &["flows", "--nonsense"],
        &["flows", "--interval", "never"],
        &["flows", "--interval"],
        &["policy", "explain"],
        &["policy", "explain", "nowhere", "--policy", policy],
        &["policy", "check", policy],
        &["policy", "check", "/nonexistent.toml"],
        &["import-wad", wad],
        &["sim", policy],
        &["lab", "down", "no-such-lab"],
        &["paths", "--run-dir", dir],
        &["analyse", wad],
    ];
    for words in failures {
        let output = fatpath(words);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{words:?}");
        assert!(output.stdout.is_empty(), "{words:?}");
        let said = text(&output.stderr);
        let first = said.lines().next().unwrap();
        let (place, message) = first.split_once(" error: ").unwrap_or_default();
        assert!(place.starts_with("fatpath:"), "{words:?}: {said}");
        assert!(!message.is_empty(), "{words:?}: {said}");
    }
    let help = fatpath(&["policy"]);
    assert_eq!(help.status.code(), Some(2));
    assert!(text(&help.stderr).contains("\nUsage: fatpath policy"));
}

#[test]
fn json_is_printed_of_any_failure() {
    let run = run_dir();
    let dir = run.path().to_str().unwrap();
    let failures = [
        (1, vec!["why", "--json", "--run-dir", dir]),
        (1, vec!["sim", "/nonexistent.toml", "--json"]),
        (2, vec!["flows", "--json", "--nonsense"]),
        (2, vec!["reload", "--json"]),
        (2, vec!["try", "--json"]),
    ];
    for (code, words) in failures {
        let output = fatpath(&words);
        assert_eq!(output.status.code(), Some(code), "{words:?}");
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        let message = json["errors"][0]["message"].as_str().unwrap();
        assert!(
            !message.is_empty() && !message.ends_with(':'),
            "{words:?}: {message}"
        );
    }
}

#[test]
fn a_scenarios_errors_are_told_at_once() {
    let run = run_dir();
    let file = run.path().join("x.toml");
    let scenario = "name = \"x\"\n[hosts.client]\nrouter = 1\n[hosts.server]\n[links.wan]\n\
                    between = [\"client\", \"server\"]\nlos = 1\nrate = 5\n[[flow]]\nfrom = \"clent\"\n";
    std::fs::write(&file, scenario).unwrap();
    let said = text(&fatpath(&["sim", file.to_str().unwrap()]).stderr);
    for part in [
        ":3:10: error: ",
        "`loss`?",
        "links.wan.rate: ",
        "\"client\"?",
        ": 4 errors\n",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// What cannot be simulated is told in one line, with its place.
#[test]
fn every_scenario_of_experiments_is_simulated_or_says_why_not() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");
    let mut folders = vec![std::path::PathBuf::from(root)];
    let (mut simulated, mut told) = (0, 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.to_str().unwrap();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if !name.ends_with(".toml") || name.ends_with("policy.toml") {
                continue;
            }
            let output = fatpath(&["sim", name, "--list"]);
            let said = text(&output.stderr);
            if output.status.success() {
                simulated += 1;
                continue;
            }
            let why = said.lines().next().unwrap();
            assert!(why.starts_with(&format!("fatpath: {name}:")), "{said}");
            assert!(why.contains(": error: "), "{said}");
            told += 1;
        }
    }
    assert!(simulated > 50 && told > 0, "{simulated}, {told}");
}

#[test]
fn a_lab_that_is_not_up_is_told() {
    for command in ["flows", "why", "status"] {
        let output = fatpath(&[command, "--lab", "no-such-lab"]);
        assert_eq!(output.status.code(), Some(1));
        let said = text(&output.stderr);
        assert!(said.contains("fatpath lab list"), "{command}: {said}");
    }
}

/// What a shell says after it has read the completions; `None`, with a line that says so, where it is not installed.
fn in_shell(shell: &str, options: &[&str], script: &str) -> Option<String> {
    let folder = run_dir();
    let file = folder.path().join(format!("_fatpath.{shell}"));
    std::fs::write(&file, fatpath(&["completions", shell]).stdout).unwrap();
    let script = script.replace("FILE", file.to_str().unwrap());
    let output = Command::new(shell)
        .args(options)
        .args(["-c", &script])
        .env("HOME", folder.path())
        .env("LC_ALL", "C")
        .env_remove("BASH_ENV")
        .output();
    let Ok(output) = output else {
        println!("skipped: no {shell} here");
        return None;
    };
    assert_eq!(text(&output.stderr), "", "{shell}");
    assert!(output.status.success(), "{shell}");
    Some(text(&output.stdout))
}

#[test]
fn bash_completes() {
    let script = "source FILE; complete -p fatpath >/dev/null; COMP_WORDS=(fatpath pol); COMP_CWORD=1; \
                  _fatpath fatpath pol fatpath; echo ${COMPREPLY[@]}";
    let Some(said) = in_shell("bash", &["--norc"], script) else {
        return;
    };
    assert_eq!(said, "policy police\n");
}

#[test]
fn zsh_completes() {
    let script = "autoload -U compinit; compinit -u -D; source FILE; echo ${_comps[fatpath]}; \
                  functions _fatpath_commands | grep -c 'policy:'";
    let Some(said) = in_shell("zsh", &["-f"], script) else {
        return;
    };
    assert!(said.starts_with("_fatpath\n"), "{said}");
}

#[test]
fn fish_completes() {
    let script = "source FILE; complete -C 'fatpath pol'";
    let Some(said) = in_shell("fish", &["--no-config"], script) else {
        return;
    };
    let names: Vec<&str> = said
        .lines()
        .filter_map(|line| line.split('\t').next())
        .collect();
    assert_eq!(names, ["police", "policy"]);
}

fn manual() -> tempfile::TempDir {
    let folder = run_dir();
    let made = fatpath(&["man", folder.path().to_str().unwrap()]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    folder
}

fn pages(folder: &tempfile::TempDir) -> Vec<std::path::PathBuf> {
    let sections = ["man1", "man5", "man7"].map(|section| folder.path().join(section));
    let files = sections
        .iter()
        .flat_map(|it| std::fs::read_dir(it).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}

/// A page is made whenever the program is built: it has no date, so that the same source makes the same page.
const NO_DATE: &str = "missing date";

#[test]
fn mandoc_finds_nothing_wrong_in_the_man_pages() {
    let folder = manual();
    let mut mandoc = Command::new("mandoc");
    let Ok(output) = mandoc
        .args(["-T", "lint", "-W", "warning"])
        .args(pages(&folder))
        .output()
    else {
        println!("skipped: no mandoc here");
        return;
    };
    let said = text(&output.stdout) + &text(&output.stderr);
    let wrong: Vec<&str> = said
        .lines()
        .filter(|line| !line.contains(NO_DATE))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn apropos_finds_every_man_page() {
    let folder = manual();
    for page in pages(&folder) {
        let Ok(output) = Command::new("lexgrog").arg(&page).output() else {
            println!("skipped: no lexgrog (man-db) here");
            return;
        };
        let name = page.file_stem().unwrap().to_str().unwrap();
        let said = text(&output.stdout);
        assert!(said.contains(&format!(": \"{name} - ")), "{said}");
    }
}

#[test]
fn every_command_has_a_man_page_without_backticks() {
    let folder = manual();
    for (command, _) in helps(&[]) {
        let words = format!("fatpath {}", command.trim_end_matches("--help"));
        let name = words.trim().replace(' ', "-");
        let page = std::fs::read_to_string(folder.path().join(format!("man1/{name}.1")));
        let page = page.unwrap_or_else(|_| panic!("no page of {name}"));
        assert!(!page.contains('`'), "{name}");
        assert!(page.contains(".SH \"SEE ALSO\""), "{name}");
    }
    for file in ["policy", "measure", "scenario"] {
        let page = folder.path().join(format!("man5/fatpath-{file}.5"));
        let page = std::fs::read_to_string(page).unwrap();
        assert!(page.contains(".TS"), "tables are tables: {file}");
    }
}

/// A failure of each command that has `--json`: words that it takes, and cannot do. RUN is an empty folder.
const FAILURES: [&str; 62] = [
    "analyse /nonexistent.pcap",
    "archive latest --run-dir RUN",
    "archive path 192.0.2.0/24 --archive RUN/none",
    "archive query --archive RUN/none",
    "capture 192.0.2.1:9 --out RUN/none/x.pcapng --run-dir RUN",
    "doctor localhost:http --run-dir RUN",
    "flow send 127.0.0.1 --tcp initial_window=0",
    "flows --variables --run-dir RUN",
    "gap report RUN",
    "gap run /nonexistent.toml",
    "keys list --trust RUN",
    "keys new --key /dev/null",
    "keys show --key RUN/none",
    "keys trust caller nonsense dtn1 --trust RUN/none",
    "lab compare /nonexistent.toml",
    "lab down no-such-lab",
    "lab list --nonsense",
    "lab observe /nonexistent.observation",
    "lab run /nonexistent.toml",
    "lab set wan loss=1% --lab no-such-lab",
    "lab up /nonexistent.toml",
    "measure check /nonexistent.toml",
    "measure echo dtn1 --key RUN/none",
    "measure iperf3 dtn1 --key RUN/none",
    "measure list --file /nonexistent.toml",
    "measure mesh /nonexistent.toml",
    "measure next --file /nonexistent.toml",
    "measure now x --run-dir RUN",
    "measure one-way dtn1 --clock-error 1ms --key RUN/none",
    "measure rate dtn1 --key RUN/none",
    "measure respond --file /nonexistent.toml",
    "measure run x --file /nonexistent.toml",
    "measure single-ended no.such.host.invalid",
    "measure status --file /nonexistent.toml",
    "model buffers --rtt 100ms --rate 0",
    "model limits --rtt 100ms --rate 0",
    "model list --nonsense",
    "model loss --rtt 100ms --rate 1gbit --law no-such-law",
    "model recovery --rtt 100ms --rate 1gbit --law no-such-law",
    "model throughput --rtt 100ms --loss 1% --law no-such-law",
    "model transfer --rtt 100ms --bytes 0",
    "paths --run-dir RUN",
    "paths forget 192.0.2.0/24 --run-dir RUN",
    "paths pin 192.0.2.0/24 --run-dir RUN",
    "paths show 192.0.2.0/24 --run-dir RUN",
    "phases --run-dir RUN",
    "police no-such-interface --police-dir RUN",
    "police status --police-dir /dev/null",
    "policy apply /nonexistent.toml --run-dir RUN",
    "policy check /nonexistent.toml",
    "policy explain 192.0.2.1 --policy /nonexistent.toml",
    "recv",
    "rude off --run-dir RUN --pin-dir RUN/pins",
    "rude on --run-dir RUN --pin-dir RUN/pins",
    "rude status --mark nonsense",
    "send",
    "sim /nonexistent.toml",
    "status --lab no-such-lab",
    "try localhost:http --run-dir RUN",
    "tune 192.0.2.1:9 initial_window=20 --run-dir RUN",
    "unload --nonsense",
    "why --run-dir RUN",
];

/// Of the whole tree of commands, wrong use and failure alike.
#[test]
fn every_command_that_prints_json_prints_its_failure_as_json() {
    let has_json = |help: &str| {
        help.lines()
            .any(|line| line.trim_start().starts_with("--json "))
    };
    let helps = helps(&[]).into_iter().filter(|(_, help)| has_json(help));
    let commands: Vec<String> = helps
        .map(|(command, _)| command.trim_end_matches(" --help").to_owned())
        .collect();
    assert!(commands.len() > 40, "{commands:?}");
    let run = run_dir();
    let dir = run.path().to_str().unwrap();
    for command in commands {
        let wrong = format!("{command} --no-such-option");
        let is_of = |line: &&&str| {
            line.strip_prefix(&command).is_some_and(|rest| {
                let next = rest.split_whitespace().next().unwrap_or_default();
                (rest.is_empty() || rest.starts_with(' '))
                    && !["show", "pin", "forget", "status"].contains(&next)
            })
        };
        let fails = FAILURES.iter().find(is_of);
        let fails = fails.unwrap_or_else(|| panic!("FAILURES has no line of {command}"));
        for line in [wrong.as_str(), fails] {
            let line = format!("{line} --json").replace("RUN", dir);
            let output = fatpath(&line.split(' ').collect::<Vec<_>>());
            assert!(
                matches!(output.status.code(), Some(1 | 2)),
                "{line}: {output:?}"
            );
            let json: Result<Value, _> = serde_json::from_slice(&output.stdout);
            let json = json.unwrap_or_else(|error| panic!("{line}: {error}: {output:?}"));
            let message = json["errors"][0]["message"].as_str();
            assert!(!message.unwrap_or_default().is_empty(), "{line}: {json}");
        }
    }
}

#[test]
fn what_recv_writes_to_standard_output_is_the_file_alone() {
    let output = fatpath(&["recv", "host:file", "-", "--json", "--no-such-option"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "");
    let said = text(&output.stderr);
    let last: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert!(last["errors"][0]["message"].is_string(), "{said}");
}
