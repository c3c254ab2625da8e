mod oracle;
mod properties;

use super::{Template, TemplateFault, TemplateSet};

fn template(text: &str) -> Template {
    Template::parse(text).expect(text)
}

fn set(texts: &[&str]) -> TemplateSet {
    TemplateSet::build(&texts.iter().map(|text| template(text)).collect::<Vec<_>>()).expect("compiles")
}

/// What `text` covers and what not.
fn check(text: &str, covered: &[&str], refused: &[&str]) {
    let set = set(&[text]);
    for uri in covered {
        assert_eq!(set.covering(uri).as_slice(), [0], "{text} covers {uri}");
    }
    for uri in refused {
        assert!(set.covering(uri).is_empty(), "{text} does not cover {uri}");
    }
}

#[test]
fn literals_are_exact_and_the_match_is_of_the_whole_uri() {
    check(
        "cases://case/1",
        &["cases://case/1"],
        &["cases://case/12", "xcases://case/1", "cases://Case/1", "cases://case/", ""],
    );
    check(
        "cases://case/{id}",
        &["cases://case/1"],
        &["xcases://case/1", "Cases://case/1", "cases://case/1/", "cases://case/1\n"],
    );
    check("c://{id}.txt", &["c://a.txt", "c://.txt.txt"], &["c://.txt", "c://atxt", "c://a.txt.bak"]);
}

#[test]
fn a_simple_variable_is_one_segment() {
    check(
        "c://{v}",
        &["c://a", "c://%2F", "c://a.b;c=d&e@:!$'()*+"],
        &["c://", "c://a/b", "c://a,b", "c://a?b", "c://a#b", "c://é", "c://a b", "c://%", "c://%2", "c://%2f"],
    );
    check("c://{v*}", &["c://a", "c://a,b,c"], &["c://", "c://a,", "c://,a", "c://a,,b", "c://a/b"]);
    check("c://{a,b}", &["c://1,2"], &["c://1", "c://1,2,3", "c://1,", "c://,2"]);
    check("c://{a*,b}", &["c://1,2", "c://1,2,3"], &["c://1"]);
    check("c://{v:3}", &["c://a", "c://abc", "c://%2F%2F%2F"], &["c://", "c://abcd", "c://%2F%2F%2F%2F"]);
    check("c://{v:1}F", &["c://%2FF", "c://2F"], &["c://%2F"]);
    check("c://{v:1}{v}", &["c://ab", "c://abc"], &["c://a"]);
}

#[test]
fn a_reserved_variable_is_anything() {
    check("c://{+v}", &["c://a", "c://a/b,c?d#e", "c:///"], &["c://", "c://é", "c://a b"]);
    check("c://x{+v}y", &["c://xay", "c://xyyy"], &["c://xy", "c://xayb"]);
    check("c://{+a,b}", &["c://1,2", "c://1,2,3", "c:///,/"], &["c://1", "c://1,"]);
    check("c://{+v:2}", &["c://a/", "c://%20/"], &["c://abc"]);
    check("c://a{#v}", &["c://a#b", "c://a#b/c#"], &["c://a", "c://a#", "c://ab"]);
    check("c://a{#a,b}", &["c://a#1,2"], &["c://a#1", "c://a#1,"]);
}

#[test]
fn labels_and_paths_carry_their_separators() {
    check("c://a{.v}", &["c://a.b", "c://a.b.c"], &["c://a", "c://a.", "c://ab", "c://a.b/c"]);
    check("c://a{.a,b}", &["c://a.b.c"], &["c://a.b", "c://a.b,c"]);
    check("c://a{.v*}", &["c://a.b", "c://a.b.c"], &["c://a", "c://a.b/c"]);
    check("c://a{/v}", &["c://a/b", "c://a/b.c"], &["c://a", "c://a/", "c://a/b/c", "c://ab"]);
    check("c://a{/a,b}", &["c://a/b/c"], &["c://a/b", "c://a/b,c", "c://a/b/c/d"]);
    check("c://a{/v*}", &["c://a/b", "c://a/b/c/d"], &["c://a", "c://a/", "c://a/b//c", "c://a/b,c"]);
    check("c://a{/v:2}", &["c://a/bc"], &["c://a/bcd"]);
}

