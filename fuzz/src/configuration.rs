//! The files of the configuration: whatever they hold, loading ends with tables or with faults that say where.

use std::cell::RefCell;
use std::fs;

use portcullis::config::{self, Loaded};
use portcullis::identity::KeyStores;
use tempfile::TempDir;

use super::world;

thread_local! {
    static FOLDER: RefCell<TempDir> = RefCell::new(world::files(world::CONFIGURATION, world::RECORDED));
}

/// One file: `policy.yaml` when it begins with `# policy`, the record with `# record`, else `portcullis.yaml`.
pub fn check(data: &[u8]) {
    FOLDER.with_borrow(|folder| {
        let (name, good) = match data {
            [b'#', b' ', b'p', b'o', ..] => ("policy.yaml", world::POLICY.to_owned()),
            [b'#', b' ', b'r', b'e', ..] => ("cases.yaml", world::record(world::RECORDED).0),
            _ => ("portcullis.yaml", world::CONFIGURATION.to_owned()),
        };
        let load = |content: &[u8]| {
            world::write(folder.path(), name, content);
            config::load(&folder.path().join("portcullis.yaml"), &KeyStores::new())
        };
        let loaded = load(data);
        told(&loaded);
        if loaded.serving.is_some() {
            let more = [data, b"\nnobody_knows_this: 1\n"].concat();
            assert!(load(&more).serving.is_none(), "a key that nobody knows loads");
            let twice = [data, b"\n", data].concat();
            assert!(load(&twice).serving.is_none(), "the same keys twice load");
        }
        fs::write(folder.path().join(name), good).expect("the file as it was");
    });
}

fn told(loaded: &Loaded) {
    assert_eq!(loaded.serving.is_none(), !loaded.faults.is_empty(), "tables or faults");
    for fault in loaded.faults.iter().chain(&loaded.warnings) {
        let lines = fs::read(&fault.file).map_or(0, |text| text.split(|byte| matches!(byte, b'\n' | b'\r')).count());
        assert!(fault.line >= 1 && fault.column >= 1 && fault.line <= lines.max(1) + 1, "{fault} outside of the file");
        assert!(!fault.message.is_empty());
    }
}
