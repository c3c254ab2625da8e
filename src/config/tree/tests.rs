use super::{Content, Node, Place};

fn parse(text: &str) -> Node {
    let (root, faults) = Node::parse(text);
    assert!(faults.is_empty(), "{faults:?}");
    root.expect("a document")
}

/// The only fault of a text, as `line:column: message`.
fn fault(text: &str) -> String {
    let (_, faults) = Node::parse(text);
    let [fault] = faults.as_slice() else { panic!("expected one fault, found {faults:?}") };
    format!("{}:{}: {}", fault.place.line, fault.place.column, fault.message)
}

#[test]
fn every_node_knows_its_place_and_path() {
    let root = parse("servers:\n- name: über\n  match: {route: [cases,  more]}\n\"a key\": 1\nempty:\n");
    let at = |steps: &[crate::policy::Segment]| {
        let node = root.locate(steps);
        (node.place.line, node.place.column, node.path.clone())
    };
    let servers = || "servers".into();
    assert_eq!(at(&[servers(), 0.into()]), (2, 3, "servers[0]".into()));
    assert_eq!(at(&[servers(), 0.into(), "name".into()]), (2, 9, "servers[0].name".into()));
    let route = [servers(), 0.into(), "match".into(), "route".into(), 1.into()];
    assert_eq!(at(&route), (3, 27, "servers[0].match.route[1]".into()));
    assert_eq!(at(&["a key".into()]), (4, 10, "[\"a key\"]".into()));
    assert_eq!(at(&["empty".into()]), (5, 1, "empty".into()), "a value that is not there stands where its key does");
    assert_eq!(at(&[servers(), 7.into(), "name".into()]), (2, 3, "servers".into()), "the deepest that exists");
}

#[test]
fn columns_count_characters() {
    assert_eq!(
        parse("ü: {ö: x}").get("ü").and_then(|node| node.get("ö")).map(|node| node.place),
        Some(Place { line: 1, column: 8 })
    );
}

#[test]
fn a_repeated_key_is_a_fault_and_the_first_stays() {
    let (root, faults) = Node::parse("a: 1\nb: 2\na: 3\n");
    assert_eq!(root.and_then(|root| root.get("a")?.text().map(str::to_owned)).as_deref(), Some("1"));
    assert_eq!(faults.len(), 1);
    assert_eq!(
        fault("a: 1\nb: 2\na: 3\n"),
        "3:1: expected each key once, found `a` again (first on line 1); remove one of the two"
    );
}

#[test]
fn what_two_readers_could_read_differently_is_refused() {
    assert!(fault("a: !!str 1").starts_with("1:4: expected a value without a YAML tag"), "{}", fault("a: !!str 1"));
    assert!(fault("a: 1\n---\nb: 2\n").starts_with("2:1: expected one YAML document"));
    assert!(fault("[a]: 1").contains("expected a plain key"));
    assert!(fault("a: [1, 2\nb: 3\n").contains("expected YAML, but"));
}

#[test]
fn aliases_are_written_out_within_bounds() {
    let root = parse("a: &x {b: 1}\nc: *x\n");
    assert_eq!(root.get("c").and_then(|node| node.get("b")).and_then(Node::text), Some("1"));
    let ids = [root.get("a"), root.get("c")].map(|node| node.map(|node| node.id));
    assert_ne!(ids[0], ids[1], "each is a node of its own");
    assert!(fault("a: &x [*x]").contains("inside its own anchor"));
}

#[test]
fn a_bomb_of_aliases_is_refused_in_no_time() {
    let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..12 {
        let alias = format!("*a{}", level - 1);
        let ten = vec![alias; 10].join(",");
        text = format!("{text}a{level}: &a{level} [{ten}]\n");
    }
    assert!(fault(&text).contains("use fewer aliases"));
}

#[test]
fn depth_is_bounded_also_through_aliases() {
    assert!(fault(&format!("{}{}", "[".repeat(65), "]".repeat(65))).contains("levels of nesting"));
    let half = format!("{}1{}", "[".repeat(40), "]".repeat(40));
    let text = format!("a: &a {half}\nb: {}*a{}\n", "[".repeat(40), "]".repeat(40));
    assert!(fault(&text).contains("levels of nesting"));
}

#[test]
fn an_empty_file_is_an_empty_value() {
    assert!(
        matches!(parse("# only a comment\n").content, Content::Scalar { ref text, plain: true } if text.is_empty())
    );
}

#[test]
fn removing_an_entry_remembers_its_key() {
    let mut root = parse("a: {b: 1, c: [x, y]}");
    let b = root.get("a").and_then(|a| a.get("b")).expect("there").id;
    let x = root.get("a").and_then(|a| a.get("c")).and_then(|c| c.items().first()).expect("there").id;
    assert!(root.remove(b) && root.remove(x) && !root.remove(b));
    let a = root.get("a").expect("there");
    assert!(a.dropped(|key| key == "b") && a.get("b").is_none());
    assert_eq!(a.get("c").map(|c| c.items().len()), Some(1));
    assert!(root.damaged && a.damaged && a.get("c").is_some_and(|c| c.damaged));
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "[-a{}\\[\\]:, \n\t&*!|>'\"0#é%]{0,80}") {
        let _ = Node::parse(&text);
    }
}
