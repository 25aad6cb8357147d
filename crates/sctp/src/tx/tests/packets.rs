//! Tests of chunks bundled into packets.

use super::*;

#[test]
fn a_long_message_begins_in_the_space_that_the_last_one_left_where_packets_are_filled() {
    // Two messages of 2032 bytes. Without `pack_messages`, each message is sent in a packet with
    // 1432 and a packet with 600 bytes of user data. With it, the second packet also contains the
    // first fragment of the second message, and the third packet contains the remainder.
    for (pack_messages, packets) in [(false, 4), (true, 3)] {
        let mut config = config(Profile::rfc9260());
        config.pack_messages = pack_messages;
        let mut rig = Rig::new(&config, 1);
        rig.offer(2, MESSAGE + 600);
        rig.drain();
        assert_eq!(
            (rig.packets, rig.sent.len()),
            (packets, 4),
            "{pack_messages}"
        );
        let sent = rig.sender.statistics().bytes_sent;
        assert_eq!(sent, 2 * (MESSAGE as u64 + 600), "all of both messages");
    }
    // A message that fits into one chunk is never fragmented.
    let mut config = config(Profile::rfc9260());
    config.pack_messages = true;
    let mut rig = Rig::new(&config, 1);
    rig.offer(2, MESSAGE * 3 / 4);
    rig.drain();
    assert_eq!((rig.packets, rig.sent.len()), (2, 2));
}

#[test]
fn small_messages_share_a_packet_unless_bundling_is_off() {
    for (bundling, packets) in [(true, 1), (false, 5)] {
        let mut rig = Rig::new(
            &Config {
                bundling,
                ..config(Profile::rfc2960())
            },
            1,
        );
        rig.offer(5, 100);
        assert_eq!(rig.drain(), [0, 1, 2, 3, 4]);
        assert_eq!(rig.packets, packets);
        assert_eq!(rig.flight(), 5 * 116);
    }
}

#[test]
fn retransmissions_of_several_small_chunks_share_the_one_packet() {
    let mut rig = Rig::new(&config(Profile::rfc2960()), 1);
    rig.offer(5, 100);
    rig.drain();
    rig.now = 3 * SECOND;
    rig.sender
        .handle_t3(rig.now, PathId(0), &mut rig.paths, &mut rig.trace);
    let before = rig.packets;
    assert_eq!(rig.drain(), [0, 1, 2, 3, 4]);
    assert_eq!(rig.packets, before + 1);
}
