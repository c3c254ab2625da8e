use serde_json::json;

use super::Matrix;
use crate::policy::prices::PriceEntry;
use crate::policy::testing::source;
use crate::policy::{Policy, Prices, Scopes};

fn matrix() -> Matrix {
    let document = json!({
        "roles": {"reader": ["cases:read"], "editor": ["cases:read", "cases:write"], "admin": ["*"], "guest": []},
        "rules": [
            {"match": {"domain": "acme.com"}, "role": "reader"},
            {"match": {"claim": {"groups": ["case-editors", "leads"]}}, "role": ["editor", "guest"]},
            {"match": {"email": "root@acme.com"}, "role": "admin"},
            {"role": "guest"},
            {"match": {"sub": "contractor-17"}, "role": "reader", "deny": true},
        ],
    });
    let policy = Policy::compile(&source(&document.to_string())).expect("compiles");
    let entry = |label: &str, permission: &str, uri: Option<&str>| PriceEntry {
        label: label.to_owned(),
        permission: permission.to_owned(),
        uri: uri.map(str::to_owned),
    };
    let entries = [
        entry("search", "cases:read", None),
        entry("update", "cases:write", None),
        entry("resource:case", "cases:read", Some("cases://case/{id}")),
        entry("prompt:\u{1b}[2J\u{200b}é", "root", None),
    ];
    let narrow = [("update".to_owned(), vec!["cases:write".to_owned()])];
    let scopes = Scopes::compile(&["mcp".to_owned()], &narrow, &[].into()).expect("compiles");
    let prices = Prices::reconcile(&entries, &narrow, Some(&policy), Some(&scopes)).prices.expect("no faults");
    Matrix::new(&policy, &prices, &scopes)
}

#[test]
fn says_who_can_do_what() {
    let matrix = matrix();
    assert_eq!(matrix.roles.iter().map(AsRef::as_ref).collect::<Vec<_>>(), ["admin", "editor", "guest", "reader"]);
    assert_eq!(matrix.capabilities[1].allowed, [true, true, false, false]);
    assert_eq!(matrix.capabilities[1].scopes, ["mcp", "cases:write"]);
    assert!(matrix.rules[4].deny && matrix.rules[4].capabilities.is_empty());
    assert_eq!(
        matrix.rules[0].capabilities.iter().map(AsRef::as_ref).collect::<Vec<_>>(),
        ["tool:search", "resource:case"]
    );
}

#[test]
fn is_rendered_in_aligned_columns_that_no_name_can_break() {
    let expected = r"
capability                 permission   scopes           admin  editor  guest  reader
tool:search                cases:read   mcp              yes    yes     -      yes
tool:update                cases:write  mcp cases:write  yes    yes     -      -
resource:case              cases:read   mcp              yes    yes     -      yes
prompt:\u{1b}[2J\u{200b}é  root         mcp              yes    -       -      -

who                                         roles          may use
domain is acme.com                          reader         tool:search, resource:case
claim groups is one of case-editors, leads  editor, guest  tool:search, tool:update, resource:case
email is root@acme.com                      admin          all 4
everyone                                    guest          nothing
sub is contractor-17                        (deny)         nothing, whatever other rules say
";
    assert_eq!(format!("\n{}", matrix()), expected);
}
