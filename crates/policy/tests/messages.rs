// SPDX-License-Identifier: MIT OR Apache-2.0
//! What people read: every kind of error with its place and remedy, the explanation, the import.
//!
//! The inputs stand in `tests/files`, the expected texts in `tests/snapshots`.

use fatpath_policy::{Flow, Problem, Setting, explain, import_wad, parse, parse_bytes};

fn messages(file_name: &str, problems: &[Problem]) -> String {
    problems
        .iter()
        .map(|problem| format!("{}\n", problem.in_file(file_name)))
        .collect()
}

fn errors_of(file_name: &str, text: &str, laws: Option<&[String]>) -> String {
    messages(
        file_name,
        &parse(text, laws).expect_err("the file has errors"),
    )
}

#[test]
fn all_errors_of_a_file_are_told_at_once() {
    let laws = ["cubic", "reno", "fp_aimd"].map(String::from);
    insta::assert_snapshot!(errors_of(
        "bad.toml",
        include_str!("files/bad.toml"),
        Some(&laws)
    ));
}

#[test]
fn an_override_needs_a_setting_that_programs_have_too() {
    let rule =
        |settings: &str| format!("[[rule]]\nname = 'r'\n{settings}\noverride_application = true\n");
    let errors = errors_of("r.toml", &rule("cwnd_clamp = 9"), None);
    let expected =
        "r.toml:4:24: override_application: the rule sets nothing that a program sets itself";
    assert!(errors.contains(expected), "{errors}");
    for settings in [
        "send_buffer = 9000",
        "pacing_rate = '1mbit'",
        "congestion_control = 'cubic'",
    ] {
        assert!(parse(&rule(settings), None).is_ok(), "{settings}");
    }
}

