use super::*;

#[tokio::test]
async fn a_process_that_ends_takes_its_own_socket_away_and_not_its_successors() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("ext_proc.sock");
    let door = || Door::new(bind_in_place(&path).expect("a socket"), path.clone());
    let before = door();
    let after = door();
    drop(before);
    assert!(UnixStream::connect(&path).await.is_ok(), "the successor's socket is there");
    drop(after);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_socket_whose_file_was_removed_is_bound_again_and_nothing_else_is_replaced() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("ext_proc.sock");
    let mut door = Door::new(bind_in_place(&path).expect("a socket"), path.clone());
    std::fs::remove_file(&path).expect("it is there");
    door.restore();
    assert!(UnixStream::connect(&path).await.is_ok());
    std::fs::remove_file(&path).expect("it is there");
    std::fs::write(&path, "someone's").expect("a file");
    door.restore();
    drop(door);
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "someone's");
}
