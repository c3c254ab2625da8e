use tokio_stream::StreamExt as _;

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

#[tokio::test(start_paused = true)]
async fn a_connection_that_cannot_be_taken_is_tried_again_after_a_pause_and_not_at_once() {
    let tries = std::cell::Cell::new(0);
    let left = std::cell::Cell::new(1000);
    let incoming = tokio_stream::iter(0..).map(|_| {
        tries.set(tries.get() + 1);
        match left.get() {
            0 => Ok(()),
            more => {
                left.set(more - 1);
                // What is said where no file descriptor is left.
                Err(io::Error::from_raw_os_error(24))
            }
        }
    });
    let mut patient = Patient::new(incoming);
    assert!(tokio::time::timeout(PAUSE * 5 / 2, patient.next()).await.is_err());
    assert_eq!(tries.get(), 3, "one at once, one after each pause");
    left.set(0);
    assert!(matches!(patient.next().await, Some(Ok(()))), "it goes on when it can");
}
