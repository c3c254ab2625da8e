use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::{Board, Contents, Watch};

/// Far below the poll, far above what an event takes.
const SOON: Duration = Duration::from_secs(15);

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

async fn heard(watch: &mut Watch) -> bool {
    tokio::time::timeout(SOON, watch.look()).await.is_ok()
}

#[test]
fn a_written_file_a_renamed_file_and_a_swapped_symlink_are_noticed_each_time() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = |name: &str| dir.path().join(name);
    for version in ["v1", "v2", "v3"] {
        fs::create_dir(at(version)).expect("a folder");
        fs::write(at(version).join("policy.yaml"), version).expect("a file");
    }
    // As Kubernetes lays a ConfigMap out.
    symlink("v1", at("..data")).expect("a symlink");
    symlink("..data/policy.yaml", at("policy.yaml")).expect("a symlink");
    fs::write(at("plain.yaml"), "1").expect("a file");
    let files = [at("policy.yaml"), at("plain.yaml")];
    let paths = || files.iter().map(|path| &**path as &Path);
    runtime().block_on(async {
        let mut watch = Watch::new();
        watch.follow(paths());
        let mut before = Contents::read(paths());
        let swap = |version: &str| {
            symlink(version, at("..data_tmp")).expect("a symlink");
            fs::rename(at("..data_tmp"), at("..data")).expect("renamed");
        };
        let changes: [&dyn Fn(); 5] = [
            &|| swap("v2"),
            &|| swap("v3"),
            &|| fs::write(at("plain.yaml"), "2").expect("a file"),
            &|| {
                fs::write(at("other"), "3").expect("a file");
                fs::rename(at("other"), at("plain.yaml")).expect("renamed");
            },
            &|| swap("v1"),
        ];
        for (number, change) in changes.iter().enumerate() {
            change();
            assert!(heard(&mut watch).await, "change {number}");
            let after = Contents::read(paths());
            assert!(!after.agrees(&before) && after.digest() != before.digest(), "change {number}");
            watch.follow(paths());
            before = after;
        }
    });
}

#[test]
fn a_growing_log_and_our_own_reading_wake_nobody() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("portcullis.yaml");
    fs::write(&file, "1").expect("a file");
    runtime().block_on(async {
        let mut watch = Watch::new();
        watch.follow([&*file]);
        fs::write(dir.path().join("portcullis.log"), "2").expect("a file");
        let read = Contents::read([&*file]);
        assert!(read.agrees(&Contents::read([&*file])));
        // What follows is heard, so what came before was not: one look would have taken it.
        tokio::time::timeout(Duration::from_millis(700), watch.look()).await.expect_err("nothing happened");
        fs::write(&file, "2").expect("a file");
        assert!(heard(&mut watch).await);
    });
}

#[test]
fn a_file_that_cannot_be_read_differs_from_one_that_can() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("a");
    let gone = Contents::read([&*file]);
    fs::write(&file, "").expect("a file");
    assert!(!Contents::read([&*file]).agrees(&gone));
    assert!(Contents::default().agrees(&gone), "nothing looked at, nothing differs");
}

#[test]
fn a_refused_reload_stays_on_the_board_until_the_next_good_one() {
    let board = Board::new("one".to_owned());
    board.refused(vec!["a".to_owned()]);
    let standing = board.standing();
    assert_eq!((standing.generation, &*standing.digest), (1, "one"), "what is in force is what was");
    assert_eq!(standing.fault.as_ref().map(|fault| fault.faults.clone()), Some(vec!["a".to_owned()]));
    board.loaded(2, "two".to_owned(), Vec::new());
    let standing = board.standing();
    assert_eq!((standing.generation, &*standing.digest, standing.fault.is_none()), (2, "two", true));
    let values: Vec<u64> = board.samples().iter().map(|sample| sample.value).collect();
    assert_eq!(values, [2, 1, 1]);
}

#[test]
fn what_was_written_while_it_was_loaded_is_loaded_again() {
    let dir = tempfile::tempdir().expect("a folder");
    let long_ago = SystemTime::now() - Duration::from_hours(1);
    let file = dir.path().join("policy.yaml");
    let age = |path: &Path| fs::File::open(path).expect("it opens").set_modified(long_ago).expect("its time is set");
    let contents = || Contents::read([&*file]);
    let since = SystemTime::now() - Duration::from_mins(1);
    fs::write(&file, "1").expect("a file");
    assert!(contents().written_since(since), "just written");
    age(&file);
    assert!(contents().written_since(since), "its folder was just changed");
    age(dir.path());
    assert!(!contents().written_since(since));
    assert!(!Contents::read([]).written_since(since));
}
