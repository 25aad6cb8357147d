//! Test that the corpus of the fuzz targets has the properties that must hold for any input.

use std::path::Path;

use bytes::Bytes;

use crate::oracle;

fn each(target: &str, check: impl Fn(&Bytes)) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut files = 0;
    for entry in std::fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        check(&std::fs::read(path).unwrap().into());
        files += 1;
    }
    assert!(files > 20, "{files} files in {}", directory.display());
}

#[test]
fn packets() {
    each("packet", oracle::check_packet);
}

#[test]
fn segments() {
    each("segment", oracle::check_segment);
}

/// All valid packets in the corpus should decode completely, because packets that are rejected
/// early would not reach the inner decoders.
#[test]
fn sound_seeds_are_sound() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/packet");
    let mut kinds = std::collections::BTreeSet::new();
    let mut extensions = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path
            .file_name()
            .unwrap()
            .to_string_lossy()
            .starts_with("sound-")
        {
            let datagram = Bytes::from(std::fs::read(&path).unwrap());
            let packet =
                anabranch_wire::Packet::parse(&datagram, anabranch_wire::Checksum::Verify).unwrap();
            let chunks = oracle::read_chunks(&packet);
            assert_eq!(packet.chunks().count(), chunks.len(), "{}", path.display());
            assert_eq!(
                oracle::write_chunks(packet.header, &chunks),
                datagram,
                "{}",
                path.display()
            );
            kinds.extend(chunks.iter().map(anabranch_wire::Chunk::kind));
            for raw in packet.chunks().map(Result::unwrap) {
                let own = raw.kind;
                if let Ok(extension) = anabranch_wire::Extension::decode(raw)
                    && !matches!(extension, anabranch_wire::Extension::Unknown(_))
                {
                    extensions.insert(own);
                }
            }
        }
    }
    assert!(
        kinds.is_superset(&(0..=14).collect()),
        "each type of RFC 9260 is there: {kinds:?}"
    );
    assert_eq!(
        Vec::from_iter(extensions),
        [0x0F, 0x40, 0x41, 0x80, 0x82, 0xC0, 0xC1, 0xC2],
        "each type of an extension is there, and sound"
    );
}