#[test]
fn named_parameters_come_in_any_order_each_once() {
    check(
        "c://s{?q}",
        &["c://s?q=1", "c://s", "c://s?q=a=b"],
        &["c://s?", "c://s?q=", "c://s?q", "c://s?r=1", "c://s?q=1&q=2", "c://s?q=1&", "c://s&q=1", "c://s?q=1,2"],
    );
    check(
        "c://s{?a,b,c}",
        &["c://s?a=1&b=2&c=3", "c://s?c=3&a=1", "c://s?b=2&c=3&a=1", "c://s?b=2", "c://s"],
        &["c://s?a=1&a=2", "c://s?a=1&b=2&a=3", "c://s?a=1&d=4", "c://s?a=1?b=2", "c://s?a=1&&b=2", "c://s?&a=1"],
    );
    check("c://s{?a*,b}", &["c://s?a=1&a=2&b=3&a=4"], &["c://s?b=1&b=2"]);
    check("c://s{?a:2}", &["c://s?a=12"], &["c://s?a=123"]);
    check(
        "c://s?x=1{&a,b}",
        &["c://s?x=1", "c://s?x=1&b=2&a=1"],
        &["c://s?x=1?a=1", "c://s?x=1&a=1&a=1", "c://s?x=1a=1"],
    );
    check(
        "c://s{;a,b}",
        &["c://s;a=1;b=2", "c://s;b", "c://s;b;a=1", "c://s"],
        &["c://s;", "c://s;a=", "c://s;a=1;a", "c://s;a=1;c=2", "c://s;ab"],
    );
    check("c://s{?user.id,user-id,%61}", &["c://s?user-id=1&user.id=2&%61=3"], &["c://s?user=1"]);
    check("c://{+v}{&a}", &["c://x&a=1&a=2", "c://x"], &[]);
}

#[test]
fn ten_named_parameters_fit_in_any_order() {
    let names: Vec<String> = (0..10).map(|n| format!("parameter{n}")).collect();
    let text = format!("c://s{{?{}}}", names.join(","));
    let all: Vec<String> = names.iter().rev().map(|name| format!("{name}=1")).collect();
    check(&text, &[&format!("c://s?{}", all.join("&"))], &[&format!("c://s?{}&{}", all.join("&"), all[3])]);
}

#[test]
fn every_entry_that_covers_is_found_whatever_the_order() {
    let set = set(&["c://{+any}", "c://case/1", "c://case/{id}", "d://x", "c://case/1", "c://case/{id}{?q}"]);
    assert_eq!(set.covering("c://case/1").as_slice(), [0, 1, 2, 4, 5]);
    assert_eq!(set.covering("c://case/2").as_slice(), [0, 2, 5]);
    assert_eq!(set.covering("c://case/2?q=1").as_slice(), [0, 5]);
    assert_eq!(set.covering("c://x/y").as_slice(), [0]);
    assert_eq!(set.covering("d://x").as_slice(), [3]);
    assert!(set.covering("d://y").is_empty());
}

#[test]
fn a_uri_that_still_holds_braces_matches_the_identical_template_only() {
    let set = set(&["c://{+any}", "c://case/{id}"]);
    assert_eq!(set.covering("c://case/{id}").as_slice(), [1]);
    assert_eq!(set.covering("c://{+any}").as_slice(), [0]);
    for uri in ["c://case/{no}", "c://case/{", "c://case/}", "c://case/{id}/x", "c://case/{id"] {
        assert!(set.covering(uri).is_empty(), "{uri}");
    }
}

#[test]
fn an_empty_set_covers_nothing() {
    assert!(set(&[]).covering("c://x").is_empty());
}