#[test]
fn syntax_errors_have_a_place() {
    let texts = [
        "",
        " \n\t\n",
        "[[rule]\nname = \"x\"",
        "[[rule]]\nname = \"x\"\nname = \"y\"",
        "[[rule]]\nname = \"x\n",
        "[[rule]]\nrate = 1gbit\nrtt = 5ms",
        "\0\u{1}junk",
        "[rule]\nname = \"x\"",
        "rule = [1]",
        "host = 3",
        "[host]\nsysctl = []",
    ];
    let told = texts.map(|text| format!("{text:?}\n{}", errors_of("policy.toml", text, None)));
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn limits_are_told_with_the_limit() {
    let rules: String = (0..1025)
        .map(|rule| format!("[[rule]]\nname = \"r{rule}\"\n"))
        .collect();
    let prefixes = |from: u32| -> Vec<String> {
        (from..from + 40_000)
            .map(|address| format!("\"{}\"", std::net::Ipv4Addr::from(address)))
            .collect()
    };
    let addresses = format!(
        "[[rule]]\nname = \"a\"\nsource = [{}]\n[[rule]]\nname = \"b\"\nsource = [{}]\n",
        prefixes(1).join(","),
        prefixes(100_000).join(",")
    );
    let ports: Vec<String> = (1..=1024).map(|port| (port * 4).to_string()).collect();
    let ports = format!(
        "[[rule]]\nname = \"p\"\nsource_ports = [{}]\n",
        ports.join(",")
    );
    let unknown: String = (0..150).map(|key| format!("key{key} = 1\n")).collect();
    let told = [rules, addresses, ports].map(|text| errors_of("policy.toml", &text, None));
    let many = errors_of("policy.toml", &unknown, None);
    let last: Vec<&str> = many.lines().skip(99).collect();
    let long = messages(
        "policy.toml",
        &parse_bytes(&vec![b'#'; 100_000_000], None).unwrap_err(),
    );
    let junk = messages(
        "policy.toml",
        &parse_bytes(b"# \xc3\xbc\nabc\xff", None).unwrap_err(),
    );
    insta::assert_snapshot!(format!(
        "{}{}\n{long}{junk}",
        told.join(""),
        last.join("\n")
    ));
}

#[test]
fn an_explanation_says_which_rule_and_why() {
    let policy = parse(include_str!("files/good.toml"), None).expect("the file is good");
    let questions = [
        "10.5.128.74:443",
        "10.5.1.7",
        "[2001:db8::1]:80",
        "198.51.100.9:80",
    ];
    let told =
        questions.map(|question| explain(&policy, &Flow::parse(question).unwrap()).to_string());
    let warnings = messages("good.toml", &policy.warnings);
    insta::assert_snapshot!(format!("{}\n{warnings}", told.join("--------\n")));
}

#[test]
fn the_json_of_an_explanation_has_numbers_and_units() {
    let policy = parse(include_str!("files/good.toml"), None).expect("the file is good");
    let explanation = explain(&policy, &Flow::parse("192.0.2.7:5001").unwrap());
    insta::assert_snapshot!(serde_json::to_string_pretty(&explanation).unwrap());
}

#[test]
fn the_host_gets_what_the_rules_ask_for() {
    let policy = parse(include_str!("files/good.toml"), None).expect("the file is good");
    insta::assert_snapshot!(serde_json::to_string_pretty(&policy.host).unwrap());
}

#[test]
fn the_papers_wad_file_becomes_a_policy() {
    let imported = import_wad(include_str!("files/bob.wad")).expect("the paper's example");
    let policy = parse(&imported.toml, None).expect("what import writes, parse reads");
    assert_eq!(policy.warnings, []);
    let bob = policy
        .first_match(&Flow::parse("10.5.128.74:5001").unwrap())
        .unwrap();
    let law = bob.settings.law().unwrap();
    assert_eq!(law.to_string(), "fp_aimd(a = 6, b = 0.3)");
    assert_eq!(bob.settings.number(Setting::MaxSsthresh), Some(100));
    assert_eq!(bob.settings.number(Setting::SendBuffer), Some(3_751_239));
    assert_eq!(bob.settings.number(Setting::ReceiveBuffer), Some(6_571_899));
    let notes: String = imported
        .notes
        .iter()
        .map(|note| format!("{note}\n"))
        .collect();
    insta::assert_snapshot!(format!("{}\n{notes}", imported.toml));
}

#[test]
fn what_the_wad_left_open_is_noted() {
    let imported = import_wad(include_str!("files/odd.wad")).expect("odd, but no error");
    parse(&imported.toml, None).expect("what import writes, parse reads");
    let notes: String = imported
        .notes
        .iter()
        .map(|note| format!("{note}\n"))
        .collect();
    insta::assert_snapshot!(format!("{}\n{notes}", imported.toml));
}

#[test]
fn a_bad_wad_file_has_every_line_told() {
    let problems = import_wad(include_str!("files/bad.wad")).unwrap_err();
    let empty = import_wad("# nothing\n").unwrap_err();
    insta::assert_snapshot!(messages("bad.wad", &problems) + &messages("empty.wad", &empty));
}

#[test]
fn the_installed_policy_loads_and_its_examples_do_too() {
    let text = include_str!("../../../packaging/policy.toml");
    let policy = parse(text, None).expect("the installed file loads");
    assert_eq!((policy.rules.len(), policy.host.sysctls.len()), (0, 0));
    assert_eq!(policy.archive, Some(fatpath_policy::Archive::default()));
    assert_eq!(policy.auto.mode, fatpath_policy::AutoMode::Tune);
    let start = text
        .find("# [host.sysctl]")
        .expect("the examples begin with [host.sysctl]");
    let is_example = |line: &&str| line.contains(" = ") || line.starts_with('[');
    let uncommented = text[start..]
        .lines()
        .map(|line| line.trim_start_matches("# "));
    let examples: Vec<&str> = uncommented.filter(is_example).collect();
    let policy =
        parse(&examples.join("\n"), None).unwrap_or_else(|problems| panic!("{problems:?}"));
    assert_eq!((policy.rules.len(), policy.host.sysctls.len()), (3, 5));
    assert_eq!(policy.warnings, []);
}

#[test]
fn the_json_of_a_rules_settings_names_each_with_its_unit() {
    let rude = "[[rule]]\nname = 'rude'\nrude = 'allowed'\nrude_rate = '1gbit'\nrude_users = ['alice', 1000]\n\
                rude_converged = 0.02\n";
    let files = [
        include_str!("files/good.toml"),
        include_str!("files/laws.toml"),
        rude,
    ];
    let policies = files.map(|file| parse(file, None).expect("the file is good"));
    let rules = policies.iter().flat_map(|policy| &policy.rules);
    let said: Vec<String> = rules
        .map(|rule| {
            serde_json::to_string(&rule.settings)
                .unwrap()
                .replace("null", "-")
        })
        .collect();
    insta::assert_snapshot!(said.join("\n"));
}
