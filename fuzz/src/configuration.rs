//! The files of the configuration: whatever they hold, loading ends with tables or with faults that say where.

use std::collections::HashMap;
use std::fs;

use portcullis::config::{self, Loaded};
use portcullis::identity::KeyStores;
use tempfile::TempDir;

use super::world;

/// The files of which one is the input.
const NAMES: [&str; 3] = ["portcullis.yaml", "policy.yaml", "cases.yaml"];

thread_local! {
    /// A folder for each of them, in which the other files are good and stay.
    static FOLDERS: [TempDir; 3] = NAMES.map(|_| world::files(world::CONFIGURATION, world::RECORDED));
}

/// One file: `policy.yaml` when it begins with `# policy`, the record with `# record`, else `portcullis.yaml`.
pub fn check(data: &[u8]) {
    let which = match data {
        [b'#', b' ', b'p', b'o', ..] => 1,
        [b'#', b' ', b'r', b'e', ..] => 2,
        _ => 0,
    };
    FOLDERS.with(|folders| {
        let (folder, name) = (folders[which].path(), NAMES[which]);
        let load = |content: &[u8]| {
            // Not cut short and written again, for which some file systems wait for the disk.
            fs::remove_file(folder.join(name)).expect("the file before");
            world::write(folder, name, content);
            config::load(&folder.join("portcullis.yaml"), &KeyStores::new())
        };
        let loaded = load(data);
        told(&loaded);
        if loaded.serving.is_some() {
            let more = [data, b"\nnobody_knows_this: 1\n"].concat();
            assert!(load(&more).serving.is_none(), "a key that nobody knows loads");
            let twice = [data, b"\n", data].concat();
            assert!(load(&twice).serving.is_none(), "the same keys twice load");
        }
    });
}

fn told(loaded: &Loaded) {
    assert_eq!(loaded.serving.is_none(), !loaded.faults.is_empty(), "tables or faults");
    let mut lines = HashMap::new();
    for fault in loaded.faults.iter().chain(&loaded.warnings) {
        let of = |file| fs::read(file).map_or(0, |text| text.split(|byte| matches!(byte, b'\n' | b'\r')).count());
        let lines: usize = *lines.entry(&fault.file).or_insert_with(|| of(&fault.file));
        assert!(fault.line >= 1 && fault.column >= 1 && fault.line <= lines.max(1) + 1, "{fault} outside of the file");
        assert!(!fault.message.is_empty());
    }
}