#[test]
fn thousands_of_templates_are_told_apart() {
    let texts: Vec<String> = (0..3000).map(|n| format!("c://case/{{id}}/part{n}/{{+rest}}")).collect();
    let set = set(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(set.covering("c://case/17/part2999/x/y").as_slice(), [2999]);
    assert!(set.covering("c://case/17/part3000/x/y").is_empty());
}

#[test]
fn a_long_uri_against_ambiguous_templates_is_linear() {
    let set = set(&["c://{+a}a{+b}a{+c}a{+d}b", "c://{a*,b*,c*}!", "c://{+p}{?q,r}"]);
    let long = format!("c://{}", "a,?q=a&r".repeat(50_000));
    let started = std::time::Instant::now();
    assert_eq!(set.covering(&long).as_slice(), [2]);
    assert!(started.elapsed().as_secs() < 5, "400 kB took {:?}", started.elapsed());
}

#[test]
fn what_is_no_template_refuses() {
    let fault = |text: &str| Template::parse(text).expect_err(text);
    for text in ["c://{}", "c://{?}", "c://{+}", "c://{a,}", "c://{a,,b}", "c://{#}"] {
        assert!(matches!(fault(text), TemplateFault::NoName { .. }), "{text}: {:?}", fault(text));
    }
    for text in ["c://{=a}", "c://{!a}", "c://{@a}", "c://{|a}", "c://{,a}"] {
        assert!(matches!(fault(text), TemplateFault::Operator { .. }), "{text}: {:?}", fault(text));
    }
    for text in [
        "c://{a b}",
        "c://{a:}",
        "c://{a:0}",
        "c://{a:03}",
        "c://{a:10000}",
        "c://{a:x}",
        "c://{a*:3}",
        "c://{a:3*}",
        "c://{a**}",
        "c://{*}",
        "c://{.}a",
        "c://{..a}",
        "c://{a.}",
        "c://{$a}",
        "c://{é}",
        "c://{%6}",
        "c://{++a}",
        "c://{*a}",
        "c://{a?}",
    ] {
        assert!(
            matches!(fault(text), TemplateFault::Variable { .. } | TemplateFault::NoName { .. }),
            "{text}: {:?}",
            fault(text)
        );
    }
    assert!(matches!(fault("c://é/{a"), TemplateFault::Unclosed { at: 7, .. }));
    assert!(matches!(fault("c://a}b"), TemplateFault::Stray { at: 6, .. }));
    assert!(matches!(fault("c://{a{b}}"), TemplateFault::Stray { at: 7, .. }));
    assert!(matches!(fault("c://{?a,b,a}"), TemplateFault::Repeated { .. }));
    assert!(matches!(fault("c://{?a,b,c,d,e,f,g,h,i,j,k}"), TemplateFault::TooMany { .. }));
}

#[test]
fn what_does_not_fit_names_the_template() {
    let texts: Vec<Template> = (0..40).map(|n| template(&format!("c://{n}/{{a:9999}}"))).collect();
    let (index, fault) = TemplateSet::build(&texts).expect_err("too large");
    assert!(index > 2, "{index}");
    assert!(fault.to_string().contains(&format!("'c://{index}/{{a:9999}}' is one too many")), "{fault}");
}

#[test]
fn faults_say_what_to_do() {
    assert_eq!(
        Template::parse("c://{a").expect_err("unclosed").to_string(),
        "expected '}' to close the '{' at character 5 of 'c://{a'; close it, or percent-encode a brace that is meant as text"
    );
    assert_eq!(
        Template::parse("c://{!a}").expect_err("operator").to_string(),
        "expected one of the operators + # . / ; ? & or a variable name in '{!a}', found '!'; correct it"
    );
}

#[test]
fn empty_values_add_what_they_cost_and_make_nothing_known() {
    let templates: Vec<_> =
        ["cases://{+path}", "cases://case/{id}/internal", "notes://{id}", "files://{a}{?b}", "files://x"]
            .map(|text| Template::parse(text).unwrap())
            .into();
    let set = TemplateSet::build(&templates).unwrap();
    assert_eq!(set.covering("cases://case/7/internal").as_slice(), [0, 1]);
    assert_eq!(set.covering("cases://case//internal").as_slice(), [0, 1]);
    assert_eq!(set.covering("cases://case/7/other").as_slice(), [0]);
    assert!(set.covering("notes://").is_empty());
    assert_eq!(set.covering("notes://1").as_slice(), [2]);
    assert_eq!(set.covering("files://x").as_slice(), [3, 4]);
    assert!(set.covering("files://?b=").is_empty());
}
