//! Fuzz cases that use all paths concurrently.

use anabranch_congestion::Protocol;
use anabranch_congestion::registry;
use anabranch_sctp::Config;
use anabranch_sctp::config::BufferSplit;

/// Congestion controls by name: three coupled ones, and one that is not coupled.
const CONTROLS: [&str; 4] = ["sctp", "cmt_rp", "lia", "olia"];

/// Turns on CMT in one case of eight, selected by the last byte of the case. The byte before it
/// selects the options of CMT.
pub(super) fn set(config: &mut Config, [how, whether]: [u8; 2]) {
    if whether & 0x07 != 5 || config.profile.rsctp {
        return;
    }
    config.cmt = true;
    config.cmt_split_fast_retransmit = how & 0x01 != 0;
    config.cmt_cwnd_update = how & 0x02 != 0;
    config.cmt_delayed_ack = how & 0x04 != 0;
    config.cmt_buffer_split = [
        BufferSplit::Off,
        BufferSplit::Sender,
        BufferSplit::Receiver,
        BufferSplit::Both,
    ][usize::from(how >> 3 & 3)];
    let name = CONTROLS[usize::from(how >> 5) % CONTROLS.len()];
    config.congestion = registry::by_name(Protocol::Sctp, name).expect("its own name");
}
