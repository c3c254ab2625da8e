use super::{PermissionId, PermissionSet, Permissions};

#[test]
fn a_name_has_one_identifier() {
    let mut permissions = Permissions::default();
    let read = permissions.intern("cases:read");
    let write = permissions.intern("cases:write");
    assert_ne!(read, write);
    assert_eq!(permissions.intern("cases:read"), read);
    assert_eq!(permissions.id("cases:write"), Some(write));
    assert_eq!(permissions.id("cases"), None);
    assert_eq!(permissions.name(write).map(AsRef::as_ref), Some("cases:write"));
    assert_eq!(permissions.name(PermissionId(2)), None);
    assert_eq!(permissions.len(), 2);
    assert!(!permissions.is_empty());
}

#[test]
fn a_set_holds_what_was_put_in_and_nothing_else() {
    let mut set = PermissionSet::default();
    assert!(set.is_empty());
    set.insert(PermissionId(70));
    assert!(!set.is_empty());
    assert!(set.contains(PermissionId(70)));
    assert!(!set.contains(PermissionId(6)));
    assert_eq!(set.iter().collect::<Vec<_>>(), [PermissionId(70)]);
}

#[test]
fn all_holds_also_what_no_role_names() {
    let all = PermissionSet::all();
    assert!(all.is_all() && !all.is_empty() && all.contains(PermissionId(u32::MAX)));
    let mut union = PermissionSet::default();
    union.union(&all);
    assert!(union.contains(PermissionId(3)));
}
