use std::{fs, path::Path};

use serde_json::json;

use super::{Credential, CredentialSource, SecretFault, SecretSource};

fn file(path: &Path) -> SecretSource {
    SecretSource { file: Some(path.into()), env: None }
}

fn in_file(content: &[u8]) -> Result<String, SecretFault> {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("token"), content).unwrap();
    file(Path::new("token")).read(dir.path()).map(|secret| secret.current().to_string())
}

#[test]
fn one_trailing_newline_is_dropped() {
    assert_eq!(in_file(b"s3cret\n").unwrap(), "s3cret");
    assert_eq!(in_file(b"s3cret\r\n").unwrap(), "s3cret");
    assert_eq!(in_file(b"s3cret").unwrap(), "s3cret");
    assert_eq!(in_file(b"two words").unwrap(), "two words");
}

#[test]
fn a_value_that_could_break_a_header_refuses_without_being_shown() {
    for bad in [
        &b""[..],
        b"\n",
        b"s3+cret\n\n",
        b"s3+\r\ncret",
        b"s3+cret\0",
        b" s3+cret",
        b"s3+cret ",
        "s3+crét".as_bytes(),
        b"s3+\xffcret",
    ] {
        let fault = in_file(bad).unwrap_err();
        assert!(matches!(fault, SecretFault::Unusable { .. }), "{bad:?}: {fault}");
        // The names of temporary folders, which are in it, have no such character.
        assert!(!fault.to_string().contains("s3+"), "{fault}");
    }
    assert!(matches!(in_file(&vec![b'a'; 20_000]).unwrap_err(), SecretFault::Unusable { problem: "is too long", .. }));
}

#[test]
fn exactly_one_source() {
    assert_eq!(SecretSource::default().read(Path::new("/")).unwrap_err(), SecretFault::Source);
    let both = SecretSource { file: Some("a".into()), env: Some("B".into()) };
    assert_eq!(both.read(Path::new("/")).unwrap_err(), SecretFault::Source);
    let unset = SecretSource { file: None, env: Some("PORTCULLIS_TEST_NOT_SET".into()) };
    assert!(unset.read(Path::new("/")).unwrap_err().to_string().contains("PORTCULLIS_TEST_NOT_SET"));
    let set = SecretSource { file: None, env: Some("PATH".into()) };
    assert_eq!(&*set.read(Path::new("/")).unwrap().current(), std::env::var("PATH").unwrap());
}

#[test]
fn a_secret_is_never_printed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    fs::write(&path, "s3cret").unwrap();
    let credential = CredentialSource::Bearer(file(&path)).load(dir.path()).unwrap();
    assert!(!format!("{credential:?} {:?}", credential.header_value()).contains("s3cret"));
    assert_eq!(credential.header_value().unwrap().to_str().unwrap(), "Bearer s3cret");
}

#[test]
fn a_changed_file_is_taken_and_a_broken_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    fs::write(&path, "one").unwrap();
    let secret = file(&path).read(dir.path()).unwrap();
    assert!(!secret.refresh().unwrap());
    // Same length, very likely within the resolution of the time stamp.
    fs::write(&path, "two").unwrap();
    assert!(secret.refresh().unwrap());
    assert_eq!(&*secret.current(), "two");
    fs::remove_file(&path).unwrap();
    assert!(secret.refresh().is_err());
    assert_eq!(&*secret.current(), "two");
}

#[tokio::test]
async fn a_watched_credential_follows_its_file_and_ends_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    fs::write(&path, "one").unwrap();
    let credential = CredentialSource::Bearer(file(&path)).load(dir.path()).unwrap();
    let task = tokio::spawn(credential.watch().unwrap());
    fs::write(&path, "two").unwrap();
    let mut looks = 0;
    while credential.header_value().unwrap().to_str().unwrap() != "Bearer two" {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        looks += 1;
        assert!(looks < 200, "the new value never came");
    }
    drop(credential);
    task.await.unwrap();
}

#[test]
fn credentials_without_a_secret() {
    for (source, passthrough) in [(CredentialSource::None, false), (CredentialSource::Passthrough, true)] {
        let credential = source.load(Path::new("/")).unwrap();
        assert!(credential.header_value().is_none());
        assert!(credential.watch().is_none());
        assert_eq!(credential.is_passthrough(), passthrough);
    }
    assert!(matches!(CredentialSource::default().load(Path::new("/")).unwrap(), Credential::None));
}

#[test]
fn the_shapes_of_the_credential_key() {
    let read = |value| serde_json::from_value::<CredentialSource>(value);
    assert_eq!(read(json!("none")).unwrap(), CredentialSource::None);
    assert_eq!(read(json!("passthrough")).unwrap(), CredentialSource::Passthrough);
    assert_eq!(read(json!({"bearer": {"file": "x"}})).unwrap(), CredentialSource::Bearer(file(Path::new("x"))));
    for bad in [json!({}), json!({"basic": {}}), json!({"bearer": {"value": "s3cret"}}), json!(7), json!(null)] {
        assert!(read(bad.clone()).is_err(), "{bad}");
    }
    let fault = read(json!("s3cret")).unwrap_err().to_string();
    assert!(fault.contains("passthrough") && !fault.contains("s3cret"), "{fault}");
}
